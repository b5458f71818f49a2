"""What a lane has, how long its tasks took, and who uses it, as frozen values.

The rule: these are readings of one moment. `model.py` gives them with all other values.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane: `scheduled` devices can go now, `credits` tasks can be taken; `v` is virtual time.

    `starved` of them have waited for `starvation_after_ms` or more, the first for `waited_ms`.
    """

    name: str
    next_mac: str
    pending: int
    scheduled: int
    leased: int
    slots: int
    credits: int
    backoffs: int
    throttled: int
    sites: int
    v: int
    starved: int
    waited_ms: int


@dataclass(frozen=True, slots=True)
class Histogram:
    """How long something took in a lane: `counts` has one more than `bounds_ms`, for what is over.

    `what` is `wait` (from the acceptance of a task to the claim that led to its first start),
    `dispatch` (from a claim to the start), `run` (from the start of an attempt to its end) or
    `whole` (from the acceptance of a task to its end).
    """

    what: str
    lane: str
    bounds_ms: tuple[int, ...]
    counts: tuple[int, ...]
    sum_ms: int


@dataclass(frozen=True, slots=True)
class Share:
    """What a device that waits in a lane has used of the workers since it began to wait."""

    lane: str
    mac: str
    weight: float
    used_ms: int
