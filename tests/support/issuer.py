"""Tokens for the tests of the service, as fairlane issues them, and as nobody should."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

import jwt

from fairlane import Client, verbs
from fairlane.grant import Grant
from fairlane.keyring import Keyring
from fairlane.tokens import Claims, sign
from support.service import Service

SECRET: Final = "s" * 40


def issued(service: Service, role: Any, mac: str = "", site: str = "", **more: Any) -> str:
    """Return a token that the service's store knows of."""
    return issue(service.store, Grant(role, mac, site, more.pop("name", "")), **more)


def issue(store: Client, grant: Grant, ttl_ms: int = 3_600_000, token_id: str = "") -> str:
    """Return a token that a store knows of, signed by the key of the client's settings."""
    verb = verbs.IssueToken(grant, ttl_ms, *filter(None, [token_id]))
    told = store.run(verb)
    key = Keyring(store.settings).signer
    assert key is not None
    claims = Claims(told.token_id, grant, told.issued_at_ms // 1000, told.expires_at_ms // 1000)
    return sign(claims, key, store.settings.token_audience)


def claims(now_s: int, **other: Any) -> dict[str, Any]:
    """Return what a good operator's token says, but for what is given; None leaves it out."""
    good = {"jti": "made", "aud": "fairlane", "role": "operator", "iat": now_s, "nbf": now_s,
            "exp": now_s + 600}  # fmt: skip
    return {name: value for name, value in {**good, **other}.items() if value is not None}


def forged(said: Any, *, key: Any = SECRET, algorithm: str = "HS256", **header: Any) -> str:
    """Return a token with any claims and header."""
    return jwt.encode(said, key, algorithm, {"kid": "settings", **header})


def bare(header: Any, said: Any, signature: bytes = b"") -> str:
    """Return a token in three parts, whatever is in them."""
    parts = (json.dumps(header).encode(), json.dumps(said).encode(), signature)
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def now_s(store: Client) -> int:
    """Return the store's time in seconds."""
    return store.run(verbs.ReadRevocations()).now_ms // 1000
