"""The way from a request to the store: bounded in number and in time.

The rule: no caller waits for a store that hangs. What is asked at once is bounded here, and each
question gets `LIMIT_S`, below the client's own patience; past either the answer is a
StoreUnavailable, which is a 503 with Retry-After. A function that was sent may still run: it runs
whole, and whoever sends it again by the same task id or Idempotency-Key is told of it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from fairlane.client import AsyncClient
from fairlane.client.calls import follow
from fairlane.errors import StoreUnavailable
from fairlane.verbs import Verb

R = TypeVar("R")

#: An answer "within two seconds" has to be made and sent, too.
LIMIT_S: Final = 1.7
#: The connection is given up before the caller is, so that the next one finds a new one.
SOCKET_TIMEOUT_MS: Final = 1_400
AT_ONCE: Final = 1_024


@asynccontextmanager
async def within_limit() -> AsyncIterator[None]:
    """Give what asks the store more than once the time that one question has."""
    try:
        async with asyncio.timeout(LIMIT_S):
            yield
    except TimeoutError:
        raise _silent() from None


class Limit:
    """Until when a task may wait; it is cancelled then, which `is_over` tells from other reasons.

    What `asyncio.timeout` does, without a timer for each: these are set up ten thousand times a
    second, and go off never.
    """

    __slots__ = ("_cancels", "_has_struck", "at", "task")

    def __init__(self, at: float, task: asyncio.Task[Any]) -> None:
        self.at = at
        self.task: asyncio.Task[Any] | None = task
        self._cancels = task.cancelling()
        self._has_struck = False

    def strike(self) -> None:
        """Cancel the task, if it still waits."""
        if self.task is not None:
            self._has_struck = True
            self.task.cancel()

    def is_over(self) -> bool:
        """Whether it was this limit, and nobody else, that cancelled the task."""
        if not self._has_struck or self.task is None:
            return False
        self._has_struck = False
        return self.task.uncancel() <= self._cancels

    def end(self) -> None:
        """Let the task go on."""
        if self._has_struck and self.task is not None:
            self.task.uncancel()
        self.task = None


class Limits:
    """Limits of one length, which therefore end in the order in which they begin: one timer."""

    def __init__(self, length_s: float) -> None:
        self._length_s = length_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open: deque[Limit] = deque()
        #: Whether the timer is set, for a limit that ends no later than any that is open.
        self._is_watched = False

    def begin(self) -> Limit:
        """Return the limit of the running task."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        if loop is not self._loop:
            # What waited in a loop that has ended waits no more.
            self._loop = loop
            self._open.clear()
            self._is_watched = False
        waiting = self._open
        # Most end soon, and in their order: kept until their time is over, they would be so many
        # that the garbage collector had to look through the whole process for them.
        while waiting and waiting[0].task is None:
            waiting.popleft()
        limit = Limit(loop.time() + self._length_s, task)
        waiting.append(limit)
        if not self._is_watched:
            self._is_watched = True
            loop.call_at(limit.at, self._look)
        return limit

    def _look(self) -> None:
        assert self._loop is not None
        now, waiting = self._loop.time(), self._open
        while waiting and (waiting[0].task is None or waiting[0].at <= now):
            waiting.popleft().strike()
        self._is_watched = bool(waiting)
        if waiting:
            self._loop.call_at(waiting[0].at, self._look)


class Gate:
    """Run verbs for requests, so many at once and no longer than the limit."""

    def __init__(self, client: AsyncClient, *, at_once: int = AT_ONCE) -> None:
        self.client = client
        self._at_once = at_once
        self._running = 0
        self._limits = Limits(LIMIT_S)

    def run(self, verb: Verb[R]) -> Coroutine[Any, Any, R]:
        """Run a verb. Raises what the verb's docstring names, and StoreUnavailable."""
        return self.ask(self.client.run(verb))

    async def run_many(self, batch: Sequence[Verb[Any]]) -> list[Any]:
        """Run verbs together; each result, or its FairlaneError, stands in its place."""
        return await self.ask(self.client.run_many(batch))

    async def follow(self, steps: Generator[Verb[Any], Any, R]) -> R:
        """Run each verb that is yielded, send back what it came to, return what is returned."""
        return await follow(self.run, steps)

    async def join(self) -> None:
        """Agree with the store on the settings: which lanes there are is its word."""
        if not self.client.is_open:
            await self.ask(self.client.ping())

    async def ask(self, question: Coroutine[Any, Any, R]) -> R:
        """Wait for what the store is asked. Raises StoreUnavailable when it takes too long."""
        if self._running >= self._at_once:
            question.close()
            raise StoreUnavailable(f"store: {self._running} calls wait for it; try again later")
        self._running += 1
        limit = self._limits.begin()
        try:
            return await question
        except asyncio.CancelledError:
            if limit.is_over():
                raise _silent() from None
            raise
        finally:
            limit.end()
            self._running -= 1


def _silent() -> StoreUnavailable:
    return StoreUnavailable(f"store: it did not answer within {LIMIT_S} s")
