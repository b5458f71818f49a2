"""Read the cumulative counts: accepted, refused by reason, and how tasks ended."""

from __future__ import annotations

from fairlane import verbs
from support.store import LANE, Store, mac
from verbs.conftest import Open


def test_every_way_to_end_is_counted_once(open_store: Open) -> None:
    store = open_store(max_per_mac_pending=4)
    store.finish(store.running(1))
    failed = store.running(2)
    store.run(verbs.Fail(failed.task_id, 1, "boom", final=True))
    store.run(verbs.Redrive([store.bury(3)]))
    store.client.cancel(store.claim()[0].task_id)
    store.bury(4)
    store.enqueue(5, ttl_ms=1)
    store.clock.advance(2)
    store.run(verbs.Purge())
    store.enqueue(6, 4)
    store.run(verbs.Enqueue(mac(6), LANE, {}))
    deferred = store.claim()[0]
    store.run(verbs.Defer(deferred.task_id, 1))
    store.claim()
    totals = store.run(verbs.InspectTotals())
    assert totals.counts == {
        "accepted": 9,
        "done": 1,
        "failed": 1,
        "dead": 2,
        "redriven": 1,
        "cancelled": 1,
        "expired": 1,
        "refused_device_full": 1,
        f"deferred:{LANE}": 1,
    }
    assert (totals.pending, totals.leased, totals.delayed, totals.dead_letters) == (3, 1, 1, 1)
    assert totals.lost() == 0


def test_what_is_no_count_is_named_and_left_out(store: Store) -> None:
    store.finish(store.running(1))
    store.is_spoilt = True
    for value in ("x", "-1", "1.5", "1e400", "9" * 30):
        store.redis.hset(store.keys.name("TOTALS"), "done", value)
        totals = store.run(verbs.InspectTotals())
        assert totals.spoiled == ("done",), value
        assert totals.counts == {"accepted": 1}
    store.redis.hset(store.keys.name("TOTALS"), b"\xff", 3)
    assert store.run(verbs.InspectTotals()).counts["\ufffd"] == 3


def test_twice_reads_again(store: Store) -> None:
    store.running()
    with store.unchanged():
        assert store.run(verbs.InspectTotals()) == store.run(verbs.InspectTotals())
