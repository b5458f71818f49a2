"""Tokens: JSON Web Tokens that say who calls.

The rule: a token is believed only after its signature is: the key that it names decides by which
algorithm, everything in it is checked, and what is missing is an error. Its times are compared with
the store's clock, whatever this machine's says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec
from jwt import PyJWS
from jwt.exceptions import PyJWTError

from fairlane.errors import InvalidToken
from fairlane.grant import Grant, grant_of
from fairlane.keyring import Key, Keyring

MAX_CHARACTERS: Final = 8_192
#: How far the clocks of those who issue and those who check may differ.
LEEWAY_S: Final = 30
_LAST_S: Final = 253_402_300_799
_ID_CHARACTERS: Final = 128
_jws: Final = PyJWS()
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class Claims:
    """What a token says: whom it lets in, and from when to when, in seconds since 1970."""

    token_id: str
    grant: Grant
    not_before_s: int
    expires_s: int

    def holds(self, now_ms: int) -> bool:
        """Whether the token has begun and has not ended."""
        return (self.not_before_s - LEEWAY_S) * 1000 <= now_ms < (self.expires_s + LEEWAY_S) * 1000

    def check(self, now_ms: int) -> None:
        """Raise InvalidToken when the token has ended, or has not begun."""
        if now_ms >= (self.expires_s + LEEWAY_S) * 1000:
            raise InvalidToken("token: it has expired; ask for a new one")
        if now_ms < (self.not_before_s - LEEWAY_S) * 1000:
            raise InvalidToken("token: it is not valid yet")


def sign(claims: Claims, key: Key, audience: str) -> str:
    """Return a token."""
    grant = claims.grant
    told = {"jti": claims.token_id, "aud": audience, "iat": claims.not_before_s,
            "nbf": claims.not_before_s, "exp": claims.expires_s, "role": grant.role,
            "mac": grant.mac, "site": grant.site, "sub": grant.name}  # fmt: skip
    raw = msgspec.json.encode({name: value for name, value in told.items() if value != ""})
    return _jws.encode(raw, key.jwk.key, key.algorithm, {"typ": "JWT", "kid": key.kid})


def verify(token: str, keyring: Keyring, audience: str) -> Claims:
    """Return what a token says, if its key is one of ours and its signature holds.

    Raises InvalidToken. Its times are for `Claims.check`.
    """
    if len(token) > MAX_CHARACTERS:
        raise InvalidToken(f"token: over {MAX_CHARACTERS} characters")
    if not token.isascii() or token.count(".") != 2:
        raise InvalidToken("token: it is no JSON Web Token")
    try:
        header = _jws.get_unverified_header(token)
        key = keyring.key(header.get("kid"))
        if key is None:
            raise InvalidToken("token: no key here has the name (kid) that it gives")
        if header.get("alg") != key.algorithm:
            raise InvalidToken("token: its algorithm is not that of its key")
        if "crit" in header or "b64" in header:
            raise InvalidToken("token: its header asks for what is not known here")
        raw = _jws.decode(token, key.jwk, algorithms=[key.algorithm])
        said = _decode(raw)
    except (PyJWTError, ValueError, TypeError, RecursionError, msgspec.DecodeError) as error:
        if isinstance(error, PyJWTError):
            raise InvalidToken("token: it is no JSON Web Token, or not signed by its key") from None
        raise InvalidToken("token: what it says cannot be read") from None
    return _claims(said, audience)


def _claims(said: dict[str, Any], audience: str) -> Claims:
    """Return the claims of a token whose signature holds. Raises InvalidToken."""
    given = said.get("aud")
    if audience not in (given if isinstance(given, list) else [given]):
        raise InvalidToken("token: it is for another audience")
    token_id = said.get("jti")
    if not isinstance(token_id, str) or not 0 < len(token_id) <= _ID_CHARACTERS:
        raise InvalidToken("token: it has no id (jti), so it could not be revoked")
    grant = grant_of(
        said.get("role"), said.get("mac", ""), said.get("site", ""), said.get("sub", "")
    )
    issued_s = _time("iat", said.get("iat", 0))
    return Claims(
        token_id,
        grant,
        max(issued_s, _time("nbf", said.get("nbf", 0))),
        _time("exp", said.get("exp")),
    )


def _time(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LAST_S:
        raise InvalidToken(f"token: its {name} is no time")
    return int(value)
