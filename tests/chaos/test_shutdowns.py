"""Workers that are told to stop, fall silent or fork for every task."""

from __future__ import annotations

import signal

import pytest

from fairlane.model import TaskState
from support.eventually import eventually
from support.ledger import Judge
from support.stage import LEASE_MS, SLACK_S, staged
from support.store import mac
from support.system import TEXT
from support.tally import History, now_ms

ROUNDS = 6


@pytest.mark.timeout(300)
@pytest.mark.fault(
    "W12", f"SIGTERM under load, {ROUNDS} times, another worker in its place each time",
    "each ends with status 0; no task is started twice",
)  # fmt: skip
def test_rolling_restarts_under_load(judge: Judge) -> None:
    """A06: tasks that end in the last second of a warm shutdown are recorded once."""
    with staged(max_per_mac_pending=10_000, max_total_pending=10_000) as stage:
        system = stage.system
        worker = stage.worker("0")
        stage.dispatcher()
        ids = stage.send(2_000, devices=20, do="linger", seconds=0.02)
        for at in range(1, ROUNDS + 1):
            following = stage.worker(str(at))
            worker.send(signal.SIGTERM)
            assert worker.wait(60.0) == 0
            worker = following
        records = system.ended(ids, 180.0)
        assert {record.state for record in records} == {TaskState.DONE}
        counted = judge.judge(system)
        assert counted.duplicate_starts == 0


@pytest.mark.fault(
    "W13", "SIGTERM while a task runs into its last second",
    "the task ends first, once; the worker ends with status 0",
)  # fmt: skip
def test_a_task_ends_while_its_worker_is_told_to_stop(judge: Judge) -> None:
    """A06: one completion; attempts stay at 1 though the shutdown outlasts the lease."""
    with staged() as stage:
        system = stage.system
        worker = stage.worker()
        stage.dispatcher()
        with system.gated([mac(1), mac(2)]) as ids:
            worker.send(signal.SIGTERM)
            told_ms = now_ms(system)
            eventually(lambda: now_ms(system) > told_ms + 2 * LEASE_MS, 60.0)
        assert worker.wait(60.0) == 0
        records = system.records(ids)
        assert [(r.state, r.attempt) for r in records] == [(TaskState.DONE, 1)] * 2
        judge.judge(system)


@pytest.mark.fault(
    "W14", "the heartbeat thread of a worker is dead while the worker works",
    "its leases pass, its slots are gone, late ends are refused; the others do the work",
)  # fmt: skip
def test_a_worker_falls_silent(judge: Judge) -> None:
    """A09: who is not heard of is lost; its running task is another worker's, and ends once."""
    with staged() as stage:
        system = stage.system
        stage.dispatcher()
        silent = system.worker("silent", TEXT, app="support.silent", slots=1)
        with system.gated([mac(1)]) as (task_id,):
            silent_ms = now_ms(system)
            stage.worker("other")
            limit_s = LEASE_MS / 1000 + SLACK_S
            system.explained(lambda: len(system.starts(task_id)) == 2, limit_s)
            assert system.lane().slots == 2, "a silent worker offers nothing"
        system.explained(lambda: f"end of {task_id}.1 is refused" in silent.output(), 30.0)
        record = system.client.task(task_id)
        assert (record.state, record.attempt) == (TaskState.DONE, 2)
        more = stage.send(20)
        assert {record.state for record in system.ended(more)} == {TaskState.DONE}
        judge.judge(system, recovery_s=History.of(system).restarted_s([task_id], silent_ms))


@pytest.mark.timeout(600)
@pytest.mark.fault(
    "W15", "a pool that forks a child for every task beside the heartbeat thread, 500 tasks",
    "no child is stuck: every task starts once and is done",
)  # fmt: skip
def test_a_pool_forks_a_child_for_every_task(judge: Judge) -> None:
    """A23: a fork never copies a lock that the heartbeat's thread holds."""
    # A lease that leaves time to fork: what is measured is the forks, not the leases.
    with staged(lease_ms=30_000, heartbeat_every_ms=100, max_per_mac_pending=1_000) as stage:
        system = stage.system
        # Celery looks once in 0.8 s for children to replace.
        system.worker("forking", TEXT, slots=8, arguments=["--max-tasks-per-child=1"])
        stage.dispatcher()
        ids = stage.send(500)
        records = system.ended(ids, 500.0)
        assert {(r.state, r.failures) for r in records} == {(TaskState.DONE, 0)}
        counted = judge.judge(system)
        assert counted.duplicate_starts == 0
