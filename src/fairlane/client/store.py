"""Where the store is, and what its driver's errors mean to us."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import redis

from fairlane.client import sentinel
from fairlane.client.keepalive import KEEPALIVE
from fairlane.conversation import NoFunction, error_of
from fairlane.embedded import SCHEME, Embedded, folder_of
from fairlane.errors import (
    InvalidSettings,
    StoreDenied,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    StoreUnsupported,
)
from fairlane.settings import Settings

_SCHEMES: Final = {
    "redis": "redis",
    "rediss": "rediss",
    "unix": "unix",
    "valkey": "redis",
    "valkeys": "rediss",
}
#: A replica; a disk that cannot be written; too few replicas (`min-replicas-to-write`).
_REFUSES_WRITES: Final = ("READONLY", "MISCONF", "NOREPLICAS")
_NOT_NOW: Final = (redis.exceptions.MasterDownError, redis.exceptions.TryAgainError)


def embedded_folder(settings: Settings) -> Path | None:
    """Return the embedded server's folder, the URL's or `store` in the data folder.

    None for a store that is not embedded.
    """
    if not settings.store_url.startswith(SCHEME):
        return None
    if settings.store_url == SCHEME:
        return settings.data_dir / "store"
    return folder_of(settings.store_url)


class Store:
    """Where the store is: the URL that the driver takes, and the embedded server behind it."""

    def __init__(self, settings: Settings) -> None:
        self._embedded: Embedded | None = None
        scheme, _, rest = settings.store_url.partition("://")
        if (folder := embedded_folder(settings)) is not None:
            self._embedded = Embedded(folder).start()
            self.url = self._embedded.url
        elif scheme in _SCHEMES:
            self.url = f"{_SCHEMES[scheme]}://{rest}"
        elif scheme in sentinel.SCHEMES:
            sentinel.SentinelUrl.of(settings.store_url)
            self.url = settings.store_url
        elif scheme in ("redis+cluster", "valkey+cluster"):
            raise StoreUnsupported(
                f"store_url: {scheme}:// is not supported; name a single server, or the sentinels "
                "of one: redis+sentinel://"
            )
        else:
            raise InvalidSettings(
                f"store_url: unknown scheme {scheme!r}; "
                "use embedded://, redis://, rediss://, valkey://, valkeys://, unix:// "
                "or redis+sentinel://"
            )
        same = self.url if self._embedded is None else self._embedded.celery_url
        self.broker_url = settings.broker_url or same
        timeout_s = settings.socket_timeout_ms / 1000
        self.options: dict[str, Any] = {"socket_timeout": timeout_s}
        if not self.url.startswith("unix"):
            self.options |= {"socket_connect_timeout": timeout_s, **KEEPALIVE}

    def revive(self) -> bool:
        """Start an embedded server that has ended; True when it had. Raises StoreUnavailable."""
        if self._embedded is None or self._embedded.is_owner:
            return False
        return self._embedded.start().is_owner

    def close(self) -> None:
        """Stop the embedded server, if this process owns it."""
        if self._embedded is not None:
            self._embedded.stop()


def ours(error: redis.RedisError) -> Exception:
    """Return the driver's error as one of ours."""
    message = str(error)
    if message.endswith("Function not found"):
        return NoFunction(message)
    if isinstance(error, redis.ReadOnlyError) or message.startswith(_REFUSES_WRITES):
        return StoreReadOnly(f"store: {message}")
    if isinstance(error, redis.exceptions.OutOfMemoryError) or message.startswith("OOM"):
        return StoreFull(f"store: {message}")
    if isinstance(error, redis.AuthenticationError) or message.startswith(("NOAUTH", "WRONGPASS")):
        return StoreDenied(
            f"store: {message.rstrip('.')}; it runs, and does not let this user in: "
            "name the right one in the URL, as redis://user:password@host:6379/0"
        )
    if isinstance(error, redis.ConnectionError | redis.TimeoutError):
        said = message.rstrip(".")
        return StoreUnavailable(f"store: {said}; is it running, and reachable from here?")
    if isinstance(error, _NOT_NOW) or message.startswith("BUSY"):
        return StoreUnavailable(f"store: {message}")
    return error_of(message) or StoreError(f"store: {message}")
