"""Workers and their children that are killed: the tasks run again elsewhere, and end once."""

from __future__ import annotations

import os
import signal
from typing import Any

import psutil
import pytest

from fairlane.model import TaskState
from support.eventually import eventually
from support.ledger import Judge
from support.processes import Program
from support.stage import LEASE_MS, SLACK_S, SWEEP_MS, Stage, staged
from support.store import mac
from support.tally import History, now_ms

#: Until a lost lease is noticed and its task goes to another worker.
LOST_S = (LEASE_MS + SWEEP_MS) / 1000 + SLACK_S


def row(identity: str, point: str, words: str, *marks: Any) -> Any:
    injected = f"kill -9 a worker's child {words}"
    fault = pytest.mark.fault(identity, injected, "the attempt is counted, the task ends once")
    return pytest.param(point, marks=[fault, *marks], id=point)


def children(worker: Program) -> list[int]:
    """Return the processes of a worker's pool."""
    return [child.pid for child in psutil.Process(worker.pid).children()]


@pytest.mark.parametrize(
    "point",
    [
        row("W1", "worker.before_start", "before the start is recorded"),
        row("W2", "worker.after_start", "between the start and the handler"),
        row("W3", "worker.before_finish", "after the effect, before the finish", pytest.mark.smoke),
        row("W4", "worker.after_finish", "after the finish, before the broker's ack"),
    ],
)
def test_a_child_is_killed(judge: Judge, point: str) -> None:
    """A03: on a worker that lives on, its task runs again at once."""
    with staged() as stage:
        system = stage.system
        stage.worker()
        stage.dispatcher()
        stage.tickets.issue(point)
        ids = stage.send(20)
        stage.tickets.redeemed(point)
        killed_ms, waiting = now_ms(system), stage.unstarted(ids)
        records = system.ended(ids, 60.0)
        assert {record.state for record in records} == {TaskState.DONE}
        hit = [record.task_id for record in records if record.attempt > 1] or waiting
        recovery_s = History.of(system).restarted_s(hit, killed_ms) if hit else None
        counted = judge.judge(system, recovery_s=recovery_s)
        repeated = {"worker.after_start": 1, "worker.before_finish": 1}.get(point, 0)
        assert counted.duplicate_starts == repeated


@pytest.mark.fault(
    "W5", "kill -9 a worker's child in the middle of a run", "attempt 2 runs at once; done"
)
def test_a_child_is_killed_in_the_middle_of_a_run(judge: Judge) -> None:
    """A03, A04: the worker reports the child's end itself, and nobody waits for the lease."""
    with staged(retry_backoff_base_ms=1) as stage:
        system = stage.system
        worker = stage.worker(slots=1)
        stage.dispatcher()
        with system.gated([mac(1)]) as (task_id,):
            (child,) = children(worker)
            killed_ms = now_ms(system)
            os.kill(child, signal.SIGKILL)
            system.explained(lambda: len(system.starts(task_id)) == 2, LOST_S)
        (record,) = system.ended([task_id])
        assert (record.state, record.attempt, record.failures) == (TaskState.DONE, 2, 1)
        judge.judge(system, recovery_s=History.of(system).restarted_s([task_id], killed_ms))


@pytest.mark.smoke
@pytest.mark.fault(
    "W6", "kill -9 a worker's main process (its children are orphans)",
    "its tasks start elsewhere ≤ lease + sweep",
)  # fmt: skip
def test_a_main_process_is_killed(judge: Judge) -> None:
    """A03, A07: the leases of what it ran pass, and another worker runs it."""
    with staged() as stage:
        system = stage.system
        killed = stage.worker("killed")
        stage.dispatcher()
        with system.gated([mac(1), mac(2)]) as ids:
            left = children(killed)
            stage.worker("other")
            killed_ms = now_ms(system)
            killed.kill()
            system.explained(lambda: all(len(system.starts(i)) == 2 for i in ids), LOST_S)
        records = system.ended(ids)
        assert [(r.state, r.attempt) for r in records] == [(TaskState.DONE, 2)] * 2
        recovery_s = History.of(system).restarted_s(ids, killed_ms)
        assert recovery_s < LOST_S
        eventually(lambda: not any(map(psutil.pid_exists, left)), 60.0)
        judge.judge(system, recovery_s=recovery_s)


@pytest.mark.fault(
    "W7", "kill -9 every worker, start none for three leases, then one",
    "the sweep alone takes all back; nothing is burnt while nobody is there",
)  # fmt: skip
def test_all_workers_are_killed_and_none_comes_for_a_while(judge: Judge) -> None:
    """A07: the tasks wait pending, their failures are the one lost start each."""
    with staged() as stage:
        system = stage.system
        killed = [stage.worker(f"killed-{at}") for at in range(2)]
        stage.dispatcher()
        with system.gated([mac(at) for at in range(4)]) as ids:
            more = stage.send(20)
            for worker in killed:
                worker.kill()
            gone_ms = now_ms(system)

            def waits() -> None:
                records = system.records([*ids, *more])
                assert {record.state for record in records} == {TaskState.PENDING}

            system.explained(waits, LOST_S)
            eventually(lambda: now_ms(system) > gone_ms + 3 * LEASE_MS, 60.0)
            waits()
            assert [record.failures for record in system.records(ids)] == [1] * 4
            assert {record.failures for record in system.records(more)} == {0}
            back_ms = now_ms(system)
            stage.worker("back", slots=4)
        records = system.ended([*ids, *more])
        assert {record.state for record in records} == {TaskState.DONE}
        judge.judge(system, recovery_s=History.of(system).restarted_s(ids, back_ms))


@pytest.mark.fault("W8", "SIGSTOP a worker, enqueue 50, kill -9 it, start another", "50 of 50 done")
def test_a_stopped_worker_is_killed_with_messages_in_hand(judge: Judge) -> None:
    """A02: what was published to it starts elsewhere once its leases have passed."""
    with staged() as stage:
        system = stage.system
        stopped = stage.worker("stopped")
        stage.dispatcher()
        system.ended(stage.send(1))
        stopped.send(signal.SIGSTOP)
        ids = stage.send(50)
        system.explained(lambda: system.lane().leased > 0)
        killed_ms = now_ms(system)
        stopped.kill()
        stage.worker("other")
        records = system.ended(ids, 120.0)
        assert {record.state for record in records} == {TaskState.DONE}
        judge.judge(system, recovery_s=History.of(system).restarted_s(ids, killed_ms))


@pytest.mark.smoke
@pytest.mark.fault(
    "W9", "SIGSTOP a whole worker past its lease, then SIGCONT",
    "its late end is refused (STALE_ATTEMPT); attempt 2's result stands",
)  # fmt: skip
def test_a_worker_stands_still_past_its_lease(judge: Judge) -> None:
    """A09: two handlers of one task end, the second attempt's result is recorded, once."""
    with staged() as stage:
        system = stage.system
        frozen = stage.worker("frozen", slots=1)
        stage.dispatcher()
        with system.gated([mac(1)]) as (task_id,):
            freeze(stage, frozen, signal.SIGSTOP)
            frozen_ms = now_ms(system)
            stage.worker("other", slots=1)
            system.explained(lambda: len(system.starts(task_id)) == 2, LOST_S)
        system.becomes(task_id, TaskState.DONE)
        freeze(stage, frozen, signal.SIGCONT)
        system.explained(lambda: f"end of {task_id}.1 is refused" in frozen.output(), 30.0)
        record = system.client.task(task_id)
        assert (record.state, record.attempt) == (TaskState.DONE, 2)
        assert system.noted(task_id) == [f"{task_id}.1", f"{task_id}.2"]
        judge.judge(system, recovery_s=History.of(system).restarted_s([task_id], frozen_ms))


def freeze(stage: Stage, worker: Program, number: signal.Signals) -> None:
    """Send a signal to a worker's main process and all its children."""
    for pid in [worker.pid, *children(worker)]:
        os.kill(pid, number)


@pytest.mark.parametrize(
    "point",
    [
        pytest.param(point, marks=pytest.mark.fault(
            identity, f"SIGSTOP one child {words} past the lease, then SIGCONT",
            "its worker lives, so the lease lives: one start, one end",
        ), id=point)
        for identity, point, words in (
            ("W10", "worker.after_start", "between start and handler"),
            ("W11", "worker.before_finish", "after the effect"),
        )
    ],
)  # fmt: skip
def test_a_child_stands_still_past_the_lease(judge: Judge, point: str) -> None:
    """A09: a slow child is not a lost one while its main process reports it."""
    with staged() as stage:
        system = stage.system
        worker = stage.worker(slots=1)
        stage.dispatcher()
        stage.tickets.issue(point, "freeze")
        ids = stage.send(3)
        stage.tickets.redeemed(point)
        frozen_ms = now_ms(system)
        eventually(lambda: now_ms(system) > frozen_ms + 2 * LEASE_MS, 60.0)
        for child in children(worker):
            os.kill(child, signal.SIGCONT)
        assert {record.state for record in system.ended(ids)} == {TaskState.DONE}
        counted = judge.judge(system)
        assert counted.duplicate_starts == 0
