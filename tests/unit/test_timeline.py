"""What happened to a task, in order of time."""

from __future__ import annotations

from dataclasses import replace

from fairlane.model import TaskRecord, TaskState
from fairlane.timeline import timeline

ACCEPTED = TaskRecord("t", TaskState.PENDING, "text", "m", "text", 100, 900, 0, 0, 0, 0, b"{}")
RUNNING = replace(
    ACCEPTED, state=TaskState.RUNNING, attempt=1, claimed_at_ms=110, started_at_ms=120, worker="w"
)


def events(record: TaskRecord) -> list[tuple[str, int, int]]:
    return [(each.event, each.at_ms, each.attempt) for each in timeline(record)]


def test_a_life_step_by_step() -> None:
    assert events(ACCEPTED) == [("accepted", 100, 0)]
    assert events(RUNNING) == [("accepted", 100, 0), ("claimed", 110, 1), ("started", 120, 1)]
    assert timeline(RUNNING)[-1].worker == "w"
    done = replace(RUNNING, state=TaskState.DONE, ended_at_ms=130)
    assert events(done)[-1] == ("done", 130, 1)


def test_a_start_of_an_earlier_attempt_is_not_told_as_this_ones() -> None:
    again = replace(RUNNING, state=TaskState.LEASED, attempt=2, claimed_at_ms=200, failures=1)
    assert events(again) == [("accepted", 100, 0), ("claimed", 200, 2)]
    assert timeline(again)[-1].detail == "after 1 earlier"


def test_what_an_attempt_came_to_is_not_told_before_it() -> None:
    once = replace(RUNNING, state=TaskState.FAILED, failures=1, cause="bad", ended_at_ms=130)
    assert [(each.event, each.detail) for each in timeline(once)[1:]] == [
        ("claimed", ""), ("started", ""), ("failed", "bad"),
    ]  # fmt: skip


def test_why_it_ended_or_waits() -> None:
    dead = replace(RUNNING, state=TaskState.DEAD, cause="boom", error="a\nlast", ended_at_ms=1)
    assert timeline(dead)[-1].detail == "boom: last"
    waits = replace(RUNNING, state=TaskState.DELAYED, due_at_ms=500, error="model not loaded")
    assert events(waits)[-1] == ("due", 500, 0)
    assert timeline(waits)[-1].detail == "model not loaded"
