"""The store's time, and which tokens were revoked, as this process last read them.

The rule: no request pays for it. What is read is good for `FRESH_S`; a little older, it is still
used while it is read again; past `STALE_S` the request waits for it, and a store that does not
answer then is a 503. So a revoked token is refused everywhere within `FRESH_S` and one request,
and what was once known as revoked stays so, also if the store forgets.
"""

from __future__ import annotations

import asyncio
import time
from contextvars import Context
from typing import Final

from fairlane.errors import FairlaneError
from fairlane.http.gate import Gate
from fairlane.verbs import ReadRevocations

FRESH_S: Final = 2.0
STALE_S: Final = 10.0
#: Read again, each time: after a failover another machine's clock decides.
_OVERLAP_MS: Final = 600_000
_PAGE: Final = 1_000


class Revocations:
    """The store's clock, carried on by this machine's steady one, and the revoked tokens."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._read_at = float("-inf")
        self._now_ms = 0
        self._last_ms = 0
        self._ends: dict[str, int] = {}
        self._reading: asyncio.Task[FairlaneError | None] | None = None

    @property
    def now_ms(self) -> int:
        """The store's time; this machine's, as long as nothing was read."""
        if not self._now_ms:
            return time.time_ns() // 1_000_000
        return self._now_ms + int((time.monotonic() - self._read_at) * 1000)

    def __contains__(self, token_id: str) -> bool:
        """Whether a token was revoked."""
        return token_id in self._ends

    def are_fresh(self) -> bool:
        """Whether nothing is to be read."""
        return time.monotonic() - self._read_at <= FRESH_S

    def now_if_fresh_ms(self) -> int:
        """Return the store's time; 0 when something is to be read."""
        age_s = time.monotonic() - self._read_at
        return self._now_ms + int(age_s * 1000) if age_s <= FRESH_S else 0

    async def refresh(self, *, may_be_old: bool = False) -> None:
        """Read again what is not fresh; `may_be_old` waits for nothing.

        Raises StoreError when nothing is known that is good enough.
        """
        age_s = time.monotonic() - self._read_at
        if age_s <= FRESH_S:
            return
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read(), name="revocations", context=Context())
        if age_s <= STALE_S or may_be_old:
            return
        # Whoever gives up does not take along what the others wait for.
        error = await asyncio.shield(self._reading)
        if error is not None:
            raise error

    async def close(self) -> None:
        """Stop reading."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])

    async def _read(self) -> FairlaneError | None:
        since_ms = max(0, self._last_ms - _OVERLAP_MS)
        try:
            while True:
                began = time.monotonic()
                page = await self._gate.run(ReadRevocations(since_ms, _PAGE))
                for token_id, at_ms, ends_ms in page.revoked:
                    self._ends[token_id] = ends_ms
                    self._last_ms = since_ms = max(since_ms, at_ms)
                if len(page.revoked) < _PAGE:
                    break
                since_ms += 1
        except FairlaneError as error:
            return error
        self._now_ms, self._read_at = page.now_ms, began
        minute_ago = page.now_ms - 60_000
        for token_id in [one for one, ends_ms in self._ends.items() if ends_ms < minute_ago]:
            del self._ends[token_id]
        return None
