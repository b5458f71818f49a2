"""The wire for asyncio code: one connection, which all calls of a client share.

The rule: one command, one reply, no retry. Replies come in the order of their commands, so nobody
waits for his turn to send: calls that are made at once are one write and one read of the server.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import hiredis
import redis
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from fairlane.client.sentinel import SCHEMES, Sentinels
from fairlane.client.wire import DEMOTED, NO_REPLY, TOGETHER, new_reader, pack
from fairlane.conversation import Command

#: Pieces that are written before it is looked whether the server takes them.
_MANY: Final = 256


class Pipe:
    """A connection that is made when it is needed, in the event loop that runs then.

    Raises redis.RedisError; after anything but an error reply the connection is closed, and every
    call that waits on it is told. A server that is no primary any more is left likewise, once it
    has answered all that it was sent.
    """

    def __init__(self, url: str, *, socket_timeout: float, **options: Any) -> None:
        self._driver = _connector(url, socket_timeout=socket_timeout, **options)
        self._timeout_s = socket_timeout
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connecting: asyncio.Task[_Connection] | None = None
        self._connection: _Connection | None = None
        self._pid = os.getpid()

    async def send(self, command: Command) -> Any:
        """Send a command and return its reply; an error reply is raised."""
        (reply,) = await self._ask(pack(command), 1)
        if isinstance(reply, redis.RedisError):
            raise reply
        return reply

    async def send_many(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands together and return their replies; error replies stand in their place."""
        replies: list[Any] = []
        for first in range(0, len(commands), TOGETHER):
            part = commands[first : first + TOGETHER]
            packed = [piece for command in part for piece in pack(command)]
            replies += await self._ask(packed, len(part))
        for reply in replies:
            if isinstance(reply, redis.ConnectionError):
                raise reply
        return replies

    async def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _ask(self, packed: Sequence[bytes], count: int) -> list[Any]:
        connection = self._connection
        if (
            connection is None
            or not connection.is_open
            or self._loop is not asyncio.get_running_loop()
        ):
            connection = await self._connect()
        waiting = connection.write(packed, count)
        try:
            await connection.drain()
            return [await reply for reply in waiting]
        except OSError as error:
            connection.abort()
            raise redis.ConnectionError(f"Error on the socket: {error}") from error

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        if self._pid != os.getpid():
            # A forked child must not touch its parent's connection, not even to close it.
            self._pid, self._loop, self._connection = os.getpid(), None, None
        if self._loop is not loop:
            # What was connected in another loop is of no use in this one.
            if self._connection is not None:
                self._connection.abort()
            self._loop, self._connecting, self._connection = loop, None, None
        if self._connecting is None or self._connecting.done():
            self._connecting = loop.create_task(self._new_connection())
            # Whoever asked may have given up.
            self._connecting.add_done_callback(lambda done: done.cancelled() or done.exception())
        # Whoever waits shares what becomes of it: a store that hangs is waited for once.
        return await asyncio.shield(self._connecting)

    async def _new_connection(self) -> _Connection:
        self._connection = _Connection(await self._driver(), self._timeout_s)
        return self._connection


def _connector(url: str, **options: Any) -> Callable[[], Awaitable[Any]]:
    """Return what makes the driver's connection to a URL."""
    if url.partition("://")[0] in SCHEMES:
        return Sentinels(url, is_async=True, **options).connect_async
    pool = redis.asyncio.ConnectionPool.from_url(url, retry=Retry(NoBackoff(), 0), **options)

    async def connect() -> Any:
        driver: Any = pool.connection_class(**pool.connection_kwargs)
        await driver.connect()
        return driver

    return connect


class _Connection(asyncio.Protocol):
    """A connection that the driver made, with the calls that wait for replies on it.

    Replies come in order, so who waits longest is the first: one timer watches for all, and cuts a
    connection on which he has waited for `timeout_s`. Whoever else waits would wait in vain: the
    store hangs, or the network is cut.
    """

    def __init__(self, driver: Any, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._watch: asyncio.TimerHandle | None = None
        self._writer = driver._writer
        self._transport = self._writer.transport
        # The streams know how to close, and to hold back a writer that is too fast.
        self._streams = self._transport.get_protocol()
        self._reader = new_reader()
        #: Who waits for a reply, and since when.
        self._waiting: deque[tuple[asyncio.Future[Any], float]] = deque()
        self._outgoing: list[bytes] = []
        self._loop = asyncio.get_running_loop()
        self.is_open = True
        self._transport.set_protocol(self)
        # The connection is ours from now on: the driver would complain that it was not told.
        driver._reader = driver._writer = None

    def write(self, packed: Sequence[bytes], count: int) -> list[asyncio.Future[Any]]:
        """Send what was packed, with all that is written in this turn of the loop.

        Returns what becomes its replies.
        """
        now = self._loop.time()
        replies = [self._loop.create_future() for _ in range(count)]
        self._waiting.extend([(reply, now) for reply in replies])
        if self._watch is None:
            self._watch = self._loop.call_later(self._timeout_s, self._look)
        # A transport sends at once what it can: without this, each call is a send of its own, and
        # wakes the server.
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing += packed
        return replies

    def _look(self) -> None:
        """Cut the connection if somebody has waited for too long; else look again in time."""
        self._watch = None
        if not self._waiting:
            return
        left_s = self._waiting[0][1] + self._timeout_s - self._loop.time()
        if left_s > 0:
            self._watch = self._loop.call_later(left_s, self._look)
            return
        self._tell(redis.TimeoutError("Timeout reading from socket"))
        self.abort()

    def _tell(self, error: redis.RedisError) -> None:
        """Let everybody who waits know that there will be no reply."""
        while self._waiting:
            future, _ = self._waiting.popleft()
            if not future.done():
                future.set_exception(error)
                future.exception()  # whoever asked may have given up

    def _flush(self) -> None:
        outgoing, self._outgoing = self._outgoing, []
        if outgoing and self.is_open:
            self._transport.writelines(outgoing)

    async def drain(self) -> None:
        """Wait until the server has taken enough of what was sent."""
        if len(self._outgoing) > _MANY:
            self._flush()
        if self._transport.get_write_buffer_size():
            await self._writer.drain()

    def data_received(self, data: bytes) -> None:
        """Hand out the replies that are whole."""
        self._reader.feed(data)
        try:
            while (reply := self._reader.gets()) is not NO_REPLY:
                if isinstance(reply, hiredis.PushNotification):
                    continue
                future, _ = self._waiting.popleft()
                if not future.done():  # whoever asked may have given up
                    future.set_result(reply)
                if isinstance(reply, DEMOTED):
                    self.is_open = False
        except (redis.RedisError, IndexError):
            self.abort()
        if not self.is_open and not self._waiting:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell everybody who waits."""
        self.is_open = False
        self._streams.connection_lost(exc)
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        self._tell(redis.ConnectionError("Connection closed by server."))

    def pause_writing(self) -> None:
        """Hold back whoever drains."""
        self._streams.pause_writing()

    def resume_writing(self) -> None:
        """Let them go on."""
        self._streams.resume_writing()

    def abort(self) -> None:
        """Cut the connection."""
        self.is_open = False
        with suppress(RuntimeError):  # its loop has ended
            self._transport.abort()

    async def close(self) -> None:
        """Close the connection."""
        self._flush()
        self.is_open = False
        self._transport.close()
        with suppress(OSError):
            await self._writer.wait_closed()
