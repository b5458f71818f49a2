"""Connections, with nothing between a command and its reply.

The rule: one command, one reply, no retry. The driver's own call path costs as much as the round
trip itself (47 against 26 µs, measured), most of it for pools and retries that a client which must
never re-send has no use for.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from fairlane.conversation import Command


class Wire:
    """Idle connections, the last used first. Safe between threads and across forks.

    Raises redis.RedisError; after anything but an error reply the connection is closed, since the
    next reply on it could be the last command's.
    """

    def __init__(self, url: str, **options: Any) -> None:
        # Only what the pool knows of connecting: it counts the connections that it ever made, and
        # after a hundred, broken ones too, would make no more.
        pool = redis.ConnectionPool.from_url(url, retry=Retry(NoBackoff(), 0), **options)
        self._connection: Any = partial(pool.connection_class, **pool.connection_kwargs)
        self._idle: deque[Any] = deque()
        self._pid = os.getpid()

    def send(self, command: Command) -> Any:
        """Send a command and return its reply; an error reply is raised."""
        connection = self._take()
        try:
            packed = connection.pack_command(*command)
            connection.send_packed_command(packed, check_health=False)
            reply = connection.read_response()
        except redis.ResponseError:
            self._idle.append(connection)
            raise
        except BaseException:
            self._drop(connection)
            raise
        self._idle.append(connection)
        return reply

    def send_many(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands in one go and return their replies; error replies stand in their place."""
        connection = self._take()
        try:
            packed = connection.pack_commands(commands)
            connection.send_packed_command(packed, check_health=False)
            replies = [_read(connection) for _ in commands]
        except BaseException:
            self._drop(connection)
            raise
        self._idle.append(connection)
        return replies

    def close(self) -> None:
        """Close the idle connections."""
        with suppress(IndexError):  # another thread may take the last one
            while True:
                self._idle.pop().disconnect()

    def _drop(self, broken: Any) -> None:
        # What broke one (a restart, a cut) broke the idle ones too: a re-send must not meet them.
        broken.disconnect()
        self.close()

    def _take(self) -> Any:
        if self._pid != os.getpid():
            # A forked child must not speak on its parent's sockets.
            self._pid, self._idle = os.getpid(), deque()
        try:
            return self._idle.pop()
        except IndexError:
            connection = self._connection()
            connection.connect()
            return connection


def _read(connection: Any) -> Any:
    try:
        return connection.read_response()
    except redis.ResponseError as error:
        return error
