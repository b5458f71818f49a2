"""What a task costs: the worker time that it is estimated to take, and what was learnt of others.

The rule: the estimate is the mean run time of the type and size, or the device's own of the type if
that is longer; 10 ms while nothing ran. A caller's estimate counts within ¼ to 4 times that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

UNITS_PER_MS: Final = 16_000
UNKNOWN_MS: Final = 10
_WEIGHT_OF_NEW: Final = 0.1


@dataclass
class Job:
    """A task; `paid` is what its device was charged for it, 0 for nothing."""

    task_id: str
    mac: str
    created_at: int
    task_type: str
    size: int
    cost_ms: int = 0
    where: Literal["queued", "leased", "running", "delayed", "over"] = "queued"
    paid: int = 0
    attempt: int = 0
    failures: int = 0
    defers: int = 0
    misses: int = 0
    started_at: int = 0
    due: int = 0
    lease_until: int = 0


def used_until(job: Job, now: int) -> int:
    """Return what a run has used, at least a millisecond, nothing before its start."""
    return max(1, now - job.started_at) * UNITS_PER_MS if job.where == "running" else 0


class Means:
    """Moving averages of run times, kept to a thousandth of a millisecond."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, ...], float] = {}

    def learn(self, job: Job, ran_ms: int, has_tasks: bool) -> None:
        """Note how long a task ran; of its device only while that has tasks."""
        keys = [(job.task_type, str(job.size)), (job.task_type,)]
        if has_tasks:
            keys.append(("own", job.mac, job.task_type))
        for key in keys:
            mean = self._of.get(key, max(1, ran_ms))
            self._of[key] = float(f"{mean + (max(1, ran_ms) - mean) * _WEIGHT_OF_NEW:.3f}")

    def forget(self, mac: str) -> None:
        """A device has no tasks any more."""
        self._of = {key: mean for key, mean in self._of.items() if key[:2] != ("own", mac)}

    def estimate(self, job: Job) -> int:
        """Return what a task is charged before it runs."""
        mean = self._of.get((job.task_type, str(job.size)), self._of.get((job.task_type,), 0.0))
        ms = max(mean, self._of.get(("own", job.mac, job.task_type), 0.0))
        if job.cost_ms:
            ms = max(ms / 4, min(ms * 4, job.cost_ms)) if ms else job.cost_ms
        return max(1, math.floor((ms or UNKNOWN_MS) * UNITS_PER_MS))


def size_class(payload_bytes: int) -> int:
    """Return 0 up to 1 KiB, and one more for each factor of four."""
    size = 0
    while payload_bytes > 1024 * 4**size:
        size += 1
    return size
