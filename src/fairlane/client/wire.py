"""Connections, with nothing between a command and its reply.

The rule: one command, one reply, no retry. The driver's own call path costs as much as the round
trip itself (50 against 22 µs, measured), most of it for pools and retries that a client which must
never re-send has no use for. So the driver connects (addresses, TLS, passwords, databases), and
what follows is here: a command is packed in one go, and its reply read from the socket.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, Final

import hiredis
import redis
from redis.backoff import NoBackoff
from redis.connection import DefaultParser
from redis.retry import Retry

from fairlane.client.sentinel import SCHEMES, Sentinels
from fairlane.conversation import Command

#: What a reader gives when a reply is not there yet, or not whole.
NO_REPLY: Final = object()
#: What a server answers that is a replica, or was made one.
DEMOTED: Final = (redis.ReadOnlyError, redis.exceptions.MasterDownError)
_READ_BYTES: Final = 64 * 1024
#: What is neither an error nor pushed by the server.
_VALUES: Final = frozenset({list, bytes, int, type(None)})
_LENGTHS: Final = tuple(b"$%d" % size for size in range(1_024))
#: Small numbers as the protocol writes them; most arguments that are numbers are 0.
_NUMBERS: Final = {number: b"$%d\r\n%d" % (len(str(number)), number) for number in range(1_024)}
#: Commands sent before their replies are read. The socket's patience is for all that is sent at
#: once: more would pass for a hung store.
TOGETHER: Final = 128
#: From this size on an argument is sent as it lies, not copied.
_LONG: Final = 64 * 1024


class Wire:
    """Idle connections, the last used first. Safe between threads and across forks.

    Raises redis.RedisError; after anything but an error reply the connection is closed, since the
    next reply on it could be the last command's. A server that is no primary any more is left, with
    all idle connections: the next one is made to whoever is it by then.
    """

    def __init__(self, url: str, **options: Any) -> None:
        self._connect = _connector(url, **options)
        self._idle: deque[_Connection] = deque()
        self._pid = os.getpid()

    def send(self, command: Command) -> Any:
        """Send a command and return its reply; an error reply is raised."""
        packed = pack(command)
        connection = self._take()
        try:
            connection.write(packed)
            reply = connection.read()
        except BaseException:
            self._drop(connection)
            raise
        if isinstance(reply, DEMOTED):
            self._drop(connection)
            raise reply
        self._idle.append(connection)
        if isinstance(reply, redis.ResponseError):
            raise reply
        return reply

    def send_many(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands together and return their replies; error replies stand in their place."""
        connection = self._take()
        replies: list[Any] = []
        try:
            for first in range(0, len(commands), TOGETHER):
                part = commands[first : first + TOGETHER]
                connection.write(_joined([piece for command in part for piece in pack(command)]))
                replies += [connection.read() for _ in part]
        except BaseException:
            self._drop(connection)
            raise
        if any(isinstance(reply, DEMOTED) for reply in replies):
            self._drop(connection)
        else:
            self._idle.append(connection)
        return replies

    def close(self) -> None:
        """Close the idle connections."""
        with suppress(IndexError):  # another thread may take the last one
            while True:
                self._idle.pop().close()

    def _drop(self, broken: _Connection) -> None:
        # What broke one (a restart, a cut) broke the idle ones too: a re-send must not meet them.
        broken.close()
        self.close()

    def _take(self) -> _Connection:
        if self._pid != os.getpid():
            # A forked child must not speak on its parent's sockets.
            self._pid, self._idle = os.getpid(), deque()
        try:
            return self._idle.pop()
        except IndexError:
            return _Connection(self._connect())


def _connector(url: str, **options: Any) -> Callable[[], Any]:
    """Return what makes the driver's connection to a URL."""
    if url.partition("://")[0] in SCHEMES:
        return Sentinels(url, is_async=False, **options).connect
    # Only what the pool knows of connecting: it counts the connections that it ever made, and after
    # a hundred, broken ones too, would make no more.
    pool = redis.ConnectionPool.from_url(url, retry=Retry(NoBackoff(), 0), **options)

    def connect() -> Any:
        driver = pool.connection_class(**pool.connection_kwargs)
        driver.connect()
        return driver

    return connect


class _Connection:
    """A connection that the driver made, read and written here."""

    __slots__ = ("_buffer", "_driver", "_feed", "_gets", "_recv_into", "_sendall")

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._sendall = driver._sock.sendall
        self._recv_into = driver._sock.recv_into
        reader = new_reader()
        self._feed, self._gets = reader.feed, reader.gets
        self._buffer = bytearray(_READ_BYTES)

    def write(self, packed: Sequence[bytes]) -> None:
        """Send what was packed."""
        try:
            for part in packed:
                self._sendall(part)
        except (TimeoutError, BlockingIOError):
            raise redis.TimeoutError("Timeout writing to socket") from None
        except OSError as error:
            raise redis.ConnectionError(f"Error while writing to socket: {error}") from error

    def read(self) -> Any:
        """Return the next reply; an error reply is returned, not raised."""
        while True:
            reply = self._gets()
            if type(reply) in _VALUES:
                return reply
            if reply is NO_REPLY:
                self._receive()
            elif isinstance(reply, redis.ConnectionError):
                # It says that it cannot serve us at all: it is loading, or wants a password.
                raise reply
            elif not isinstance(reply, hiredis.PushNotification):
                return reply

    def close(self) -> None:
        """Close the connection."""
        self._driver.disconnect()

    def _receive(self) -> None:
        try:
            size = self._recv_into(self._buffer)
        except (TimeoutError, BlockingIOError):
            raise redis.TimeoutError("Timeout reading from socket") from None
        except OSError as error:
            raise redis.ConnectionError(f"Error while reading from socket: {error}") from error
        if size == 0:
            raise redis.ConnectionError("Connection closed by server.")
        self._feed(self._buffer, 0, size)


def _joined(pieces: Sequence[bytes]) -> list[bytes]:
    """Return the pieces in few; a long one stays as it lies."""
    joined: list[bytes] = []
    for is_long, group in groupby(pieces, lambda piece: len(piece) >= _LONG):
        together = [*group]
        joined += together if is_long else [b"".join(together)]
    return joined


def new_reader() -> Any:
    """Return what reads replies out of bytes; an error reply is the driver's error."""
    return hiredis.Reader(
        protocolError=redis.InvalidResponse,
        replyError=DefaultParser.parse_error,
        notEnoughData=NO_REPLY,
    )


def pack(command: Command) -> list[bytes]:
    """Return a command as the protocol writes it, in pieces to be sent one after the other."""
    pieces: list[bytes] = []
    parts = [b"*%d" % len(command)]
    for arg in command:
        if type(arg) is str:
            word = arg.encode()
        elif type(arg) is bytes:
            word = arg
        elif type(arg) is int and arg in _NUMBERS:
            parts.append(_NUMBERS[arg])
            continue
        else:
            word = _word(arg)
        size = len(word)
        if size < 1_024:
            parts.append(_LENGTHS[size])
            parts.append(word)
        elif size < _LONG:
            parts.append(b"$%d" % size)
            parts.append(word)
        else:
            parts.append(b"$%d\r\n" % size)
            pieces += (b"\r\n".join(parts), word)
            parts = [b""]
    parts.append(b"")
    pieces.append(b"\r\n".join(parts))
    return pieces


def _word(arg: object) -> bytes:
    """Return an argument of another class than the two usual ones."""
    if isinstance(arg, int) and not isinstance(arg, bool):
        return b"%d" % arg
    if isinstance(arg, float):
        return repr(arg).encode()
    if isinstance(arg, str):
        return str.encode(arg)
    if isinstance(arg, bytes | bytearray | memoryview):
        return bytes(arg)
    raise redis.DataError(f"an argument is {type(arg).__name__}; send text, bytes or a number")
