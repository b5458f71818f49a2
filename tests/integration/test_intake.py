"""What stands in a Celery queue and is no message of ours: refused, told once, and no harm done."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psutil
import pytest

from fairlane import TaskType
from fairlane.model import TaskState
from support.messages import UNKNOWN, UNREADABLE
from support.processes import Program
from support.store import mac
from support.system import DISPATCH, TEXT, System, running

TYPES = (TaskType("text", "text", TEXT),)
LOUD = re.compile(r"^\[.{10,30}(ERROR|CRITICAL)/")


@pytest.fixture(scope="module", params=["prefork", "threads", "solo"])
def pool(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    with running(task_types=TYPES) as system:
        system.worker("dispatcher", DISPATCH, slots=1, pool="solo")
        yield system


@pytest.fixture(scope="module")
def worker(system: System, pool: str) -> Iterator[Program]:
    worker = system.worker(pool, TEXT, slots=2, pool=pool)
    yield worker
    worker.stop()


def test_each_is_refused_with_one_line_and_the_next_task_is_done(
    system: System, worker: Program
) -> None:
    """The kind of facts K08 and K09: one bad item ended the worker process."""
    children = psutil.Process(worker.pid).children()
    for what, item in UNREADABLE.items():
        said = len(worker.output())
        system.broker.lpush(TEXT, item)
        (record,) = system.ended([system.do(mac(1))])
        assert (record.state, record.attempt) == (TaskState.DONE, 1), what
        told = [line for line in worker.output()[said:].splitlines() if LOUD.search(line)]
        assert len(told) == 1, (what, told)
    assert psutil.Process(worker.pid).children() == children
    assert system.broker.llen(TEXT) == 0
    assert len(system.workers()) == 2, "the worker reports on"


def test_an_attempt_that_there_never_was_is_not_run(system: System, worker: Program) -> None:
    system.broker.lpush(TEXT, UNKNOWN)
    system.explained(lambda: "attempt x.1 is not run" in worker.output())
    (record,) = system.ended([system.do(mac(1))])
    assert record.state is TaskState.DONE


def test_a_pool_that_cannot_end_a_handler_says_so_at_its_start(worker: Program, pool: str) -> None:
    assert ("has no hard time limit" in worker.output()) == (pool != "prefork")


@pytest.mark.usefixtures("worker")
def test_all_slots_are_still_there(system: System, pool: str) -> None:
    """A message that Celery took apart half way would have kept a slot for ever."""
    slots = system.lane().slots
    assert slots == (1 if pool == "solo" else 2)
    with system.gated([mac(number) for number in range(slots)]) as ids:
        assert {record.state for record in system.records(ids)} == {TaskState.RUNNING}
    assert {record.state for record in system.ended(ids)} == {TaskState.DONE}


def test_garbage_on_the_control_channel_does_no_harm(system: System, worker: Program) -> None:
    for channel in system.broker.pubsub_channels():
        for item in UNREADABLE.values():
            system.broker.publish(channel, item)
    (record,) = system.ended([system.do(mac(1))])
    assert record.state is TaskState.DONE
    assert psutil.pid_exists(worker.pid)
