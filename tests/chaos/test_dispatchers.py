"""Dispatchers that are killed or stand still: what they leased and what waits is served again."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from fairlane.model import TaskState
from support.ledger import Judge
from support.stage import LEASE_MS, SLACK_S, SWEEP_MS, staged
from support.tally import History, now_ms
from support.vanishing import vanish


def row(identity: str, point: str, words: str, *marks: Any) -> Any:
    fault = pytest.mark.fault(
        identity, f"kill -9 the dispatcher {words}", "what it had leased starts ≤ lease + sweep"
    )
    return pytest.param(point, marks=[fault, *marks], id=point)


@pytest.mark.parametrize(
    "point",
    [
        row("D1", "dispatcher.before_claim", "before the claim"),
        row("D2", "dispatcher.after_claim", "between the claim and the publish", pytest.mark.smoke),
        row("D3", "dispatcher.after_publish", "after the publish"),
    ],
)
def test_a_dispatcher_is_killed(judge: Judge, point: str) -> None:
    """A01: the tasks are pending or leased all the while, and run within lease and sweep."""
    with staged() as stage:
        system = stage.system
        stage.worker()
        killed = stage.dispatcher("killed")
        stage.tickets.issue(point)
        ids = stage.send(20)
        stage.tickets.redeemed(point)
        killed.wait()
        killed_ms = now_ms(system)
        states = {record.state for record in system.records(ids)}
        assert states <= {TaskState.PENDING, TaskState.LEASED, TaskState.RUNNING, TaskState.DONE}
        hit = stage.unstarted(ids)
        stage.dispatcher("next")
        records = system.ended(ids, 60.0)
        assert {record.state for record in records} == {TaskState.DONE}
        recovery_s = History.of(system).restarted_s(hit, killed_ms)
        # The one that follows waits for the lead of the one that was killed: 9 s, and 1 s to look.
        assert recovery_s < 10 + (LEASE_MS + SWEEP_MS) / 1000 + SLACK_S
        judge.judge(system, recovery_s=recovery_s)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "point",
    [
        pytest.param(point, marks=pytest.mark.fault(
            identity, f"SIGSTOP the leading dispatcher {words} past its lease, then SIGCONT",
            "another one leads; what comes late starts nothing twice",
        ), id=point)
        for identity, point, words in (
            ("D4", "dispatcher.before_claim", "before the claim"),
            ("D5", "dispatcher.after_claim", "between the claim and the publish"),
        )
    ],
)  # fmt: skip
def test_a_dispatcher_stands_still(judge: Judge, point: str) -> None:
    """A09, A28: its late messages name attempts that are over, and its late claim is one more."""
    with staged() as stage:
        system = stage.system
        stage.worker()
        frozen = stage.dispatcher("frozen")
        stage.tickets.issue(point, "freeze")
        ids = stage.send(20)
        stage.tickets.redeemed(point)
        frozen_ms, hit = now_ms(system), stage.unstarted(ids)
        stage.dispatcher("next")
        assert {record.state for record in system.ended(ids, 60.0)} == {TaskState.DONE}
        recovery_s = History.of(system).restarted_s(hit, frozen_ms)
        frozen.send(signal.SIGCONT)
        more = stage.send(20)
        assert {record.state for record in system.ended(more, 60.0)} == {TaskState.DONE}
        system.explained(lambda: "stands by" in frozen.output(), 30.0)
        counted = judge.judge(system, recovery_s=recovery_s)
        assert counted.duplicate_starts == 0


@pytest.mark.timeout(300)
@pytest.mark.fault(
    "D6", "a published message vanishes from the broker's list",
    "it is published again ≤ lease + sweep, and starts once",
)  # fmt: skip
def test_a_published_message_vanishes(judge: Judge) -> None:
    """A01: the record is the truth, the message a hint."""
    with staged() as stage:
        system = stage.system
        vanished_ms, hit = vanish(stage)
        assert {record.state for record in system.ended(hit, 60.0)} == {TaskState.DONE}
        recovery_s = History.of(system).restarted_s(hit, vanished_ms)
        counted = judge.judge(system, recovery_s=recovery_s)
        assert counted.duplicate_starts == 0
