"""Jain's index: how evenly the devices that waited were served.

The rule: only devices are compared that waited in both of two looks, for what each used between
them by its weight; whoever had nothing left meanwhile was served whole, and cannot complain.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from fairlane.model import Share

#: Two looks that are nearer tell little: few tasks end between them.
APART_S: Final = 10.0


class Shares:
    """Remember what devices had used at the last look, and compare."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._before: dict[tuple[str, str], int] = {}
        self._looked_at = 0.0
        self._index: dict[str, float] = {}

    def index(self, shares: Sequence[Share]) -> dict[str, float]:
        """Return Jain's index per lane where at least two devices waited and something ran.

        Looks less than `APART_S` apart get the answer of the last.
        """
        now = self._clock()
        if self._looked_at and now - self._looked_at < APART_S:
            return self._index
        got: dict[str, list[float]] = {}
        for share in shares:
            before = self._before.get((share.lane, share.mac))
            if before is not None and share.used_ms >= before:
                got.setdefault(share.lane, []).append((share.used_ms - before) / share.weight)
        self._index = {
            lane: jain(each) for lane, each in got.items() if len(each) > 1 and any(each)
        }
        self._before = {(share.lane, share.mac): share.used_ms for share in shares}
        self._looked_at = now
        return self._index


def jain(each: Sequence[float]) -> float:
    """Return (Σx)² / (n Σx²): 1 when all got the same, 1/n when one got all."""
    return sum(each) ** 2 / (len(each) * sum(one * one for one in each))
