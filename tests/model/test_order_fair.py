"""The `fair` policy and its model, in lock step; and the share that every device gets of a lane."""

from __future__ import annotations

import logging
from collections import Counter
from itertools import combinations
from typing import Any, Literal

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
from fairlane.tasktype import TaskType
from model.cost_oracle import Job, size_class
from model.fair_oracle import FairOracle
from support.servers import Server
from support.store import Store, mac

START_MS = 1_796_000_000_000
LANE = "text"
TYPES = ["text", "scan"]
MACS = [mac(number) for number in range(1, 6)]
SITES = ["", "a"]
a_mac = st.sampled_from(MACS)
a_pick = st.integers(0, 63)
a_site = st.sampled_from(SITES)


class LockStep(RuleBasedStateMachine):
    """One store and one oracle, which are told the same."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        server.client.flushall()
        self.redis: Any = server.client
        self.oracle = FairOracle(START_MS)
        # No task expires by itself here: that has its place in `test_seed.py`.
        types = tuple(TaskType(name, LANE, "sensitive.text") for name in TYPES)
        settings = Settings(store_url=server.url, task_ttl_ms=10**9, task_types=types)
        self.client = Client(settings, clock=lambda: self.oracle.now)
        self.keys = self.client.keys
        server.client.set(self.keys.clock, 1)

    def teardown(self) -> None:
        self.client.close()

    @rule(ms=st.sampled_from([1, 7, 333, 10_000, 29_999, 30_000]))
    def time_passes(self, ms: int) -> None:
        self.oracle.now += ms

    @rule(
        macs=st.lists(a_mac, min_size=1, max_size=6),
        task_type=st.sampled_from(TYPES),
        bytes_=st.sampled_from([0, 0, 5_000]),
        cost_ms=st.sampled_from([None, None, 1, 5_000]),
        site=a_site,
    )
    def enqueue(
        self, macs: list[str], task_type: str, bytes_: int, cost_ms: int | None, site: str
    ) -> None:
        for address in macs:
            task_id, data = f"t{len(self.oracle.jobs):04}", {"t": "x" * bytes_}
            self.client.enqueue(
                address, task_type, data, task_id=task_id, cost_ms=cost_ms, site=site or None
            )
            size = size_class(len('{"t":""}') + bytes_)
            job = Job(task_id, address, self.oracle.now, task_type, size, cost_ms or 0)
            self.oracle.enqueue(job, site)

    @rule(want=st.integers(1, 12), exclude_mac=st.none() | a_mac)
    def claim(self, want: int, exclude_mac: str | None) -> None:
        got = self.client.run(verbs.Claim(LANE, want, exclude_mac=exclude_mac or ""))
        assert [task.task_id for task in got.leased] == self.oracle.claim(want, exclude_mac)

    @precondition(lambda self: self._there("leased"))
    @rule(count=st.integers(1, 4), after_ms=st.sampled_from([0, 1, 40]))
    def start(self, count: int, after_ms: int) -> None:
        self.oracle.now += after_ms
        for job in self._there("leased")[:count]:
            self.client.run(verbs.Start(job.task_id, job.attempt, "worker", "run"))
            self.oracle.start(job.task_id)

    @precondition(lambda self: self._there("running"))
    @rule(pick=a_pick, ran_ms=st.sampled_from([0, 1, 3, 80, 2_500]), ends=st.booleans())
    def end(self, pick: int, ran_ms: int, ends: bool) -> None:
        self.oracle.now += ran_ms
        job = _pick(self._there("running"), pick)
        if ends:
            self.client.run(verbs.Finish(job.task_id, job.attempt))
            self.oracle.finish(job.task_id)
        else:
            outcome = self.client.run(verbs.Fail(job.task_id, job.attempt, "error"))
            self.oracle.fail(job.task_id, outcome.due_ms)

    @precondition(lambda self: self._there("running"))
    @rule()
    def beat(self) -> None:
        running = self._there("running")
        active = [(job.task_id, job.attempt) for job in running]
        assert self.client.run(verbs.Heartbeat("host:1:a", [LANE], 4, active=active)) == ()
        self.oracle.beat([job.task_id for job in running])

    @precondition(lambda self: self._there("leased", "running"))
    @rule(pick=a_pick, scope=st.sampled_from(["task", "task", "device"]))
    def defer(self, pick: int, scope: Literal["task", "device"]) -> None:
        job = _pick(self._there("leased", "running"), pick)
        if self.oracle.flow(job.mac).queue:
            # Behind younger tasks its age is not looked for.
            scope = "task"
        outcome = self.client.run(verbs.Defer(job.task_id, job.attempt, "", scope))
        self.oracle.defer(job.task_id, outcome.due_ms, scope)

    @precondition(lambda self: self._there("queued", "leased", "running", "delayed"))
    @rule(pick=a_pick)
    def cancel(self, pick: int) -> None:
        job = _pick(self._there("queued", "leased", "running", "delayed"), pick)
        self.client.run(verbs.Cancel(job.task_id, force=True))
        self.oracle.cancel(job.task_id)

    @rule(address=a_mac, weight=st.sampled_from([0.25, 1, 1.5, 3, 49]), paused=st.booleans())
    def configure(self, address: str, weight: float, paused: bool) -> None:
        self.client.run(verbs.Configure(address, weight, paused))
        self.oracle.configure(address, weight=weight, is_paused=paused)

    @rule(
        address=a_mac,
        floor=st.sampled_from([0, 0, 1, 3]),
        most=st.sampled_from([0, 0, 1, 4]),
        rate=st.sampled_from([0, 0, 0.5, 3]),
    )
    def limit(self, address: str, floor: int, most: int, rate: float) -> None:
        self.client.run(
            verbs.Configure(address, min_running=floor, max_running=most, rate_per_s=rate)
        )
        self.oracle.configure(address, min_running=floor, max_running=most, rate=rate)

    @rule(address=a_mac, site=a_site)
    def move(self, address: str, site: str) -> None:
        self.client.run(verbs.Configure(address, site=site))
        self.oracle.configure(address, own_site=site)

    @precondition(lambda self: self._there("queued"))
    @rule(turns=st.integers(1, 6))
    def starve(self, turns: int) -> None:
        self.oracle.now += 30_000
        for _ in range(turns):
            self.claim(1, None)

    @rule(ms=st.sampled_from([0, 0, 25_000, 30_000, 60_001]))
    def sweep(self, ms: int) -> None:
        self.oracle.now += ms
        lost = self.client.run(verbs.Sweep()).lost
        assert [name.rpartition(".")[0] for name in lost] == self.oracle.sweep()

    @precondition(lambda self: self._there("leased", "running"))
    @rule(pick=a_pick, off_ms=st.sampled_from([-1, 0, 1]))
    def sweep_as_a_lease_ends(self, pick: int, off_ms: int) -> None:
        """To the millisecond, before and after: the model's deadline is the script's."""
        until = _pick(self._there("leased", "running"), pick).lease_until + off_ms
        self.sweep(max(0, until - self.oracle.now))

    @invariant()
    def tags_are_equal(self) -> None:
        seen = {"lane": self._v("", "site_v"), "default": self._v("", "v")}
        told = {"lane": self.oracle.order.v, "default": self.oracle.site("default").inner.v}
        if self.redis.exists(self.keys.lane("VIRTUAL", LANE) + "@a"):
            seen["a"], told["a"] = self._v("@a", "v"), self.oracle.site("a").inner.v
        assert seen == told
        for device in self.client.run_many([*map(verbs.InspectDevice, MACS)]):
            flow = self.oracle.flow(device.mac)
            (lane,) = (lane for lane in device.lanes if lane.lane == LANE)
            ahead = lane.tag > told.get(device.site, 0)
            tag = lane.tag if lane.rank >= 0 or lane.leased or ahead else None
            assert (device.site, lane.rank >= 0, tag) == (flow.site, flow.is_scheduled, flow.tag)
        sites = self.redis.zrevrange(self.keys.lane("SITES", LANE), 0, -1, withscores=True)
        assert [(_text(name), -int(score)) for name, score in sites] == [
            (site.name, site.tag) for site in self.oracle.schedule()
        ]

    def _v(self, of: str, field: str) -> int:
        return int(float(self.redis.hget(self.keys.lane("VIRTUAL", LANE) + of, field) or 0))

    def _there(self, *where: str) -> list[Job]:
        return [job for job in self.oracle.jobs.values() if job.where in where]


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


def _pick(jobs: list[Job], pick: int) -> Job:
    return jobs[pick % len(jobs)]


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
