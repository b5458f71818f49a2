"""What happened to a task, in order of time, as its record tells it.

The rule: nothing is told that the record does not say. It keeps the times of the last attempt only;
of earlier ones it says how many there were.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlane.model import TERMINAL, TaskRecord, TaskState


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened to a task at `at_ms`; 0 for what is to come when nobody knows."""

    event: str
    at_ms: int
    attempt: int = 0
    worker: str = ""
    detail: str = ""


def timeline(record: TaskRecord) -> tuple[Happening, ...]:
    """Return what happened to a task: accepted, claimed, started, ended; and what it waits for."""
    attempt = record.attempt
    told = [Happening("accepted", record.created_at_ms, detail=f"in lane {record.lane}")]
    if record.claimed_at_ms:
        earlier = f"after {attempt - 1} earlier" if attempt > 1 else ""
        told.append(Happening("claimed", record.claimed_at_ms, attempt, detail=earlier))
    if record.started_at_ms >= record.claimed_at_ms > 0:
        told.append(Happening("started", record.started_at_ms, attempt, record.worker))
    if record.state in TERMINAL:
        told.append(Happening(record.state.value, record.ended_at_ms, attempt, detail=_why(record)))
    elif record.state is TaskState.DELAYED:
        told.append(Happening("due", record.due_at_ms, detail=_why(record)))
    return tuple(told)


def _why(record: TaskRecord) -> str:
    last = record.error.strip().rpartition("\n")[2][:200]
    return ": ".join(filter(None, (record.cause, last)))
