"""When a task will start: from what is served before it, and how fast its lane serves.

The rule: no I/O. The median takes the backlog as it is; the 90th percentile takes it that nobody
who is served sooner runs out of tasks, that run times vary as much as they are long, and that
newcomers go first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

#: Of a normal distribution.
_P90: Final = 1.2816
#: Tasks that are not there yet may go first: in simulated floods these took up to a quarter.
_NEWCOMERS: Final = 1.25


@dataclass(frozen=True, slots=True)
class Ahead:
    """What stands between a task and its start: tasks and ms of work, and ms of work at most."""

    tasks: float
    work_ms: float
    most_ms: float


@dataclass(frozen=True, slots=True)
class Served:
    """How a lane serves: slots that count for it, what is leased, mean ms of a run."""

    slots: float
    leased: int
    run_ms: float


def start_in_ms(ahead: Ahead, served: Served) -> tuple[float, float] | None:
    """Return in how many ms a task will start, p50 and p90; None when nothing serves it.

    A slot is half way through its task, on the average, and what is leased beyond the slots waits
    in the broker and goes first.
    """
    if served.slots <= 0:
        return None
    in_hand = served.leased - served.slots + 0.5
    likely = max(0.0, (ahead.work_ms + in_hand * served.run_ms) / served.slots)
    at_most = max(likely, (ahead.most_ms + in_hand * served.run_ms) / served.slots)
    spread = _P90 * served.run_ms * math.sqrt(max(1.0, ahead.tasks + in_hand)) / served.slots
    return likely, max(at_most, likely + spread, likely * _NEWCOMERS)
