"""The time of a simulation.

The rule: time passes only as planned, and every command of a pipeline has a time of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

#: Any moment will do, but a real one keeps the scripts' arithmetic in its usual range.
START_MS: Final = 1_750_000_000_000


class VirtualClock:
    """Tell a time in ms for each command that is made, in the order of the plan."""

    def __init__(self) -> None:
        self._now_ms = START_MS
        self._ahead: deque[int] = deque()

    def __call__(self) -> int:
        """Return the time of the next command; past the plan, the last one again."""
        if self._ahead:
            self._now_ms = self._ahead.popleft()
        return self._now_ms

    def plan(self, times_ms: Iterable[int]) -> None:
        """Give the next commands their times, in ms since the simulation's begin."""
        self._ahead.extend(START_MS + at_ms for at_ms in times_ms)
