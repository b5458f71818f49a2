"""The `fair` policy and its model, in lock step; and the share that every device gets of a lane."""

from __future__ import annotations

import logging
from collections import Counter
from itertools import combinations
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fairlane import Client, Settings, verbs
from fairlane.model import Leased
from model.fair_oracle import FairOracle
from support.servers import Server
from support.store import Store, mac

START_MS = 1_796_000_000_000
LANE = "text"
MACS = [mac(number) for number in range(1, 6)]
WEIGHTS = [0.25, 1, 1.5, 3, 49]
a_mac = st.sampled_from(MACS)
a_pick = st.integers(0, 63)


class LockStep(RuleBasedStateMachine):
    """One store and one oracle, which are told the same."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        server.client.flushall()
        self.oracle = FairOracle(START_MS)
        # No lease ends and no task expires by itself here: that has its place in `test_seed.py`.
        settings = Settings(store_url=server.url, task_ttl_ms=10**9, lease_ms=10**8)
        self.client = Client(settings, clock=lambda: self.oracle.now)
        server.client.set(self.client.keys.clock, 1)
        self.leased: dict[str, Leased] = {}
        self.delayed: dict[str, int] = {}

    def teardown(self) -> None:
        self.client.close()

    @rule(ms=st.sampled_from([1, 10_000, 29_999, 30_000]))
    def time_passes(self, ms: int) -> None:
        self.oracle.now += ms

    @rule(macs=st.lists(a_mac, min_size=1, max_size=8))
    def enqueue(self, macs: list[str]) -> None:
        for address in macs:
            task_id = f"t{len(self.oracle.jobs):04}"
            self.client.enqueue(address, LANE, {}, task_id=task_id)
            self.oracle.enqueue(task_id, address)

    @rule(want=st.integers(1, 12), exclude_mac=st.none() | a_mac)
    def claim(self, want: int, exclude_mac: str | None) -> None:
        self._resume()
        got = self.client.run(verbs.Claim(LANE, want, exclude_mac=exclude_mac or ""))
        assert [task.task_id for task in got.leased] == self.oracle.claim(want, exclude_mac)
        self.leased.update({task.task_id: task for task in got.leased})

    @precondition(lambda self: self.leased)
    @rule(pick=a_pick, end=st.sampled_from(["finish", "defer", "cancel"]))
    def end(self, pick: int, end: str) -> None:
        task = self.leased.pop(_pick(self.leased, pick).task_id)
        if end == "finish":
            self.client.run(verbs.Start(task.task_id, task.attempt, "worker", "run"))
            self.client.run(verbs.Finish(task.task_id, task.attempt))
            self.oracle.finish(task.task_id)
        elif end == "defer":
            outcome = self.client.run(verbs.Defer(task.task_id, task.attempt))
            if outcome.state == "delayed":
                self.delayed[task.task_id] = outcome.due_ms
            self.oracle.give_up(task.task_id, "delayed" if outcome.due_ms else "over")
        else:
            self.client.cancel(task.task_id)
            self.oracle.give_up(task.task_id, "over")

    @precondition(lambda self: self.oracle.jobs)
    @rule(pick=a_pick)
    def cancel_queued(self, pick: int) -> None:
        job = _pick(self.oracle.jobs, pick)
        if job.where == "queued":
            self.client.cancel(job.task_id)
            self.oracle.give_up(job.task_id, "over")

    @rule(address=a_mac, weight=st.sampled_from(WEIGHTS), paused=st.booleans())
    def configure(self, address: str, weight: float, paused: bool) -> None:
        self.client.run(verbs.Configure(address, weight, paused))
        self.oracle.configure(address, weight, paused)

    @rule()
    def sweep(self) -> None:
        self.client.run(verbs.Sweep())
        self._resume()

    @invariant()
    def places_and_tags_are_equal(self) -> None:
        order = [(flow.mac, flow.tag) for flow in self.oracle.order()]
        lanes, *devices = self.client.run_many(
            [verbs.InspectLanes(), *map(verbs.InspectDevice, MACS)]
        )
        places = [(device.mac, lane) for device in devices for lane in device.lanes]
        mine = sorted((lane.rank, address, lane.tag) for address, lane in places if lane.rank >= 0)
        assert [(address, tag) for _, address, tag in mine] == order
        assert {lane.name: lane.v for lane in lanes}[LANE] == self.oracle.v

    def _resume(self) -> None:
        now = self.oracle.now
        for due, task_id in sorted((due, task_id) for task_id, due in self.delayed.items()):
            if due <= now:
                del self.delayed[task_id]
                self.oracle.come_back(task_id)


def _pick(things: dict[str, Any], pick: int) -> Any:
    return list(things.values())[pick % len(things)]


def test_the_scripts_and_the_model_agree(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "fairlane.store")  # the tests' servers persist nothing

    class Program(LockStep):
        def __init__(self) -> None:
            super().__init__(server)

    run_state_machine_as_test(
        Program,
        settings=hypothesis.settings(
            deadline=None,
            max_examples=50,
            stateful_step_count=50,
            suppress_health_check=[hypothesis.HealthCheck.too_slow],
        ),
    )


# The guard lets a device go only if its tag is within a quantum of v: it is ahead by two at most.
@pytest.mark.parametrize(("apart_ms", "quanta"), [(0, 1), (5_000, 2)], ids=["in order", "guarded"])
@pytest.mark.parametrize("weights", [(1, 1, 1), (1, 2, 3), (1, 49), (0.25, 1.5, 3, 10)])
def test_the_shares_of_backlogged_devices_stay_within_a_quantum_each(
    store_url: str, weights: tuple[float, ...], apart_ms: int, quanta: int
) -> None:
    store = Store(store_url, task_ttl_ms=10**9, lease_ms=10**8, max_per_mac_pending=1_000)
    for number, weight in enumerate(weights):
        store.client.run(verbs.Configure(mac(number), weight))
        store.client.enqueue_many((mac(number), LANE, {}) for _ in range(400))
    served: Counter[str] = Counter()
    for _ in range(300):
        store.clock.advance(apart_ms)
        (leased,) = store.client.run(verbs.Claim(LANE, 1)).leased
        served[leased.mac] += 1
        shares = [(served[mac(at)] / weight, 1 / weight) for at, weight in enumerate(weights)]
        for (one, quantum), (other, other_quantum) in combinations(shares, 2):
            assert abs(one - other) <= quanta * (quantum + other_quantum)
    store.close()
