"""What `fair` promises, measured in simulated hours on the real scripts.

The rule: the simulator is the instrument. It was believed only after plain queues, whose figures
are known, had come out right in it (`tests/unit/sim`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
import redis

from fairlane.sim.engine import Engine
from fairlane.sim.record import NEVER, Record
from fairlane.sim.report import percentile
from fairlane.sim.simulation import simulate
from fairlane.sim.store import SimulatedStore
from fairlane.sim.workload import Arrival, Workload, mac_of
from fairlane.sim.workloads import (
    KIND,
    Size,
    churn,
    costs,
    drain_trap,
    equal,
    hoard,
    outage,
    sybil,
    weights,
)
from fairlane.verbs import Claim, Sweep


def shares(
    workload: Workload, record: Record, from_ms: int = 0, until_ms: int | None = None
) -> dict[str, float]:
    """Return the share of time of each group."""
    times: Counter[str] = Counter()
    for mac, time_ms in record.time_ms(from_ms, until_ms).items():
        times[workload.groups[mac]] += time_ms
    return {group: time_ms / times.total() for group, time_ms in times.items()}


def of(workload: Workload, group: str) -> list[str]:
    """Return the devices of a group."""
    return [mac for mac, name in workload.groups.items() if name == group]


# Tasks of a minute make everybody wait 30 s: the guard must not undo the weights.
@pytest.mark.parametrize(("service_ms", "slots"), [(1_000, 1), (1_000, 4), (60_000, 2)])
@pytest.mark.parametrize("heavy", [3, 9, 49])
def test_shares_follow_weights(heavy: int, slots: int, service_ms: int) -> None:
    made = weights(Size(2, 1_500, slots), service_ms, (1, heavy))
    got = shares(made, simulate(made, "fair"))
    assert got[f"weight {heavy}"] / got["weight 1"] == pytest.approx(heavy, rel=0.05)


@pytest.mark.parametrize("slots", [1, 2])
def test_devices_that_drain_and_return_leave_a_backlogged_one_its_share(slots: int) -> None:
    made = drain_trap(Size(5, 2_000, slots))
    got = shares(made, simulate(made, "fair"))
    assert got["backlogged"] >= 0.9 / 5
    assert got["returning"] >= 0.9 * 4 / 5


@pytest.mark.parametrize("slots", [1, 8])
def test_a_device_of_long_tasks_gets_its_share_of_the_time(slots: int) -> None:
    made = costs(Size(8, 4_260, slots))
    record = simulate(made, "fair")
    assert shares(made, record)["long"] == pytest.approx(0.125, abs=0.02)
    if slots > 1:
        assert most_at_once(record, of(made, "long")) < slots


def most_at_once(record: Record, macs: Iterable[str]) -> int:
    """Return how many slots ran tasks of these devices at one time, at most."""
    wanted = {record.macs.index(mac) for mac in macs}
    moves = []
    rows = zip(record.busy_device, record.busy_from_ms, record.busy_until_ms, strict=True)
    for device, from_ms, until_ms in rows:
        if device in wanted:
            moves += [(from_ms, 1), (until_ms, -1)]
    running = most = 0
    for _, change in sorted(moves):
        running += change
        most = max(most, running)
    return most


def test_equal_devices_at_twice_the_capacity_are_served_alike() -> None:
    made = equal(Size(30, 9_000, 8))
    served = simulate(made, "fair").time_ms().values()
    assert len(served) == 30
    assert min(served) >= 0.95 * max(served)


def test_a_site_of_many_addresses_does_not_delay_another_sites_device() -> None:
    made = sybil(Size(501, 6_000, 4))
    (honest,) = of(made, "honest")
    alone = [each for each in made.arrivals if each.mac == honest]
    # The same flood under one address, which is no way to get around fairness between devices.
    plain = [each if each.mac == honest else each._replace(mac=mac_of(1)) for each in made.arrivals]

    def p99_ms(arrivals: Sequence[Arrival]) -> int:
        waits = simulate(replace(made, arrivals=arrivals), "fair").waits_ms(honest)
        assert len(waits) == 300
        return percentile(sorted(waits), 990) or 0

    beside_ms = p99_ms(made.arrivals)
    assert beside_ms <= 2 * p99_ms(plain)
    # Alone it waits for nothing, but a slot's task of half a second is not taken away either.
    assert beside_ms <= 2 * max(p99_ms(alone), 500)


@pytest.mark.parametrize("slots", [1, 4])
def test_a_newcomer_behind_ten_thousand_tasks_is_next(slots: int) -> None:
    old, new = mac_of(1), mac_of(2)
    arrivals = [Arrival(0, old, KIND, 1_000)] * 10_000 + [Arrival(100_500, new, KIND, 1_000)]
    made = replace(Workload("next", arrivals, {KIND: slots}, {}), until_ms=110_000)
    record = simulate(made, "fair")
    started_ms = record.started_ms[10_000]
    assert started_ms == 101_000
    before = [at_ms for at_ms in record.started_ms[:10_000] if 100_500 <= at_ms < started_ms]
    assert before == []


def test_idle_paused_and_capped_devices_hoard_nothing() -> None:
    made = hoard(Size(8, 4_800, 8))
    assert made.until_ms is not None
    record = simulate(made, "fair")
    half_ms = made.until_ms // 2
    before = shares(made, record, 0, half_ms)
    assert before["capped"] == pytest.approx(1 / 4, rel=0.05)  # two of eight slots
    assert before["busy"] > 0.7
    # Whoever had saved up would spend it at once.
    for part in (0.6, 0.75, 1.0):
        got = shares(made, record, half_ms, int(made.until_ms * part))
        assert all(share == pytest.approx(1 / 4, rel=0.05) for share in got.values()), got


def test_no_tag_of_drained_devices_is_remembered() -> None:
    arrivals = [Arrival(at, mac_of(1 + at), KIND, 10) for at in range(10_000)]
    made = Workload("drained", arrivals, {KIND: 8}, {})
    settings = made.settings_for("fair")
    with SimulatedStore(settings) as store:
        record = Engine(made, store, settings).run()
        assert record.done == 10_000
        # A script forgets 64 at a time.
        later = record.end_ms + 1
        store.run([(later, call) for _ in range(200) for call in (Claim(KIND), Sweep())])
        with redis.Redis.from_url(store.client.store_url) as raw:
            assert raw.zcard(store.client.keys.lane("FINISH", KIND)) == 0
            assert raw.zcard(store.client.keys.lane("SCHEDULE", KIND)) == 0


def test_a_stream_of_new_addresses_leaves_others_the_guards_share() -> None:
    # 400 stay; what waits of the new ones grows to some 900, so theirs is a quarter and more.
    made = churn(Size(4_000, 10_000, 8))
    record = simulate(made, "fair")
    # The guard is one turn in four, for whoever waits 30 s.
    assert shares(made, record, 60_000)["staying"] >= 0.25 * 0.9


def test_an_outage_of_a_lane_kills_nothing_and_keeps_the_order() -> None:
    made = outage(Size(20, 4_000, 8))
    (away,) = made.outages
    record = simulate(made, "fair")
    assert (record.done, record.dead, record.refused, record.expired) == (4_000, 0, 0, 0)
    assert 0 < record.lost <= 8
    assert not [at for at in record.started_ms if away.from_ms <= at < away.until_ms]
    assert NEVER not in record.started_ms
    by_device: dict[int, list[int]] = {}
    for task, device in enumerate(record.device):
        by_device.setdefault(device, []).append(record.started_ms[task])
    for starts in by_device.values():
        assert all(one <= other for one, other in pairwise(starts))
