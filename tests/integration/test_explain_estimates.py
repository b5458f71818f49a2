"""What `explain` says of a task's start, beside what happened: in the simulator, on the scripts."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from typing import Any

import pytest

from fairlane.errors import FairlaneError
from fairlane.model import Claimed, Receipt
from fairlane.sim.clock import START_MS
from fairlane.sim.engine import Engine
from fairlane.sim.policies import Step
from fairlane.sim.store import SimulatedStore
from fairlane.sim.workload import Workload
from fairlane.sim.workloads import workload
from fairlane.verbs import Explain
from fairlane.verbs.explain import Explanation

#: Before that the lane has not learnt what its tasks cost.
_WARM = 50


class Asking(SimulatedStore):
    """The store, asked now and then when some task that waits will start."""

    def __init__(self, settings: Any, every: int) -> None:
        super().__init__(settings)
        self.asked: list[Explanation] = []
        self._waiting: dict[str, None] = {}
        self._chance = random.Random(1)
        self._every, self._claims = every, 0

    def run(self, steps: Sequence[Step]) -> list[Any]:
        """Return what each call comes to, and ask."""
        replies = super().run(steps)
        for reply in replies:
            for verdict in reply if isinstance(reply, list) else [reply]:
                if isinstance(verdict, Receipt):
                    self._waiting[verdict.task_id] = None
            if isinstance(reply, Claimed):
                for leased in reply.leased:
                    self._waiting.pop(leased.task_id, None)
                self._claims += 1
                if self._claims > _WARM and self._claims % self._every == 0:
                    self._ask()
        return replies

    def _ask(self) -> None:
        for task_id in self._chance.sample([*self._waiting], min(4, len(self._waiting))):
            found = self.client.run_many([Explain(task_id)])[0]
            assert not isinstance(found, FairlaneError), found
            if found.state == "pending":
                self.asked.append(found)


def ask(traffic: Workload, every: int) -> list[tuple[float, float, float]]:
    """Run a traffic; return of each task asked for when it started, and what p50 and p90 were."""
    settings = traffic.settings_for("fair")
    with Asking(settings, every) as store:
        record = Engine(traffic, store, settings).run()
    found: list[tuple[float, float, float]] = []
    for told in store.asked:
        started_ms = record.started_ms[int(told.task_id)]
        if started_ms >= 0:
            assert told.start_p50_ms is not None
            assert told.start_p90_ms is not None
            waited = started_ms + START_MS - told.now_ms
            found.append((waited, told.start_p50_ms, told.start_p90_ms))
    return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "size", "every"),
    [
        ("flood", {"devices": 60, "tasks": 2_000}, 8),
        ("newcomers", {"devices": 60, "tasks": 1_500}, 10),
        ("weights", {"devices": 8, "tasks": 1_500}, 10),
        ("costs", {"devices": 6, "tasks": 1_500}, 2),
        ("sybil", {"devices": 60, "tasks": 1_500}, 10),
    ],
)
def test_the_median_estimate_is_within_30_percent(
    name: str, size: dict[str, int], every: int
) -> None:
    found = ask(workload(name, **size), every)
    # Of a task that is about to start, a part of a run is a large part of its wait.
    long = [each for each in found if each[0] >= statistics.median(one[0] for one in found) / 2]
    assert len(long) >= 30
    ratios = sorted(likely / waited for waited, likely, _ in long if waited)
    covered = sum(waited <= at_most for waited, _, at_most in long) / len(long)
    near = sum(0.7 <= ratio <= 1.3 for ratio in ratios) / len(ratios)
    told = f"{name}: ratio p50 {statistics.median(ratios):.2f}, {near:.0%} near, p90 {covered:.0%}"
    print(told)
    assert 0.7 <= statistics.median(ratios) <= 1.3, told
    assert near >= 0.8, told
    assert covered >= 0.85, told
