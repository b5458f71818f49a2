"""Workers that are killed, or told to stop: no task is lost, and none is done twice."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from fairlane import TaskType
from fairlane.model import TaskState
from support.eventually import eventually
from support.processes import COMMAND
from support.store import mac
from support.system import TEXT, System, running

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
        system.explained(lambda: all(len(system.starts(task_id)) == 2 for task_id in ids))
    records = system.ended(ids)
    assert [(r.state, r.attempt, r.failures) for r in records] == [(TaskState.DONE, 2, 1)] * 2
    assert all(record.worker != claimed.worker for record in records)
    for task_id in ids:
        first, second = (e.at_ms for e in system.events("started") if task_id in e.tasks[0])
        assert second - first < LEASE_MS + 2 * SWEEP_MS + 5_000
        assert len([e for e in system.events("done") if e.tasks == (task_id,)]) == 1
    assert len(system.workers()) == 1, "the row of a killed worker ends with its TTL"
    system.at_rest()
