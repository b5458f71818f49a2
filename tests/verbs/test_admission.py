"""Admission: exactly at the limits, by both rules; who floods is refused first."""

from __future__ import annotations

from collections import Counter

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
    store.run(verbs.Watermark())
    for _ in range(60):
        store.finish(store.running())
    store.clock.advance(60_000)
    store.run(verbs.Watermark())
    store.enqueue(1)
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
