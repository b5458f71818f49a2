"""What a token allows, and to whom.

The rule: a grant is checked when it is made, by whoever makes it: a device's names the device, no
other names one, and whoever is held to a site names that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from fairlane.errors import InvalidMac, InvalidToken
from fairlane.mac import canonical
from fairlane.site import is_site

Role: TypeAlias = Literal["device", "producer", "viewer", "operator"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
#: Roles that may be held to a site.
OF_A_SITE: Final[tuple[Role, ...]] = ("device", "producer")
_NAME_CHARACTERS: Final = 128


@dataclass(frozen=True, slots=True)
class Grant:
    """A role; the device if it is one; the site if it is held to one; a name for people.

    Raises InvalidToken, InvalidMac.
    """

    role: Role
    mac: str = ""
    site: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise InvalidToken(f"role: {ascii(self.role)[:80]} is none of {', '.join(ROLES)}")
        if self.role == "device":
            if not self.mac:
                raise InvalidToken("mac: a device's token names the device; give its MAC address")
            object.__setattr__(self, "mac", canonical(self.mac))
        elif self.mac:
            raise InvalidToken(f"mac: only a device's token names one, not a {self.role}'s")
        if self.site and (self.role not in OF_A_SITE or not is_site(self.site)):
            raise InvalidToken(
                f"site: {ascii(self.site)[:80]}; a {' or '.join(OF_A_SITE)} may be held to a site, "
                "which is 1 to 64 of a-z, 0-9, `_.-`, a letter or digit first"
            )
        if not (
            isinstance(self.name, str)
            and len(self.name) <= _NAME_CHARACTERS
            and (self.name.isprintable())
        ):
            raise InvalidToken(f"name: at most {_NAME_CHARACTERS} characters that can be printed")


def grant_of(role: Any, mac: Any, site: Any, name: Any) -> Grant:
    """Return what a token says. Raises InvalidToken for what no grant can be."""
    if not all(isinstance(part, str) for part in (role, mac, site, name)):
        raise InvalidToken("role, mac, site and sub: expected text")
    try:
        return Grant(role, mac, site, name)
    except InvalidMac as error:
        raise InvalidToken(str(error)) from None


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token that the store knows of; `revoked_at_ms` is 0 while it is good.

    One that was revoked but not issued here has no grant.
    """

    token_id: str
    grant: Grant | None
    issued_at_ms: int
    expires_at_ms: int
    revoked_at_ms: int


@dataclass(frozen=True, slots=True)
class Revocations:
    """Tokens that were revoked: when each was, and when it would have ended; the store's time."""

    now_ms: int
    revoked: tuple[tuple[str, int, int], ...]
