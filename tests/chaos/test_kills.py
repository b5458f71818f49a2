"""Random kills, one before the system has recovered from the last."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest

from fairlane.model import TaskState
from fairlane.verbs import InspectTotals
from support.ledger import Judge
from support.reaper import Reaper
from support.stage import SLACK_S, Stage, staged
from support.store import mac
from support.tally import History, now_ms

#: No task may die of kills alone here: each of them must be done.
ENDURING: dict[str, Any] = {
    "max_attempts": 1_000,
    "retry_backoff_base_ms": 50,
    "defer_backoff_base_ms": 200,
    "defer_backoff_max_ms": 200,
}
BACKLOG = 120


def kill(stage: Stage, reaper: Reaper, count: int, *, most_s: float) -> None:
    """Kill so many processes at random; every counter stays at or above zero all the while."""
    while reaper.kills.total() < count:
        time.sleep(reaper.pause_s(most_s))
        reaper.revive()
        reaper.strike()
        assert not negative(stage)
    reaper.revive()


def negative(stage: Stage) -> dict[str, int]:
    """Return the counters that are below zero: none, ever."""
    system = stage.system
    totals = system.client.run(InspectTotals())
    counts = {"pending": totals.pending, "leased": totals.leased, "delayed": totals.delayed}
    for at in range(20):
        device = system.client.device(mac(at))
        counts[f"device {at} pending"], counts[f"device {at} leased"] = (
            device.pending,
            device.leased,
        )
    return {name: count for name, count in counts.items() if count < 0}


@pytest.mark.timeout(3_000)
@pytest.mark.fault(
    "K1", "500 kills -9 at random (children, workers, dispatchers), overlapping, worker TTL 2 s",
    "every task is done, once",
)  # fmt: skip
def test_five_hundred_random_kills(judge: Judge) -> None:
    """A26: no kill waits for the recovery from the one before it."""
    with staged(lease_ms=2_000, heartbeat_every_ms=500, **ENDURING) as stage:
        system, ids = stage.system, []
        reaper = Reaper(stage, seed=1)
        for target in range(5, 501, 5):
            lacking = BACKLOG - system.client.run(InspectTotals()).pending
            if lacking > 0:
                ids += stage.send(lacking, devices=20, do="linger", seconds=0.3)
            # Whoever is killed has work in hand.
            system.explained(lambda: system.lane().leased > 0, 120.0)
            kill(stage, reaper, target, most_s=0.8)
        assert {record.state for record in system.ended(ids, 600.0)} == {TaskState.DONE}
        judge.note("kills", ", ".join(f"{part} {n}" for part, n in sorted(reaper.kills.items())))
        judge.judge(system)


@pytest.mark.timeout(3_000)
@pytest.mark.fault(
    "K2", "10,000 tasks, 200 kills -9 at random",
    "counters never negative, and equal to the lists at rest; every task is done, once",
)  # fmt: skip
def test_ten_thousand_tasks_and_two_hundred_kills(judge: Judge) -> None:
    """A26."""
    limits: dict[str, Any] = {"max_per_mac_pending": 1_000, "max_total_pending": 20_000}
    with staged(**ENDURING, **limits) as stage:
        ids = stage.send(10_000, devices=20)
        reaper = Reaper(stage, seed=2)
        kill(stage, reaper, 200, most_s=0.5)
        records = stage.system.ended(ids, 1_200.0)
        assert {record.state for record in records} == {TaskState.DONE}
        judge.note("kills", ", ".join(f"{part} {n}" for part, n in sorted(reaper.kills.items())))
        judge.judge(stage.system)


@pytest.mark.timeout(1_200)
@pytest.mark.fault(
    "K3", "50 workers killed at the instant that a message is published to them",
    "what was handed to the dead starts elsewhere ≤ lease + sweep",
)  # fmt: skip
def test_fifty_kills_at_the_instant_of_a_publish(judge: Judge) -> None:
    """A02, A03: a message that went into a dead process's socket is published again."""
    with staged(**ENDURING) as stage:
        system, recoveries, deaths = stage.system, [], Counter[str]()
        stage.dispatcher()
        for at in range(5):
            victims = [stage.worker(f"victim-{at}-{n}", slots=1) for n in range(10)]
            ids = stage.send(30, devices=10)
            system.explained(lambda ids=ids: system.lane().leased > 0)  # type: ignore[misc]
            for victim in victims:
                victim.kill()
                deaths["killed"] += 1
            killed_ms = now_ms(system)
            rescuer = stage.worker(f"rescuer-{at}", slots=4)
            hit = stage.unstarted(ids)
            assert {r.state for r in system.ended(ids, 120.0)} == {TaskState.DONE}
            if hit:
                recoveries.append(History.of(system).restarted_s(hit, killed_ms))
            rescuer.stop(60.0)
            for victim in victims:
                victim.end()
                system.programs.remove(victim)
        assert deaths["killed"] == 50
        judge.judge(system, recovery_s=max(recoveries, default=0.0))
        assert max(recoveries, default=0.0) < 2.5 + 2 * SLACK_S
