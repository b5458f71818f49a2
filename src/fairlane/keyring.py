"""The keys that sign and verify tokens.

The rule: a key is found by its name (`kid`) among those that were read, never by a path that a
token could spell; it fixes the algorithm, so a token has no say in that. Every key verifies, and
of the files in the folder the last by name, which is the newest, signs. A secret stands in no
message and no repr.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from jwt import PyJWK
from jwt.exceptions import PyJWTError

from fairlane.errors import InvalidSettings
from fairlane.settings import Settings

log = logging.getLogger("fairlane.keyring")

ALGORITHMS: Final = (
    *("HS256", "HS384", "HS512", "RS256", "RS384", "RS512"),
    *("PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"),
)
#: RFC 7518: a key for HS256 is no shorter than its hash.
SECRET_BYTES: Final = 32
#: The name of the key that `token_secret` is.
OF_SETTINGS: Final = "settings"
#: The name of a key that was made for a process without one.
LENT: Final = "start"
_ENDING: Final = ".key"
_KID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NUMBERED: Final = re.compile(r"k(\d{4,8})")


@dataclass(frozen=True, slots=True)
class Key:
    """One key: its name, its algorithm, and what it signs or verifies with."""

    kid: str
    jwk: PyJWK = field(repr=False)

    @property
    def algorithm(self) -> str:
        """The only algorithm that a token under this key may name."""
        return str(self.jwk.algorithm_name)


class Keyring:
    """All keys of the settings, read again when their files have changed.

    Raises InvalidSettings for a file that cannot be read or holds no key.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._folder = settings.token_keys_folder
        self._jwks = Path(settings.token_jwks_file) if settings.token_jwks_file else None
        self._seen: object = None
        self._keys: dict[str, Key] = {}
        self._signer: Key | None = None
        self._lent: Key | None = None
        self.reload()

    @property
    def signer(self) -> Key | None:
        """The key that signs; None when none does."""
        return self._signer

    def lend(self) -> Key:
        """Return a key of this process only, which signs and verifies like the others."""
        self._lent = _own_key(LENT, base64.urlsafe_b64encode(secrets.token_bytes(32)), LENT)
        return self._lent

    def __bool__(self) -> bool:
        return bool(self._keys)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys.values())

    def key(self, kid: object) -> Key | None:
        """Return the key of this name, or None; a token without a name may have the only key."""
        if kid == LENT:
            return self._lent
        if kid is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(kid) if isinstance(kid, str) else None

    def reload(self) -> bool:
        """Read the keys again if a file has come, gone or changed; return whether one had.

        Raises InvalidSettings and keeps the keys that there were.
        """
        seen = self._look()
        if seen == self._seen:
            return False
        own = list(self._own())
        keys: dict[str, Key] = {}
        for key in (*own, *self._of_jwks()):
            if key.kid in keys:
                raise InvalidSettings(f"keys: two are named {key.kid!r}; rename one")
            keys[key.kid] = key
        self._keys, self._signer, self._seen = keys, own[-1] if own else None, seen
        return True

    def _look(self) -> object:
        """Return what tells one state of the files from another."""
        found = []
        for path in (*key_files(self._folder), *filter(None, [self._jwks])):
            try:
                told = path.stat()
            except OSError:
                continue
            found.append((str(path), told.st_mtime_ns, told.st_size, told.st_ino))
        return found

    def _own(self) -> Iterator[Key]:
        """Give the keys that fairlane signs with, the newest last."""
        for path in key_files(self._folder):
            yield _own_key(path.name.removesuffix(_ENDING), _read(path), str(path.name))
        if self._settings.token_secret:
            yield _own_key(OF_SETTINGS, self._settings.token_secret.encode(), "token_secret")

    def _of_jwks(self) -> Iterator[Key]:
        if self._jwks is None:
            return
        try:
            listed = json.loads(_read(self._jwks))["keys"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InvalidSettings(
                f"token_jwks_file: {self._jwks.name} is no JWK set ({type(error).__name__}); "
                'write {"keys": [...]}'
            ) from None
        found = 0
        for at, item in enumerate(listed if isinstance(listed, list) else []):
            if not isinstance(item, dict) or item.get("use", "sig") != "sig":
                continue
            found += 1
            yield _verifier(item, at)
        if not found:
            raise InvalidSettings(f"token_jwks_file: {self._jwks.name} has no key that verifies")


def key_files(folder: Path) -> list[Path]:
    """Return the files of a folder that are keys, the newest last."""
    try:
        found = [path for path in folder.iterdir() if path.name.endswith(_ENDING)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise InvalidSettings(f"token_keys_dir: it cannot be read: {error.strerror}") from None
    return sorted(found, key=lambda path: _rank(path.name.removesuffix(_ENDING)))


def new_key(folder: Path) -> str:
    """Write a new key that signs from now on; return its name. Raises InvalidSettings."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise InvalidSettings(f"token_keys_dir: it cannot be made: {error.strerror}") from None
    secret = base64.urlsafe_b64encode(secrets.token_bytes(SECRET_BYTES)) + b"\n"
    names = [path.name.removesuffix(_ENDING) for path in key_files(folder)]
    numbers = [int(found[1]) for name in names if (found := _NUMBERED.fullmatch(name))]
    number = max(numbers, default=0) + 1
    for kid in (f"k{n:04d}" for n in range(number, number + 100)):
        path = folder / f"{kid}{_ENDING}"
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            continue  # another process had the same thought
        except OSError as error:
            raise InvalidSettings(f"token_keys_dir: {path.name}: {error.strerror}") from None
        with os.fdopen(handle, "wb") as file:
            file.write(secret)
            file.flush()
            os.fsync(file.fileno())
        return kid
    raise InvalidSettings("token_keys_dir: no name is free for a key")


def _rank(kid: str) -> tuple[int, str]:
    """Return what orders keys by age: those that `new_key` named, by their number, come last."""
    numbered = _NUMBERED.fullmatch(kid)
    return (int(numbered[1]) if numbered else -1, kid)


def _own_key(kid: str, raw: bytes, told: str) -> Key:
    secret = raw.strip()
    if _KID.fullmatch(kid) is None or (kid == LENT) != (told == LENT):
        raise InvalidSettings(f"keys: {told!r}; name a key by up to 64 letters, digits and `._-`")
    if len(secret) < SECRET_BYTES:
        raise InvalidSettings(
            f"{told}: {len(secret)} bytes; a secret has {SECRET_BYTES} or more, "
            "as `fairlane token key` makes it"
        )
    encoded = base64.urlsafe_b64encode(secret).rstrip(b"=").decode()
    return Key(kid, PyJWK({"kty": "oct", "k": encoded}, "HS256"))


def _verifier(item: dict[str, Any], at: int) -> Key:
    """Return a key of a JWK set. Raises InvalidSettings, without telling the key."""
    try:
        key = Key(item.get("kid", f"jwks{at}"), PyJWK(item))
    except (PyJWTError, ValueError, TypeError) as error:
        raise InvalidSettings(
            f"token_jwks_file: key {at} cannot be used ({type(error).__name__})"
        ) from None
    if not isinstance(key.kid, str) or key.algorithm not in ALGORITHMS:
        raise InvalidSettings(
            f"token_jwks_file: key {at}: its kid must be text, and its algorithm one of "
            f"{', '.join(ALGORITHMS)}"
        )
    if item.get("kty") == "oct" and len(str(item.get("k", ""))) < SECRET_BYTES * 4 // 3:
        raise InvalidSettings(f"token_jwks_file: key {at} is shorter than {SECRET_BYTES} bytes")
    return key


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_mode & 0o007 and path.name.endswith(_ENDING):
            log.warning("key %s can be read by everybody on this machine; chmod o-rwx", path.name)
        return path.read_bytes()
    except OSError as error:
        raise InvalidSettings(f"keys: {path.name} cannot be read: {error.strerror}") from None
