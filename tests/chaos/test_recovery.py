"""Recovery at the default settings: what an operator may count on, in seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from fairlane.model import TaskState
from support.eventually import eventually
from support.ledger import Judge
from support.processes import Program
from support.stage import Stage
from support.store import mac
from support.system import DISPATCH, OCR, TEXT, System, running
from support.tally import UNTRIMMED, History, now_ms
from support.vanishing import vanish

KILLS: Final = 5
WORKER_S: Final = 45.0
DISPATCHER_S: Final = 30.0


@contextmanager
def at_defaults(**settings: Any) -> Iterator[Stage]:
    """Give a stage with every deadline as it is by default."""
    with running(events_maxlen=UNTRIMMED, **settings) as system:
        assert (system.settings.lease_ms, system.settings.heartbeat_every_ms) == (30_000, 15_000)
        assert (system.settings.sweep_every_ms, system.settings.dispatch_every_ms) == (5000, 15_000)
        yield Stage(system)


def leader(system: System, programs: list[Program]) -> Program | None:
    """Return the dispatcher that leads, if it is one of these."""
    holder = system.redis.get(system.client.keys.name("LEADER")) or ""
    pids = {str(program.pid): program for program in programs}
    return pids.get(holder.split(":")[1]) if holder else None


@pytest.mark.timeout(400)
@pytest.mark.fault(
    "R1", f"kill -9 {KILLS} workers in the middle of a run, default settings",
    f"their tasks start elsewhere ≤ {WORKER_S:g} s",
)  # fmt: skip
def test_the_tasks_of_killed_workers_start_elsewhere(judge: Judge) -> None:
    """A03: worker TTL and one sweep, never 100 s."""
    with at_defaults() as stage:
        system = stage.system
        stage.dispatcher()
        killed = [stage.worker(f"killed-{at}", slots=1) for at in range(KILLS)]
        history = []
        with system.gated([mac(at) for at in range(KILLS)]) as ids:
            stage.worker("other", slots=KILLS)
            by_pid = {record.worker.split(":")[1]: record.task_id for record in system.records(ids)}
            for worker in killed:
                history.append((by_pid[str(worker.pid)], now_ms(system)))
                worker.kill()
                # Each at another moment between two heartbeats.
                moved_ms = now_ms(system)
                eventually(lambda since=moved_ms: now_ms(system) > since + 2_000, 30.0)  # type: ignore[misc]
            system.explained(lambda: all(len(system.starts(i)) == 2 for i in ids), 120.0)
        system.ended(ids)
        told = History.of(system)
        recoveries = [told.restarted_s([task_id], at_ms) for task_id, at_ms in history]
        judge.note("each", ", ".join(f"{taken_s:.1f} s" for taken_s in recoveries))
        judge.judge(system, recovery_s=max(recoveries))
        assert max(recoveries) <= WORKER_S


@pytest.mark.timeout(600)
@pytest.mark.fault(
    "R2", f"kill -9 the leading dispatcher between claim and publish, {KILLS} times, defaults",
    f"its devices are served again ≤ {DISPATCHER_S:g} s; what it leased, ≤ {WORKER_S:g} s",
)  # fmt: skip
def test_the_devices_of_killed_dispatchers_are_served_again(judge: Judge) -> None:
    """A25: another dispatcher stands by, as in production."""
    with at_defaults() as stage:
        system, devices_s, tasks_s = stage.system, [], []
        stage.worker()
        programs = [stage.dispatcher("0"), stage.dispatcher("1")]
        for at in range(KILLS):
            eventually(lambda: leader(system, programs), 60.0)
            victim = leader(system, programs)
            assert victim is not None
            stage.tickets.issue("dispatcher.after_claim")
            ids = stage.send(20, devices=2)
            stage.tickets.redeemed("dispatcher.after_claim")
            killed_ms, hit = now_ms(system), stage.unstarted(ids)
            programs.append(stage.start_dispatcher(f"next-{at}"))
            system.ended(ids, 90.0)
            told = History.of(system)
            held = [i for i in hit if system.client.task(i).attempt > 1]
            free = [i for i in hit if i not in held]
            devices_s.append(told.restarted_s(free, killed_ms))
            tasks_s.append(told.restarted_s(held, killed_ms))
        judge.note("a device", ", ".join(f"{taken_s:.1f} s" for taken_s in devices_s))
        judge.note("what was leased", ", ".join(f"{taken_s:.1f} s" for taken_s in tasks_s))
        judge.judge(system, recovery_s=max(devices_s))
        assert max(devices_s) <= DISPATCHER_S
        assert max(tasks_s) <= WORKER_S


@pytest.mark.timeout(300)
@pytest.mark.fault(
    "R3", "a published message vanishes from the broker's list, default settings",
    f"it is published again, and starts ≤ {WORKER_S:g} s",
)  # fmt: skip
def test_a_message_that_vanished_is_published_again(judge: Judge) -> None:
    """A01."""
    with at_defaults() as stage:
        vanished_ms, hit = vanish(stage)
        assert {r.state for r in stage.system.ended(hit, 120.0)} == {TaskState.DONE}
        recovery_s = History.of(stage.system).restarted_s(hit, vanished_ms)
        judge.judge(stage.system, recovery_s=recovery_s)
        assert recovery_s <= WORKER_S


@pytest.mark.timeout(300)
@pytest.mark.fault(
    "R4", "kill -9 a dispatcher that holds a device's turn, `seed` preset, default settings",
    f"the device is served again ≤ {DISPATCHER_S:g} s, not 900 s",
)  # fmt: skip
def test_a_dispatcher_that_holds_a_device_is_killed(judge: Judge) -> None:
    """A25: the lock of the two-step turn ends with the turn's own lease."""
    with at_defaults(preset="seed") as stage:
        system = stage.system
        system.worker("worker", TEXT, OCR)
        killed = system.worker("killed", DISPATCH, slots=1, pool="solo")
        stage.tickets.issue("dispatcher.after_claim")
        ids = stage.send(5, devices=1)
        system.beat()
        stage.tickets.redeemed("dispatcher.after_claim", 60.0)
        killed_ms = now_ms(system)
        killed.wait()
        assert {record.state for record in system.records(ids)} == {TaskState.PENDING}
        system.worker("next", DISPATCH, slots=1, pool="solo")
        assert {r.state for r in system.ended(ids, 120.0)} == {TaskState.DONE}
        # The first one tells when the device is served again; a batch takes them all.
        recovery_s = History.of(system).restarted_s(ids, killed_ms)
        judge.judge(system, recovery_s=recovery_s)
        assert recovery_s <= DISPATCHER_S
