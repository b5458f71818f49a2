"""The way from a request to the store: bounded in number and in time.

The rule: no caller waits for a store that hangs. What is asked at once is bounded here, and each
question gets `LIMIT_S`, below the client's own patience; past either the answer is a
StoreUnavailable, which is a 503 with Retry-After. A function that was sent may still run: it runs
whole, and whoever sends it again by the same task id or Idempotency-Key is told of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from fairlane.client import AsyncClient
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


class Gate:
    """Run verbs for requests, so many at once and no longer than the limit."""

    def __init__(self, client: AsyncClient, *, at_once: int = AT_ONCE) -> None:
        self.client = client
        self._at_once = at_once
        self._running = 0

    async def run(self, verb: Verb[R]) -> R:
        """Run a verb. Raises what the verb's docstring names, and StoreUnavailable."""
        return await self.ask(self.client.run(verb))

    async def run_many(self, batch: Sequence[Verb[Any]]) -> list[Any]:
        """Run verbs together; each result, or its FairlaneError, stands in its place."""
        return await self.ask(self.client.run_many(batch))

    async def ask(self, question: Coroutine[Any, Any, R]) -> R:
        """Wait for what the store is asked. Raises StoreUnavailable when it takes too long."""
        if self._running >= self._at_once:
            question.close()
            raise StoreUnavailable(f"store: {self._running} calls wait for it; try again later")
        self._running += 1
        try:
            async with asyncio.timeout(LIMIT_S):
                return await question
        except TimeoutError:
            raise _silent() from None
        finally:
            self._running -= 1


def _silent() -> StoreUnavailable:
    return StoreUnavailable(f"store: it did not answer within {LIMIT_S} s")
