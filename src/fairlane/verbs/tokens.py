"""Tokens that were issued, and those that were revoked, as long as they would last."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from fairlane.errors import InvalidData
from fairlane.grant import Grant, IssuedToken, Revocations
from fairlane.ids import checked_task_id, new_task_id
from fairlane.settings import Settings
from fairlane.verbs.bounds import MOST, Page, checked_count, checked_limit, shown
from fairlane.verbs.verb import Arg, Verb, pairs, text

#: No token lasts longer.
MAX_TTL_MS: Final = 3_660 * 24 * 3_600_000
_LAST_MS: Final = 253_402_300_799_000


@dataclass(frozen=True)
class IssueToken(Verb[IssuedToken]):
    """Record a token that is issued, until it expires.

    Raises InvalidData for a `ttl_ms` outside 1 to ten years, InvalidTaskId for an odd id.
    """

    grant: Grant
    ttl_ms: int
    token_id: str = field(default_factory=new_task_id)
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return id, role, MAC, site, name and how long it lasts."""
        grant = self.grant
        if not checked_count("ttl_ms", self.ttl_ms, MAX_TTL_MS):
            raise InvalidData("ttl_ms: 0; a token lasts for a while")
        return (checked_task_id(self.token_id), grant.role, grant.mac, grant.site, grant.name,
                self.ttl_ms)  # fmt: skip

    def decode(self, reply: Any) -> IssuedToken:
        """Return the token with its times."""
        return IssuedToken(self.token_id, self.grant, int(reply[0]), int(reply[1]), 0)


@dataclass(frozen=True)
class RevokeToken(Verb[bool]):
    """Revoke a token, so that it is refused from now on.

    False when it was revoked before. `expires_at_ms` is the end of a token that was issued
    elsewhere. Raises TokenNotFound, InvalidData.
    """

    token_id: str
    expires_at_ms: int = 0
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return id and end."""
        return (
            checked_token_id(self.token_id),
            checked_count("expires_at_ms", self.expires_at_ms, _LAST_MS),
        )

    def decode(self, reply: Any) -> bool:
        """Return whether this call revoked it."""
        return bool(int(reply))


@dataclass(frozen=True)
class Tokens(Page, Verb[tuple[IssuedToken, ...]]):
    """List the tokens that have not expired, those that end first before the others.

    Raises InvalidData for a limit outside 1 to 1,000.
    """

    def decode(self, reply: Any) -> tuple[IssuedToken, ...]:
        """Return the tokens."""
        return tuple(_token_of(text(row[0]), dict(pairs(row[1:]))) for row in reply)


@dataclass(frozen=True)
class ReadRevocations(Verb[Revocations]):
    """Read which tokens were revoked since a time, and what time it is.

    Raises InvalidData for a limit outside 1 to 1,000.
    """

    since_ms: int = 0
    limit: int = MOST
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return since when, and how many at most."""
        return (checked_count("since_ms", self.since_ms, _LAST_MS), checked_limit(self.limit))

    def decode(self, reply: Any) -> Revocations:
        """Return the revocations, oldest first."""
        now, *flat = reply
        rows = zip(flat[::3], flat[1::3], flat[2::3], strict=True)
        return Revocations(int(now), tuple((text(a), int(b), int(c)) for a, b, c in rows))


def checked_token_id(token_id: str) -> str:
    """Return a token's id. Raises InvalidData for what none can be."""
    if not isinstance(token_id, str) or not 0 < len(token_id) <= 128 or not token_id.isprintable():
        raise InvalidData(f"token_id: {shown(token_id)}; send the id that `token list` shows")
    return token_id


def _token_of(token_id: str, fields: dict[str, bytes]) -> IssuedToken:
    said = {name: text(value) for name, value in fields.items()}
    role: Any = said.get("role")
    grant = Grant(role, said["mac"], said["site"], said["name"]) if role else None
    return IssuedToken(
        token_id,
        grant,
        int(said.get("issued_at", 0)),
        int(said["expires_at"]),
        int(said.get("revoked_at", 0)),
    )
