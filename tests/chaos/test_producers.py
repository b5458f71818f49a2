"""Producers that are killed around the call that stores a task."""

from __future__ import annotations

import json
import sys

import pytest

from fairlane.errors import NotFound
from fairlane.ids import new_task_id
from fairlane.model import TaskState
from support.eventually import eventually
from support.ledger import Judge
from support.processes import Program
from support.stage import Stage, staged
from support.store import mac
from support.tally import History, now_ms

PROMISE = "stored or not stored, never in between; a re-send with the same id is one task"


def producer(stage: Stage, name: str, ids: list[str]) -> Program:
    """Start a producer of some tasks of one device."""
    given = {"ids": ids, "mac": mac(1), "data": stage.noting()}
    return stage.system.start(name, sys.executable, "-m", "support.sender", json.dumps(given))


def receipts(producer: Program, ids: list[str]) -> list[str]:
    """Return the tasks that a producer was told of."""
    return [line for line in producer.output().splitlines() if line in ids]


@pytest.mark.parametrize(
    ("point", "is_stored"),
    [
        pytest.param(
            "client.before_enqueue", False, id="before",
            marks=pytest.mark.fault("P1", "kill -9 a producer before the call", PROMISE),
        ),
        pytest.param(
            "client.after_enqueue", True, id="after", marks=[
                pytest.mark.fault("P2", "kill -9 a producer after the call", PROMISE),
                pytest.mark.smoke,
            ],
        ),
    ],
)  # fmt: skip
def test_a_producer_is_killed(judge: Judge, point: str, is_stored: bool) -> None:
    """A11: what its successor sends again under the same ids is stored once."""
    with staged() as stage:
        system, ids = stage.system, [new_task_id() for _ in range(10)]
        stage.worker()
        stage.dispatcher()
        stage.tickets.issue(point)
        killed = producer(stage, "killed", ids)
        stage.tickets.redeemed(point)
        killed.wait()
        killed_ms = now_ms(system)
        assert not receipts(killed, ids)
        (first,) = system.client.run_many([stage.inspected(ids[0])])
        assert isinstance(first, NotFound) is not is_stored
        again = producer(stage, "again", ids)
        eventually(lambda: receipts(again, ids) == ids)
        assert {record.state for record in system.ended(ids)} == {TaskState.DONE}
        # One that is stored already may have run before its producer was even missed.
        late = ids[1:] if is_stored else ids
        recovery_s = History.of(system).restarted_s(late, killed_ms)
        counted = judge.judge(system, recovery_s=recovery_s, receipts=receipts(again, ids))
        assert (counted.accepted, counted.duplicate_starts) == (len(ids), 0)
