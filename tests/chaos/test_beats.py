"""Any number of Beats: the clock is a safety net, and two of them do not dispatch twice."""

from __future__ import annotations

import pytest

from fairlane.model import TaskState
from support.ledger import Judge
from support.processes import Program
from support.stage import staged
from support.system import DISPATCH, TEXT
from support.tally import History

COUNT = 40


def beats_often(beat: Program) -> bool:
    """Whether a Beat has sent more than a round of what is due."""
    return beat.output().count("Sending due task") > 8


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "beats",
    [
        pytest.param(n, marks=[
            pytest.mark.fault(f"B{n}", f"{n} Beats", "each task is leased and starts once"),
            *([pytest.mark.smoke] if n == 2 else []),
        ])
        for n in (0, 2, 3, 4)
    ],
)  # fmt: skip
def test_any_number_of_beats(judge: Judge, beats: int) -> None:
    """A22: nothing runs twice, and every claim is one task's only one."""
    with staged(dispatch_every_ms=200, purge_every_ms=500, watermark_every_ms=500) as stage:
        system = stage.system
        system.worker("worker", TEXT, DISPATCH)
        programs = [system.beat(f"beat-{at}") for at in range(beats)]
        stage.dispatcher()
        system.explained(lambda: all(map(beats_often, programs)), 60.0)
        ids = stage.send(COUNT)
        assert {record.state for record in system.ended(ids)} == {TaskState.DONE}
        counted = judge.judge(system)
        history = History.of(system)
        assert (counted.done, counted.duplicate_starts) == (COUNT, 0)
        assert len(history.tasks("claimed")) == COUNT, "dispatch was multiplied"


@pytest.mark.timeout(300)
@pytest.mark.fault(
    "B5", "every dispatcher is dead, Beat alone is left", "tasks start ≤ dispatch_every_ms"
)
def test_beat_alone_dispatches(judge: Judge) -> None:
    """A22: one Beat and a worker of the dispatch queue that never leads are enough."""
    with staged(dispatch_every_ms=1_000) as stage:
        system = stage.system
        system.redis.set(system.client.keys.name("LEADER"), "somebody who is gone", ex=600)
        system.worker("worker", TEXT, DISPATCH)
        system.beat()
        ids = stage.send(COUNT)
        assert {record.state for record in system.ended(ids, 60.0)} == {TaskState.DONE}
        counted = judge.judge(system)
        assert counted.duplicate_starts == 0
