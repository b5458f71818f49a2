"""Admission: exactly at the limits, by both rules; who floods is refused first."""

from __future__ import annotations

from collections import Counter

import pytest

from fairlane import Receipt, Refusal, formulas, verbs
from support.store import LANE, Store, mac
from verbs.conftest import Open


def try_one(store: Store, device: int) -> Receipt | Refusal:
    return store.client.run(verbs.Enqueue(mac(device), LANE, {}))


def fill(store: Store, device: int, most: int = 1_000) -> int:
    """Store tasks of a device until one is refused; return how many were stored."""
    for stored in range(most):
        if isinstance(try_one(store, device), Refusal):
            return stored
    return most


def test_fair_refuses_a_device_at_its_share_of_what_is_left(open_store: Open) -> None:
    store = open_store(max_total_pending=20, max_per_mac_pending=6)
    in_all, stored = 0, []
    for device in range(30):
        expected = 0
        while in_all < 20 and expected < formulas.device_limit(
            in_all, max_total_pending=20, max_per_mac_pending=6
        ):
            expected, in_all = expected + 1, in_all + 1
        assert fill(store, device) == expected, device
        stored.append(expected)
    assert stored[0] == 6, "the first may have all that one may have"
    assert stored == sorted(stored, reverse=True)
    assert sum(stored) == 20, "the last places go to quiet devices, one each"


def test_fair_never_passes_the_global_limit(open_store: Open) -> None:
    store = open_store(max_total_pending=10, max_per_mac_pending=200)
    for device in range(40):
        fill(store, device, 3)
    assert store.run(verbs.Overload()).global_pending == 10
    refusal = try_one(store, 99)
    assert isinstance(refusal, Refusal)
    assert (refusal.reason, refusal.pending, refusal.limit) == ("global_full", 10, 10)


def test_a_flood_does_not_refuse_a_quiet_device(store: Store) -> None:
    assert fill(store, 1) == store.settings.max_per_mac_pending
    assert isinstance(try_one(store, 2), Receipt)


def test_a_place_that_is_free_again_may_be_taken(open_store: Open) -> None:
    store = open_store(max_per_mac_pending=3)
    assert fill(store, 1) == 3
    store.claim()
    assert fill(store, 1) == 1


def test_delayed_tasks_keep_their_place(open_store: Open) -> None:
    store = open_store(max_per_mac_pending=3)
    store.enqueue(1, 3)
    (leased,) = store.claim()
    assert fill(store, 1) == 1
    store.run(verbs.Defer(leased.task_id, 1))
    assert store.client.device(mac(1)).pending == 4, "what was accepted is never refused later"
    assert fill(store, 1) == 0


def test_a_device_is_counted_over_all_its_lanes(open_store: Open) -> None:
    store = open_store(max_per_mac_pending=3)
    store.enqueue(1, 2, task_type="ocr")
    store.enqueue(1, 1, task_type="text")
    refusal = store.run(verbs.Enqueue(mac(1), "ocr", {}))
    assert isinstance(refusal, Refusal)
    assert refusal.pending == 3


def test_system_refuses_everybody_once_the_formula_holds(open_store: Open) -> None:
    store = open_store(admission="system", max_total_pending=10, max_per_mac_pending=3)
    assert fill(store, 1) == 4, "G may pass its limit by one, and so may a device"
    refusal = try_one(store, 2)
    assert isinstance(refusal, Refusal)
    assert (refusal.reason, refusal.pending, refusal.limit) == ("device_full", 1, 0)
    store.claim()
    assert fill(store, 2) == 4


def test_system_at_the_global_limit(open_store: Open) -> None:
    store = open_store(admission="system", max_total_pending=5)
    assert [fill(store, device, 1) for device in range(8)] == [1, 1, 1, 1, 1, 1, 0, 0]
    assert store.run(verbs.Overload()).overloaded


def test_retry_after_follows_the_measured_drain_rate(open_store: Open) -> None:
    store = open_store(max_per_mac_pending=1)
    store.enqueue(1)
    store.run(verbs.Configure(mac(1), paused=True))  # a backlog all the while
    store.run(verbs.Watermark())
    for _ in range(60):
        store.finish(store.running(2))
    store.clock.advance(60_000)
    store.run(verbs.Watermark())
    refusal = try_one(store, 1)
    assert isinstance(refusal, Refusal)
    assert refusal.retry_after_ms == 1_000, "3,600 an hour: a place a second"


def test_a_refusal_is_counted_by_its_reason(open_store: Open) -> None:
    store = open_store(max_total_pending=6, max_per_mac_pending=2)
    verdicts = [try_one(store, device) for device in range(8) for _ in range(3)]
    reasons = Counter(
        f"refused_{verdict.reason}" for verdict in verdicts if isinstance(verdict, Refusal)
    )
    assert set(reasons) == {"refused_device_full", "refused_global_full"}
    assert store.run(verbs.InspectTotals()).counts == {"accepted": 6, **reasons}


def verdict_of(store: Store, device: int, site: str | None = None) -> Receipt | Refusal:
    return store.run(verbs.Enqueue(mac(device), LANE, {}, site=site))


def refusal_of(store: Store, device: int, site: str | None = None) -> Refusal:
    refusal = verdict_of(store, device, site)
    assert isinstance(refusal, Refusal), refusal
    return refusal


def take(store: Store, count: int, device: int | None = None) -> None:
    """Let `count` waiting tasks go, of one device if it is named."""
    for _ in range(count):
        for leased in store.claim():
            assert device is None or leased.mac == mac(device)
            store.client.cancel(leased.task_id)


def test_a_full_store_admits_again_at_its_low_mark(open_store: Open) -> None:
    store = open_store(max_total_pending=20, low_mark_percent=80)
    for device in range(20):
        store.enqueue(device)
    assert (refusal_of(store, 99).reason, refusal_of(store, 99).limit) == ("global_full", 20)
    for _ in range(3):
        take(store, 1)
        refusal = refusal_of(store, 99)
        assert (refusal.reason, refusal.limit) == ("global_full", 17), "17 is over the low mark"
    take(store, 1)
    assert [isinstance(verdict_of(store, 90 + at), Receipt) for at in range(5)] == [True] * 4 + [
        False
    ]


def test_a_store_that_refused_nobody_has_no_mark(open_store: Open) -> None:
    store = open_store(max_total_pending=20)
    for device in range(20):
        store.enqueue(device)
    take(store, 1)
    assert isinstance(verdict_of(store, 99), Receipt)


def test_a_full_device_is_admitted_again_at_its_low_mark(open_store: Open) -> None:
    store = open_store(max_per_mac_pending=10, low_mark_percent=70)
    store.enqueue(1, 10)
    assert refusal_of(store, 1).limit == 10
    for pending in (9, 8):
        take(store, 1, 1)
        refusal = refusal_of(store, 1)
        assert (refusal.reason, refusal.pending, refusal.limit) == ("device_full", pending, 8)
        assert isinstance(verdict_of(store, 10 + pending), Receipt), "nobody else is refused"
        store.client.cancel(store.client.events()[-1].tasks[0])
    take(store, 1, 1)
    assert [isinstance(verdict_of(store, 1), Receipt) for _ in range(4)] == [True] * 3 + [False]


def test_a_drained_device_has_no_mark(open_store: Open) -> None:
    store = open_store(max_per_mac_pending=3)
    store.enqueue(1, 3)
    assert refusal_of(store, 1).reason == "device_full"
    take(store, 3, 1)
    store.enqueue(1, 3)
    take(store, 1, 1)
    assert isinstance(verdict_of(store, 1), Receipt)


def test_a_drained_site_has_no_mark(open_store: Open) -> None:
    store = open_store(max_per_site_pending=2)
    store.enqueue(1, 2, site="lab")
    verb = verbs.Enqueue(mac(1), LANE, {}, site="lab")
    assert not isinstance(store.run(verb), Receipt)
    name = store.keys.name("SITES_PENDING")
    assert store.redis.hexists(name, "full:lab")
    assert len(store.claim(2)) == 2
    assert not store.redis.exists(name)


def test_a_site_that_floods_leaves_room_for_others(open_store: Open) -> None:
    store = open_store(max_total_pending=100, max_per_mac_pending=100)
    store.enqueue(1, site="other")
    verdicts = [verdict_of(store, device, "flood") for device in range(10, 95)]
    assert [isinstance(verdict, Receipt) for verdict in verdicts] == [True] * 80 + [False] * 5
    refusal = refusal_of(store, 99, "flood")
    assert (refusal.reason, refusal.pending, refusal.limit) == ("site_full", 80, 76), (
        "four times the 19 left"
    )
    assert isinstance(verdict_of(store, 2, "other"), Receipt)
    assert isinstance(verdict_of(store, 3), Receipt), "default is a site like others"


def test_a_site_alone_may_fill_the_store(open_store: Open) -> None:
    store = open_store(max_total_pending=50)
    for device in range(50):
        assert isinstance(verdict_of(store, device, "alone"), Receipt)
    assert refusal_of(store, 99, "alone").reason == "global_full"
    assert refusal_of(store, 99, "other").reason == "global_full"


def test_site_full_ends_when_nobody_else_has_tasks(open_store: Open) -> None:
    store = open_store(max_total_pending=50)
    (other,) = store.enqueue(1, site="other")
    device = 10
    while isinstance(verdict_of(store, device, "flood"), Receipt):
        device += 1
    assert refusal_of(store, 99, "flood").reason == "site_full"
    store.client.cancel(other)
    assert isinstance(verdict_of(store, 99, "flood"), Receipt)


@pytest.mark.parametrize("site", ["flood", None])
def test_a_full_site_is_admitted_again_at_its_low_mark(open_store: Open, site: str | None) -> None:
    store = open_store(max_per_site_pending=10, low_mark_percent=70)
    for device in range(10, 20):
        store.enqueue(device, site=site)
    assert refusal_of(store, 99, site).limit == 10
    for pending in (9, 8):
        take(store, 1)
        refusal = refusal_of(store, 99, site)
        assert (refusal.reason, refusal.pending, refusal.limit) == ("site_full", pending, 8)
    take(store, 1)
    assert [isinstance(verdict_of(store, 90 + at, site), Receipt) for at in range(4)] == [
        True, True, True, False,
    ]  # fmt: skip


def test_a_batch_gets_a_verdict_per_item_that_is_one_s_own(open_store: Open) -> None:
    def filled(store: Store) -> list[verbs.Enqueue]:
        store.enqueue(1, 2, site="quiet")
        store.enqueue(2, 3, site="flood")
        return [
            verbs.Enqueue(mac(device), LANE, {}, site=site, task_id=f"t{at}")
            for at, (device, site) in enumerate(
                [(at, "flood") for at in (2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)]
                + [(20, "quiet"), (21, None), (2, "quiet"), (22, "new"), (2, None)]
            )
        ]

    store = open_store(max_total_pending=20, max_per_mac_pending=4, low_mark_percent=60)
    batch = filled(store)
    together = store.run(verbs.EnqueueMany(batch))
    reasons = [getattr(verdict, "reason", "") for verdict in together]
    assert {"", "site_full", "device_full"} <= set(reasons)
    marks = store.redis.hgetall(store.keys.name("SITES_PENDING"))
    store.redis.flushall()
    store.redis.set(store.keys.clock, "virtual")
    assert [store.run(item) for item in filled(store)] == together
    assert store.redis.hgetall(store.keys.name("SITES_PENDING")) == marks


def measured(store: Store, per_hour: int) -> None:
    store.redis.hset(store.keys.name("CAPACITY"), "drained_per_hour", per_hour)


def test_retry_after_before_anything_was_measured(open_store: Open) -> None:
    store = open_store(max_per_mac_pending=1)
    store.enqueue(1)
    assert refusal_of(store, 1).retry_after_ms == store.settings.watermark_every_ms


def test_retry_after_grows_with_the_excess_and_shrinks_with_the_rate(open_store: Open) -> None:
    store = open_store(max_per_mac_pending=100, low_mark_percent=50)
    store.enqueue(1, 100)
    measured(store, 3_600)
    waits = [refusal_of(store, 1).retry_after_ms]
    for _ in range(4):
        take(store, 10, 1)
        waits.append(refusal_of(store, 1).retry_after_ms)
    assert waits == [50_000, 40_000, 30_000, 20_000, 10_000], "until 50 are left, one a second"
    measured(store, 36_000)
    assert refusal_of(store, 1).retry_after_ms == 1_000
    measured(store, 1)
    assert refusal_of(store, 1).retry_after_ms == 600_000


def test_a_device_has_its_share_of_the_drain(open_store: Open) -> None:
    store = open_store(max_per_mac_pending=10)
    store.enqueue(1, 10)
    measured(store, 3_600)
    assert refusal_of(store, 1).retry_after_ms == 1_000
    store.enqueue(2)
    store.enqueue(3)
    assert refusal_of(store, 1).retry_after_ms == 3_000, "one of three"


def test_a_site_has_its_share_of_the_drain(open_store: Open) -> None:
    store = open_store(max_per_site_pending=10)
    for device in range(10, 20):
        store.enqueue(device, site="flood")
    measured(store, 3_600)
    assert refusal_of(store, 99, "flood").retry_after_ms == 2_000, "default counts as one"
    store.enqueue(1, site="a")
    store.enqueue(2, site="b")
    assert refusal_of(store, 99, "flood").retry_after_ms == 4_000


def test_the_whole_store_has_the_whole_drain(open_store: Open) -> None:
    store = open_store(max_total_pending=20, low_mark_percent=50)
    for device in range(20):
        store.enqueue(device)
    measured(store, 3_600)
    assert refusal_of(store, 99).retry_after_ms == 10_000


def test_system_has_no_marks(open_store: Open) -> None:
    store = open_store(admission="system", max_total_pending=5, low_mark_percent=10)
    for device in range(6):
        store.enqueue(device)
    measured(store, 3_600)
    assert refusal_of(store, 99).retry_after_ms == 1_000
    take(store, 1)
    assert isinstance(verdict_of(store, 99), Receipt)
