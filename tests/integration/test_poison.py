"""Handlers that end badly: their tasks are dead with a cause, and the neighbours never notice."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

from fairlane import TaskType
from fairlane.model import TaskState
from fairlane.verbs.tasks import MAX_ERROR_CHARS
from support.eventually import eventually
from support.poison import LOST, POISONS
from support.processes import Program
from support.store import mac
from support.system import DISPATCH, TEXT, System, running

MAX_ATTEMPTS = 2
SLOTS = 2


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    with running(
        task_types=(TaskType("text", "text", TEXT),),
        max_attempts=MAX_ATTEMPTS,
        retry_backoff_base_ms=50,
    ) as system:
        system.worker("dispatcher", DISPATCH, slots=1, pool="solo")
        yield system


@pytest.fixture(scope="module")
def worker(system: System) -> Iterator[Program]:
    worker = system.worker("worker", TEXT, slots=SLOTS)
    yield worker
    assert worker.stop() == 0


@pytest.mark.parametrize("how", POISONS)
def test_its_task_is_dead_with_a_cause_and_the_others_are_done(
    system: System, worker: Program, how: str
) -> None:
    """A04, A05: exactly max_attempts starts, then a dead letter; other devices are unaffected."""
    cause = POISONS[how][1]
    task_id = system.do(mac(1), "poison", how=how)
    others = [system.do(mac(2 + number % 3)) for number in range(6)]
    (record,) = system.ended([task_id], 40.0)
    assert (record.state, record.cause) == (TaskState.DEAD, cause)
    assert record.failures == MAX_ATTEMPTS
    assert system.starts(task_id) == [f"{task_id}.{n + 1}" for n in range(MAX_ATTEMPTS)]
    assert record.error, "it says what happened"
    assert len(record.error) <= MAX_ERROR_CHARS
    assert {(r.state, r.failures) for r in system.ended(others)} == {(TaskState.DONE, 0)}
    if cause != LOST:
        ended = [event for event in system.events("lease_lost") if task_id in str(event.tasks)]
        assert not ended, "its own end was recorded, not awaited"


def test_the_worker_has_all_its_children_and_runs_on(system: System, worker: Program) -> None:
    main = psutil.Process(worker.pid)
    eventually(lambda: len(main.children()) == SLOTS, 30.0)
    with system.gated([mac(number) for number in range(SLOTS)]) as ids:
        pass
    assert {record.state for record in system.ended(ids)} == {TaskState.DONE}
    assert "no heartbeat" not in worker.output()
    assert max(map(len, worker.output().splitlines())) < 100_000, "no line of megabytes"
    system.at_rest()
