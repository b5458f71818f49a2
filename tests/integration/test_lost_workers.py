"""Workers that are killed, or told to stop: no task is lost, and none is done twice."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator

import psutil
import pytest

from fairlane import TaskType
from fairlane.model import TaskState
from fairlane.verbs import Claim, Deregister, Heartbeat, Start
from support.eventually import eventually
from support.processes import COMMAND
from support.store import mac
from support.system import DISPATCH, TEXT, System, running

LEASE_MS = 1_500
SWEEP_MS = 500


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    with running(
        task_types=(TaskType("text", "text", TEXT),),
        lease_ms=LEASE_MS,
        heartbeat_every_ms=400,
        sweep_every_ms=SWEEP_MS,
    ) as system:
        system.start("dispatcher", *COMMAND, "dispatcher")
        yield system


@pytest.fixture(autouse=True)
def _alone(system: System) -> Iterator[None]:
    """Let no test find the workers of the one before it."""
    yield
    for program in system.programs[1:]:
        program.end()
    del system.programs[1:]
    for row in system.workers():
        system.client.run(Deregister(row.worker_id))


def test_a_worker_that_is_told_to_stop_ends_its_task_first_and_keeps_its_lease(
    system: System,
) -> None:
    worker = system.worker("worker", TEXT)
    with system.gated([mac(1)]) as (task_id,):
        worker.send(signal.SIGTERM)
        eventually(lambda: system.lane().slots == 0)
        late = system.do(mac(2))
        lease = system.client.keys.lane("INFLIGHT", "text")
        at_first = system.redis.zscore(lease, task_id)
        # Longer than the lease would last alone: only heartbeats carry it there.
        system.explained(lambda: system.redis.zscore(lease, task_id) > at_first + 1.2 * LEASE_MS)
        (row,) = system.workers()
        assert (row.active, row.reason) == (1, "shutting down")
    assert worker.wait() == 0
    (record,) = system.records([task_id])
    assert (record.state, record.attempt, record.failures) == (TaskState.DONE, 1, 0)
    assert system.noted(task_id) == [f"{task_id}.1"]
    assert not system.workers()
    assert system.client.task(late).state is TaskState.PENDING
    system.client.cancel(late)
    system.at_rest()


def test_the_tasks_of_a_killed_worker_run_again_on_another(system: System) -> None:
    killed = system.worker("killed", TEXT)
    with system.gated([mac(1), mac(2)]) as ids:
        system.worker("other", TEXT)
        claimed = system.client.task(ids[0])
        killed.kill()
        seconds, micros = system.redis.time()
        system.explained(lambda: all(len(system.starts(task_id)) == 2 for task_id in ids), 30.0)
    records = system.ended(ids)
    assert [(r.state, r.attempt, r.failures) for r in records] == [(TaskState.DONE, 2, 1)] * 2
    assert all(record.worker != claimed.worker for record in records)
    for task_id in ids:
        _, second = (e.at_ms for e in system.events("started") if task_id in e.tasks[0])
        assert second - seconds * 1000 - micros // 1000 < LEASE_MS + 2 * SWEEP_MS + 5_000
        assert len([e for e in system.events("done") if e.tasks == (task_id,)]) == 1
    assert len(system.workers()) == 1, "the row of a killed worker ends with its TTL"
    system.at_rest()


def test_two_workers_of_one_host_and_pid_are_two_and_the_dead_ones_tasks_come_back(
    system: System,
) -> None:
    """A46: a container uses a hostname and a pid again, not the nonce."""
    client, task_id = system.client, system.do(mac(1))
    (leased,) = client.run(Claim("text", 1)).leased
    dead, living = "host:1:dead", "host:1:living"
    client.run(Heartbeat(dead, ["text"], 1))
    client.run(Heartbeat(living, ["text"], 1))
    assert {row.worker_id for row in system.workers()} == {dead, living}
    client.run(Start(task_id, leased.attempt, dead, "run"))

    def is_taken_back() -> bool:
        # The living one reports on, and says nothing of the dead one's task.
        client.run(Heartbeat(living, ["text"], 0))
        return client.task(task_id).state is TaskState.PENDING

    eventually(is_taken_back, 30.0)
    eventually(lambda: {row.worker_id for row in system.workers()} == {living}, 30.0)
    assert client.task(task_id).failures == 1
    client.run(Deregister(living))
    client.cancel(task_id)
    system.at_rest()


def test_a_worker_that_stands_still_and_is_killed_costs_no_task(system: System) -> None:
    """A02: what was handed to it is published again, as often as it takes."""
    frozen = system.worker("frozen", TEXT)
    frozen.send(signal.SIGSTOP)
    sent = [system.do(mac(number % 5)) for number in range(50)]
    system.explained(lambda: system.lane().leased > 0)
    frozen.kill()
    system.worker("next", TEXT)
    assert {record.state for record in system.ended(sent, 60.0)} == {TaskState.DONE}
    system.at_rest()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_a_killed_worker_takes_its_children_along(system: System) -> None:
    killed = system.worker("parent", TEXT)
    children = psutil.Process(killed.pid).children()
    assert len(children) == 2
    with system.gated([mac(1)]) as (task_id,):
        system.worker("other", TEXT)
        killed.kill()
        eventually(lambda: not any(is_alive(child) for child in children), 30.0)
        # Nobody else runs it: whoever waits for the gate now is the next attempt.
        system.explained(lambda: len(system.starts(task_id)) == 2, 30.0)
    (record,) = system.ended([task_id])
    assert (record.state, record.attempt, record.failures) == (TaskState.DONE, 2, 1)
    assert system.noted(task_id) == [f"{task_id}.1", f"{task_id}.2"]


def is_alive(process: psutil.Process) -> bool:
    """Whether a process runs; one that ended may stand in the list until somebody asks for it."""
    return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)


def test_a_worker_that_is_told_to_stop_gives_up_its_lead_at_once() -> None:
    with running(task_types=(TaskType("text", "text", TEXT),)) as system:
        worker = system.worker("both", TEXT, DISPATCH)
        leader = system.client.keys.name("LEADER")
        eventually(lambda: system.redis.get(leader))
        with system.gated([mac(1)]) as (task_id,):
            worker.send(signal.SIGTERM)
            eventually(lambda: not system.redis.get(leader))
            assert system.client.task(task_id).state is TaskState.RUNNING
        assert worker.wait() == 0
        (record,) = system.records([task_id])
        assert (record.state, record.attempt) == (TaskState.DONE, 1)
