"""How often a token may ask.

The rule: a bucket for each token: it holds two seconds' worth of requests and fills at the rate of
its role, by this machine's steady clock. It belongs to this process; the limits of tasks are the
store's.
"""

from __future__ import annotations

import time
from math import ceil
from typing import Final

from fairlane.http.problem import Problem

_BURST_S: Final = 2
_MOST: Final = 50_000


class Rates:
    """The buckets of one rate; 0 is no limit."""

    def __init__(self, per_s: int) -> None:
        self._per_s = per_s
        self._most = max(1, per_s * _BURST_S)
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, token_id: str) -> None:
        """Take one request out of a token's bucket. Raises a 429 when there is none in it."""
        if not self._per_s:
            return
        now = time.monotonic()
        left, at = self._buckets.get(token_id, (self._most, now))
        left = min(self._most, left + (now - at) * self._per_s)
        if left < 1:
            wait_s = max(1, ceil((1 - left) / self._per_s))
            raise Problem(
                429,
                "TOO_MANY_REQUESTS",
                f"this token may ask {self._per_s} times a second; try again in {wait_s} s",
                retry_after_s=wait_s,
                retry_after_seconds=wait_s,
            )
        if token_id not in self._buckets and len(self._buckets) >= _MOST:
            # A full bucket is what a token begins with: nothing is lost by forgetting it.
            full_at = now - _BURST_S
            self._buckets = {who: it for who, it in self._buckets.items() if it[1] > full_at}
        self._buckets[token_id] = (left - 1, now)
