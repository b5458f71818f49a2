"""The way to a store that sentinels watch over: who is the primary now, and a connection to it.

The rule: ask anew for every connection, and believe no sentinel alone: one that was cut off from
the others names a server that was demoted, so a server that says it is no primary is not used, and
the next sentinel is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from fairlane.errors import InvalidSettings

#: The schemes, and that of the same server without sentinels.
SCHEMES: Final[Mapping[str, str]] = {
    "redis+sentinel": "redis",
    "rediss+sentinel": "rediss",
    "valkey+sentinel": "redis",
    "valkeys+sentinel": "rediss",
}
_PORT: Final = 26_379
_EXAMPLE: Final = "redis+sentinel://host:26379,host:26379/service/0"
#: A sentinel that is away must not take the time in which the next one would have answered.
SENTINEL_S: Final = 2.0


@dataclass(frozen=True)
class SentinelUrl:
    """A URL `redis+sentinel://[user:password@]host[:port][,host…]/service[/db][?…]`, read.

    The user and the password are the store's; `sentinel_username` and `sentinel_password` behind
    the `?` are the sentinels'. `rediss+sentinel://` is TLS to both. What else stands behind the `?`
    is the driver's (`ssl_ca_certs`, …).
    """

    nodes: tuple[tuple[str, int], ...]
    service: str
    db: int
    #: The store's own URL, as if it were at the host `primary`.
    store_url: str
    sentinel_login: Mapping[str, str]

    @classmethod
    def of(cls, url: str) -> Self:
        """Read a URL. Raises InvalidSettings."""
        parts = urlsplit(url)
        login, at, places = parts.netloc.rpartition("@")
        path = [unquote(part) for part in parts.path.split("/") if part]
        if not places or not 1 <= len(path) <= 2 or not path[-1:] or not _is_db(path[1:]):
            raise InvalidSettings(
                f"store_url: a URL of sentinels names them, their service and a database, "
                f"as {_EXAMPLE}"
            )
        query = dict(parse_qsl(parts.query))
        sentinel_login = {
            name: query.pop(f"sentinel_{name}")
            for name in ("username", "password")
            if f"sentinel_{name}" in query
        }
        db = int(path[1]) if path[1:] else 0
        return cls(
            nodes=tuple(_node(place) for place in places.split(",")),
            service=path[0],
            db=db,
            store_url=f"{SCHEMES[parts.scheme]}://{login}{at}primary/{db}?{urlencode(query)}",
            sentinel_login=sentinel_login,
        )


def _is_db(path: Sequence[str]) -> bool:
    return all(part.isascii() and part.isdecimal() for part in path)


def _node(place: str) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{place}")
        host, port = parts.hostname, parts.port or _PORT
    except ValueError:
        host, port = None, 0
    if not host:
        raise InvalidSettings(f"store_url: {place!r} is no host:port of a sentinel; as {_EXAMPLE}")
    return host, port


class Sentinels:
    """Connects to the primary that the sentinels of a URL name.

    Raises redis.RedisError when none of them knows one that answers.
    """

    def __init__(self, url: str, *, is_async: bool, **options: Any) -> None:
        self._url = SentinelUrl.of(url)
        module: Any = redis.asyncio if is_async else redis
        once = AsyncRetry(NoBackoff(), 0) if is_async else Retry(NoBackoff(), 0)
        pool = module.ConnectionPool.from_url(self._url.store_url, retry=once, **options)
        self._class: Any = pool.connection_class
        self._store: dict[str, Any] = pool.connection_kwargs
        timeout_s = min(options["socket_timeout"], SENTINEL_S)
        self._sentinel = {
            **{name: value for name, value in self._store.items() if name.startswith("ssl_")},
            **self._url.sentinel_login,
            "socket_timeout": timeout_s,
            "socket_connect_timeout": timeout_s,
            "retry": once,
        }

    def connect(self) -> Any:
        """Return the driver's connection to the primary."""
        search = _Search(self._url)
        for host, port in self._url.nodes:
            sentinel = self._class(**{**self._sentinel, "host": host, "port": port})
            try:
                sentinel.connect()
                sentinel.send_command(*search.question)
                address = search.address(sentinel.read_response())
            except redis.RedisError as error:
                search.fails(f"sentinel {host}:{port}: {error}")
                continue
            finally:
                sentinel.disconnect()
            for at_host, at_port in address:
                driver = self._class(**{**self._store, "host": at_host, "port": at_port})
                try:
                    driver.connect()
                    driver.send_command("INFO", "replication")
                    if search.is_primary(driver.read_response()):
                        return driver
                except redis.RedisError as error:
                    search.fails(f"{at_host}:{at_port}: {error}")
                driver.disconnect()
        raise search.failure()

    async def connect_async(self) -> Any:
        """Return the driver's asyncio connection to the primary."""
        search = _Search(self._url)
        for host, port in self._url.nodes:
            sentinel = self._class(**{**self._sentinel, "host": host, "port": port})
            try:
                await sentinel.connect()
                await sentinel.send_command(*search.question)
                address = search.address(await sentinel.read_response())
            except redis.RedisError as error:
                search.fails(f"sentinel {host}:{port}: {error}")
                continue
            finally:
                await _let_go(sentinel)
            for at_host, at_port in address:
                driver = self._class(**{**self._store, "host": at_host, "port": at_port})
                try:
                    await driver.connect()
                    await driver.send_command("INFO", "replication")
                    if search.is_primary(await driver.read_response()):
                        return driver
                except redis.RedisError as error:
                    search.fails(f"{at_host}:{at_port}: {error}")
                await _let_go(driver)
        raise search.failure()


class _Search:
    """What one search for the primary has been told so far."""

    def __init__(self, url: SentinelUrl) -> None:
        self.question: Final = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", url.service)
        self._service = url.service
        self._tried: set[tuple[str, int]] = set()
        self._said: list[str] = []
        self._is_replica = False

    def address(self, reply: Any) -> Iterator[tuple[str, int]]:
        """Give the address that a sentinel told, unless it was tried before."""
        if not reply:
            self.fails(f"it knows no service {self._service}")
            return
        host, port = (part.decode() if isinstance(part, bytes) else part for part in reply)
        found = (str(host), int(port))
        if found not in self._tried:
            self._tried.add(found)
            yield found

    def is_primary(self, info: Any) -> bool:
        """Whether a server says that it is the primary."""
        text = info.decode() if isinstance(info, bytes) else str(info)
        if "role:master" in text:
            return True
        self._is_replica = True
        self.fails("the server that the sentinels name is a replica still")
        return False

    def fails(self, why: str) -> None:
        """Remember why a way did not lead to the primary."""
        self._said.append(why)

    def failure(self) -> redis.RedisError:
        """Return the error that tells all of it."""
        kind = redis.ReadOnlyError if self._is_replica else redis.ConnectionError
        return kind(f"no primary of the service {self._service}: {'; '.join(self._said)}")


async def _let_go(driver: Any) -> None:
    with suppress(redis.RedisError, OSError):
        await driver.disconnect(nowait=True)
