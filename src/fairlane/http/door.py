"""Who is let in, and as whom.

The rule: a request says who it is in one way, once: by `Authorization: Bearer`, or by the cookie of
a browser session, which counts only for requests of our own pages. What does not hold is a 401 that
tells nothing of what would. Without a key of one's own there is one operator's token, good for this
process and for callers on this machine.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import Any, Final

from fairlane.errors import InvalidToken, StoreError
from fairlane.grant import Grant
from fairlane.http import session
from fairlane.http.caller import Caller
from fairlane.http.gate import Gate
from fairlane.http.problem import Problem
from fairlane.http.rate import Rates
from fairlane.http.revocations import Revocations
from fairlane.keyring import Keyring
from fairlane.settings import Settings
from fairlane.tokens import MAX_CHARACTERS, Claims, sign, verify

NO_KEY: Final = (
    "without a key only callers on this machine are let in; make one by `fairlane token key`"
)
#: What is told of a token that does not hold, by RFC 6750.
_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer error="invalid_token"'}
_MOST_KNOWN: Final = 20_000
_LAST_S: Final = 253_402_300_799


class Door:
    """Tell who calls by the token that comes with a request.

    Raises InvalidSettings for keys that cannot be used.
    """

    def __init__(self, settings: Settings, gate: Gate) -> None:
        self._keyring = Keyring(settings)
        self._audience = settings.token_audience
        self._revocations = Revocations(gate)
        self._device_rates = Rates(settings.device_requests_per_s)
        self._rates = Rates(settings.requests_per_s)
        self._known: dict[bytes, tuple[Claims, Caller]] = {}
        self._looked_at = time.monotonic()
        #: An operator's token, when there is no key of one's own.
        self.start_token = ""
        if not self._keyring:
            key = self._keyring.lend()
            self.start_token = sign(start_claims(), key, self._audience)

    async def admit(self, scope: Any, *, may_be_old: bool = False) -> Caller:
        """Return who calls. Raises a 401, a 403 for another origin's, a 429; StoreError."""
        self.check_local(scope)
        token, by_cookie = credentials(scope)
        if by_cookie:
            session.check_origin(scope)
        caller = await self.believe(token, may_be_old=may_be_old)
        self.count(caller)
        return caller

    def knows(self, scope: Any, headers: Mapping[bytes, bytes]) -> Caller | None:
        """Return who calls, if that is known at once; None says to ask `admit`.

        It is not counted yet.
        """
        given = headers.get(b"authorization", b"")
        if given[:7] != b"Bearer " or (self.start_token and not is_local(scope)):
            return None
        known, now_ms = self._recalled(given[7:]), self._revocations.now_if_fresh_ms()
        if known is None or not now_ms:
            return None
        claims, caller = known
        holds = claims.holds(now_ms) and claims.token_id not in self._revocations
        return caller if holds else None

    def count(self, caller: Caller) -> None:
        """Count a request of a caller. Raises a 429 when there are too many."""
        (self._device_rates if caller.role == "device" else self._rates).take(caller.token_id)

    def check_local(self, scope: Any) -> None:
        """Raise a 401 for a caller of another machine, when there is no key of one's own."""
        if self.start_token and not is_local(scope):
            raise _unknown(NO_KEY)

    async def believe(self, token: bytes, *, may_be_old: bool = False) -> Caller:
        """Return who has a token. Raises a 401, StoreError."""
        try:
            claims, caller = self._recalled(token) or self._verified(token)
            if not self._revocations.are_fresh():
                await self._revocations.refresh(may_be_old=may_be_old)
                if self._reload():
                    claims, caller = self._verified(token)
            claims.check(self._revocations.now_ms)
        except InvalidToken as error:
            raise Problem(401, error.code, str(error), headers=_CHALLENGE) from None
        if claims.token_id in self._revocations:
            raise Problem(401, "INVALID_TOKEN", "token: it was revoked", headers=_CHALLENGE)
        return caller

    async def still_holds(self, caller: Caller) -> bool:
        """Whether who was let in would be let in again; what the store does not tell now is so."""
        if not caller.token_id:
            return True
        with suppress(StoreError):
            await self._revocations.refresh()
        return caller.token_id not in self._revocations and bool(self.left_s(caller))

    def left_s(self, caller: Caller) -> int:
        """Return how long a caller's token still holds."""
        return max(0, caller.expires_s - self._revocations.now_ms // 1000)

    async def close(self) -> None:
        """Stop looking."""
        await self._revocations.close()

    def _recalled(self, token: bytes) -> tuple[Claims, Caller] | None:
        """Return what a token says that was verified before."""
        known = self._known.pop(token, None)
        if known is not None:
            # Who came last stands last: the first are those that were not seen for longest.
            self._known[token] = known
        return known

    def _verified(self, token: bytes) -> tuple[Claims, Caller]:
        """Return what a token says, and keep it: its signature holds until the keys change."""
        if len(token) > MAX_CHARACTERS:
            raise InvalidToken(f"token: over {MAX_CHARACTERS} characters")
        text = token.decode("latin-1")
        try:
            claims = verify(text, self._keyring, self._audience)
        except InvalidToken:
            # A key may just have come.
            if not self._reload():
                raise
            claims = verify(text, self._keyring, self._audience)
        grant = claims.grant
        caller = Caller(
            grant.role, grant.mac, grant.site, grant.name, claims.token_id, claims.expires_s
        )
        if len(self._known) >= _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[token] = claims, caller
        return claims, caller

    def _reload(self) -> bool:
        """Read the keys again if they have changed, looking once a second; whether they had."""
        now = time.monotonic()
        if now - self._looked_at < 1:
            return False
        self._looked_at = now
        if not self._keyring.reload():
            return False
        self._known.clear()
        return True


def start_claims() -> Claims:
    """Return what the operator's token of a service without a key says: it ends with its key."""
    return Claims("start", Grant("operator", name="start"), 0, _LAST_S)


def credentials(scope: Any) -> tuple[bytes, bool]:
    """Return the token of a request, and whether it came as a cookie. Raises a 401."""
    given: list[bytes] = []
    cookies: list[bytes] = []
    for name, value in scope["headers"]:
        if name == b"authorization":
            given.append(value)
        elif name == b"cookie":
            cookies.append(value)
    if given:
        if len(given) > 1:
            raise _unknown("Authorization stands twice; send it once")
        scheme, _, token = given[0].partition(b" ")
        if scheme.lower() != b"bearer" or not token.strip():
            raise _unknown("Authorization: send `Bearer` and a token")
        return token.strip(), False
    found = _cookies(cookies, session.cookie_name(scope).encode())
    if len(found) > 1:
        raise _unknown("the session's cookie stands twice, with two values")
    if found:
        return found.pop(), True
    raise _unknown("send a token: `Authorization: Bearer …`; `fairlane token issue` makes one")


def is_local(scope: Any) -> bool:
    """Whether a request comes from this machine."""
    client = scope.get("client")
    return client is None or is_loopback(client[0])


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address; a socket without one, too."""
    try:
        return not host or ip_address(host).is_loopback
    except ValueError:
        # The path of a Unix socket.
        return host.startswith("/")


def _cookies(headers: Sequence[bytes], name: bytes) -> set[bytes]:
    parts = (part.strip() for header in headers for part in header.split(b";"))
    pairs = (part.partition(b"=") for part in parts)
    return {value.strip(b'"') for found, _, value in pairs if found == name and value}


def _unknown(detail: str) -> Problem:
    return Problem(401, "UNAUTHORIZED", detail, headers={"WWW-Authenticate": "Bearer"})
