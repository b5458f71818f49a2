"""What the stateful test's oracle keeps of a task, a device and a turn. Times are milliseconds.

The rule: plain values; what happens to them is said in `book.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Entry:
    """A task; `number` is its place among all that were accepted."""

    task_id: str
    mac: str
    lane: str
    task_type: str
    payload: str
    created_at: int
    expires_at: int
    number: int
    state: str = "pending"
    attempt: int = 0
    failures: int = 0
    defers: int = 0
    misses: int = 0
    lease_until: int = 0
    started_at: int = 0
    due_at: int = 0
    run_id: str = ""
    came_back: bool = False
    #: The site that a dead task would come back to.
    site: str = ""
    ended_by: str = ""


@dataclass
class Limits:
    """What was configured of a device."""

    weight: float = 1.0
    paused: bool = False
    min_running: int = 0
    max_running: int = 0
    rate: float = 0.0
    site: str = ""
    #: When its tasks were leased since the rate is what it is.
    leased_at: list[int] = field(default_factory=list)


@dataclass
class Turn:
    """An open two-step turn."""

    token: str
    deadline: int
