"""What a task costs: estimated at the claim, charged while it runs, settled when its lease ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Literal

import pytest

from fairlane import verbs
from fairlane.model import Leased
from support.store import ESTIMATE_MS, LANE, Store, mac
from verbs.conftest import Open

UNITS_PER_MS = 16_000


def paid_ms(store: Store, leased: Leased) -> float:
    """Return what a task's device was charged for it."""
    return int(store.redis.hget(store.keys.task(leased.task_id), "paid")) / UNITS_PER_MS


def estimate_ms(store: Store, device: int = 1, **options: Any) -> float:
    """Return what a task of a device is charged, and cancel it."""
    store.enqueue(device, **options)
    leased = next(task for task in store.claim(99) if task.mac == mac(device))
    paid = paid_ms(store, leased)
    store.client.cancel(leased.task_id)
    return paid


def ran(store: Store, ms: int, device: int = 9, text: str = "", **options: object) -> None:
    """Let a task of a device run for a time, so that the store learns it."""
    lane = str(options.get("task_type", LANE))
    store.client.enqueue(mac(device), lane, {"t": text})
    leased = next(task for task in store.claim(99, lane=lane) if task.mac == mac(device))
    store.start(leased)
    store.clock.advance(ms)
    store.finish(leased)


def owes_ms(store: Store, device: int = 1) -> float:
    """Return how far a device's tag is ahead of v."""
    (lane,) = (at for at in store.client.device(mac(device)).lanes if at.lane == LANE)
    v = next(at.v for at in store.run(verbs.InspectLanes()) if at.name == LANE)
    return max(0.0, round((lane.tag - v) / UNITS_PER_MS, 2)) if lane.tag else 0.0


def shares_ms(store: Store, run_ms: Mapping[int, int], turns: int) -> Counter[str]:
    """Serve tasks one by one, each device's for its time; return the time that each had."""
    had: Counter[str] = Counter()
    by_mac = {mac(device): ms for device, ms in run_ms.items()}
    for _ in range(turns):
        (leased,) = store.client.run(verbs.Claim(LANE, 1)).leased
        store.client.run(verbs.Start(leased.task_id, leased.attempt, "worker", "run"))
        store.clock.advance(by_mac[leased.mac])
        store.client.run(verbs.Finish(leased.task_id, leased.attempt))
        had[leased.mac] += by_mac[leased.mac]
    return had


def test_before_anything_ran_a_task_is_10_ms(store: Store) -> None:
    assert estimate_ms(store) == ESTIMATE_MS


def test_the_estimate_is_the_moving_average_of_the_type(store: Store) -> None:
    ran(store, 40)
    assert estimate_ms(store) == 40
    ran(store, 90)
    assert estimate_ms(store) == 45
    ran(store, 60_000, task_type="ocr")
    assert estimate_ms(store) == 45, "types are learnt apart"


def test_runs_under_a_millisecond_are_a_millisecond(store: Store) -> None:
    ran(store, 0)
    assert estimate_ms(store) == 1


@pytest.mark.parametrize(
    ("payload_bytes", "size"),
    [(10, 0), (1024, 0), (1025, 1), (4096, 1), (4097, 2), (16384, 2), (16385, 3), (262144, 4)],
)
def test_a_class_for_each_factor_of_four_from_a_kibibyte(
    store: Store, payload_bytes: int, size: int
) -> None:
    text = "x" * (payload_bytes - len('{"t":""}'))
    store.client.enqueue(mac(1), LANE, {"t": text})
    store.client.enqueue_many([(mac(1), LANE, {"t": text})])
    for leased in store.claim(2):
        assert int(store.redis.hget(store.keys.task(leased.task_id), "size") or 0) == size


def test_sizes_are_learnt_apart_and_a_new_one_is_the_type(store: Store) -> None:
    ran(store, 10, text="x")
    ran(store, 810, text="x" * 3_000)
    for length in (1, 3_000, 30_000):
        store.client.enqueue(mac(1), LANE, {"t": "x" * length})
    assert [paid_ms(store, leased) for leased in store.claim(3)] == [10, 810, 90]


def test_a_device_with_longer_tasks_than_its_type_pays_for_them(store: Store) -> None:
    _, second, third = store.enqueue(1, 3)
    (leased,) = store.claim()
    store.start(leased)
    store.clock.advance(1_000)
    store.finish(leased)
    store.run(verbs.Configure(mac(1), paused=True))
    for _ in range(5):
        ran(store, 10, 2)
    assert estimate_ms(store, 2) < 1_000
    store.run(verbs.Configure(mac(1), paused=False))
    (leased,) = store.claim()
    assert (leased.task_id, paid_ms(store, leased)) == (second, 1_000)
    store.client.cancel(second)
    store.client.cancel(third)
    assert estimate_ms(store, 1) < 1_000, "what it has run is forgotten when it drains"


@pytest.mark.parametrize(
    ("cost_ms", "counts"), [(1, 10), (10, 10), (25, 25), (160, 160), (161, 160), (10**8, 160)]
)
def test_a_callers_cost_counts_within_a_quarter_and_four_times(
    store: Store, cost_ms: int, counts: int
) -> None:
    assert estimate_ms(store, cost_ms=cost_ms) == cost_ms, "nothing else is known yet"
    ran(store, 40)
    assert estimate_ms(store, cost_ms=cost_ms) == counts
    store.client.enqueue_many([{"mac": mac(1), "task_type": LANE, "data": {}, "cost_ms": cost_ms}])
    (leased,) = store.claim()
    assert paid_ms(store, leased) == counts


@pytest.mark.parametrize(("ms", "cost"), [(0, 1), (1, 1), (4, 4), (10, 10), (2_500, 2_500)])
def test_a_finish_settles_what_was_used(store: Store, ms: int, cost: int) -> None:
    store.enqueue(1, 2)
    store.enqueue(2)
    (leased,) = store.claim()
    assert owes_ms(store) == ESTIMATE_MS
    store.start(leased)
    store.clock.advance(ms)
    store.finish(leased)
    assert owes_ms(store) == cost


def test_a_heartbeat_charges_what_runs_past_the_estimate(store: Store) -> None:
    store.enqueue(1, 2)
    store.enqueue(2)
    (leased,) = store.claim()
    store.start(leased)
    beat = verbs.Heartbeat("host:1:a", [LANE], 1, active=[(leased.task_id, 1)])
    for passed_ms, owed_ms in ((8, 10), (2_000, 2_008), (0, 2_008), (15_000, 17_008)):
        store.clock.advance(passed_ms)
        store.run(beat)
        assert owes_ms(store) == owed_ms
    store.clock.advance(2)
    store.finish(leased)
    assert owes_ms(store) == 17_010


def test_a_heartbeat_charges_no_task_that_ended(store: Store) -> None:
    leased = store.running()
    store.enqueue(1)
    store.enqueue(2)
    store.finish(leased)
    store.clock.advance(10_000)
    owed_ms = owes_ms(store)
    active = [(leased.task_id, 1), ("unknown", 1)]
    assert len(store.run(verbs.Heartbeat("host:1:a", [LANE], 1, active=active))) == 2
    assert owes_ms(store) == owed_ms


@pytest.mark.parametrize(
    ("end", "starts", "cost"),
    [
        ("defer", False, 0),
        ("cancel", False, 0),
        ("defer", True, 300),
        ("cancel", True, 300),
        ("fail", True, 300),
        ("give up", True, 300),
    ],
)
def test_an_attempt_that_ends_otherwise_pays_what_it_used(
    store: Store, end: str, starts: bool, cost: int
) -> None:
    store.enqueue(1, 2)
    store.enqueue(2)
    (leased,) = store.claim()
    if starts:
        store.start(leased)
    store.clock.advance(300)
    ends: Mapping[str, verbs.Verb[object]] = {
        "defer": verbs.Defer(leased.task_id, 1),
        "cancel": verbs.Cancel(leased.task_id, force=True),
        "fail": verbs.Fail(leased.task_id, 1, "error"),
        "give up": verbs.Fail(leased.task_id, 1, "error", final=True),
    }
    store.run(ends[end])
    assert owes_ms(store) == cost


def test_a_lost_worker_pays_until_its_last_heartbeat(store: Store) -> None:
    store.enqueue(1, 2)
    store.enqueue(2)
    (leased,) = store.claim()
    store.start(leased)
    store.clock.advance(4_000)
    store.run(verbs.Heartbeat("host:1:a", [LANE], 1, active=[(leased.task_id, 1)]))
    store.clock.advance(100_000)
    assert store.run(verbs.Sweep()).lost == (f"{leased.task_id}.1",)
    assert owes_ms(store) == 4_000


def test_a_lost_message_is_charged_once(store: Store) -> None:
    store.enqueue(1, 3)
    store.enqueue(2)
    (leased,) = store.claim()
    store.clock.advance(store.settings.lease_ms)
    store.run(verbs.Sweep())
    assert owes_ms(store) == ESTIMATE_MS
    other, again = store.claim(2)
    assert (other.mac, again.task_id) == (mac(2), leased.task_id)
    assert owes_ms(store) == 0, "v has come to where it stands"
    store.start(again)
    store.clock.advance(60)
    store.finish(again)
    assert owes_ms(store) == 60 - ESTIMATE_MS


def test_a_lost_message_that_expires_costs_nothing(store: Store) -> None:
    store.enqueue(1, ttl_ms=20_000)
    store.enqueue(1)
    store.enqueue(2)
    (leased,) = store.claim()
    store.clock.advance(store.settings.lease_ms)
    store.run(verbs.Sweep())
    assert store.state(leased.task_id) == "expired"
    assert owes_ms(store) == 0


def test_what_a_device_owes_is_kept_when_its_last_lease_is_lost_and_expires(store: Store) -> None:
    store.enqueue(1, ttl_ms=20_000)
    store.enqueue(1)
    store.enqueue(2, 2)
    first, _, second = store.claim(3)
    store.start(second)
    store.clock.advance(500)
    store.finish(second)
    store.clock.advance(store.settings.lease_ms)
    store.run(verbs.Sweep())
    assert store.state(first.task_id) == "expired"
    owed = store.redis.zscore(store.keys.lane("FINISH", LANE), mac(1)) or owes_ms(store)
    assert owed, "500 ms that it used"


def test_a_failed_task_is_charged_anew(store: Store) -> None:
    leased = store.running()
    store.clock.advance(300)
    due_ms = store.run(verbs.Fail(leased.task_id, 1, "error")).due_ms
    store.clock.now_ms = due_ms
    (again,) = store.claim()
    assert paid_ms(store, again) == ESTIMATE_MS


@pytest.mark.parametrize("scope", ["task", "device"])
def test_a_deferred_task_is_charged_anew(store: Store, scope: Literal["task", "device"]) -> None:
    leased = store.running()
    due_ms = store.run(verbs.Defer(leased.task_id, 1, "", scope)).due_ms
    ran(store, 500)
    store.clock.now_ms = due_ms
    (again,) = store.claim()
    assert (again.task_id, paid_ms(store, again)) == (leased.task_id, 500)


def test_a_lost_start_is_charged_anew(store: Store) -> None:
    def tag() -> int:
        (lane,) = (at for at in store.client.device(mac(1)).lanes if at.lane == LANE)
        return lane.tag or 0

    store.enqueue(1, 2)
    (leased,) = store.claim()
    store.start(leased)
    store.clock.advance(store.settings.lease_ms)
    store.run(verbs.Sweep())
    settled = tag()
    (again,) = store.claim()
    assert again.task_id == leased.task_id
    assert tag() - settled == ESTIMATE_MS * UNITS_PER_MS


@pytest.mark.parametrize("weight", [0.5, 3, 100, 1_000])
def test_a_weight_divides_what_a_task_costs(store: Store, weight: float) -> None:
    store.run(verbs.Configure(mac(1), weight=weight))
    store.enqueue(1, 2)
    store.enqueue(2)
    (leased,) = store.claim()
    assert owes_ms(store) == round(ESTIMATE_MS / weight, 2)
    store.start(leased)
    store.clock.advance(2_000)
    store.finish(leased)
    assert owes_ms(store) == round(2_000 / weight, 2)


@pytest.mark.parametrize("weight", [1, 3])
def test_unequal_run_times_share_the_time(open_store: Open, weight: int) -> None:
    store = open_store(max_per_mac_pending=1_000, task_ttl_ms=10**9)
    run_ms = {1: 600, 2: 50}
    for device in run_ms:
        store.client.enqueue_many([(mac(device), LANE, {})] * 900)
    store.run(verbs.Configure(mac(2), weight=weight))
    had = shares_ms(store, run_ms, 150)
    # A task of device 1 and as much of device 2 as is charged beside it is the least difference.
    assert abs(had[mac(1)] - had[mac(2)] / weight) <= 2 * 600


def test_many_slots_share_the_time_too(open_store: Open) -> None:
    store = open_store(max_per_mac_pending=1_000)
    run_ms = {mac(1): 400, mac(2): 40}
    for device in (1, 2):
        store.client.enqueue_many([(mac(device), LANE, {})] * 900)
    had: Counter[str] = Counter()
    running: list[tuple[int, Leased]] = []
    for _ in range(600):
        for leased in store.client.run(verbs.Claim(LANE, 8 - len(running))).leased:
            store.client.run(verbs.Start(leased.task_id, 1, "worker", "run"))
            running.append((store.clock.now_ms + run_ms[leased.mac], leased))
        running.sort(key=lambda ends: ends[0])
        store.clock.now_ms, ended = running.pop(0)
        store.client.run(verbs.Finish(ended.task_id, 1))
        had[ended.mac] += run_ms[ended.mac]
    assert abs(had[mac(1)] - had[mac(2)]) < 8 * 400


def test_a_device_that_drains_and_comes_back_owes_what_it_used(store: Store) -> None:
    store.enqueue(1)
    store.enqueue(2, 60)
    leased = next(leased for leased in store.claim() if leased.mac == mac(1))
    store.start(leased)
    store.clock.advance(100)
    store.finish(leased)
    store.enqueue(1, 5)
    served = store.served(30)
    assert served.index(mac(1)) in (9, 10, 11), "ten tasks of 10 ms come first"


def test_a_device_that_drains_and_comes_back_gains_nothing(store: Store) -> None:
    store.enqueue(1, 60)
    for _ in range(10):
        store.enqueue(2)
        store.served(2)
    store.enqueue(2, 30)
    assert store.served(20).count(mac(2)) == 10


def test_the_tags_of_10_000_drained_devices_are_forgotten(open_store: Open) -> None:
    store = open_store(max_total_pending=20_000)
    store.enqueue(0, 100)
    for first in range(1, 10_001, 1_000):
        store.client.enqueue_many((mac(at), LANE, {}) for at in range(first, first + 1_000))
        for _ in range(10):
            tasks = store.client.run(verbs.Claim(LANE, 100)).leased
            store.client.run_many([verbs.Start(t.task_id, 1, "worker", "run") for t in tasks])
            store.clock.advance(3)
            store.client.run_many([verbs.Finish(t.task_id, 1) for t in tasks])
    for _ in range(120):
        for leased in store.client.run(verbs.Claim(LANE, 1)).leased:
            store.client.run(verbs.Start(leased.task_id, 1, "worker", "run"))
            store.client.run(verbs.Finish(leased.task_id, 1))
    assert store.client.devices() == ()
    held = {name for name in store.redis.keys("*") if ":task:" not in name}
    assert store.keys.lane("FINISH", LANE) not in held
    assert not [name for name in held if ":meta:" in name]


def test_tags_grow_by_what_was_charged_whatever_is_settled_late(store: Store) -> None:
    """Each settled once: the sum of the moves is what was used, in any order of the ends."""
    store.enqueue(1, 6)
    store.enqueue(2, 6)
    leased = [task for task in store.claim(12) if task.mac == mac(1)]
    for at, task in enumerate(leased):
        store.start(task, f"run-{at}")
    owed = []
    for task in reversed(leased):
        store.clock.advance(100)
        store.finish(task)
        owed.append(owes_ms(store))
    assert [after - before for before, after in pairwise(owed)] == [190, 290, 390, 490, 590]
