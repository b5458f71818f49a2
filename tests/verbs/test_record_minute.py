"""Record the system's level for the history, once a minute."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fairlane import verbs
from fairlane.verbs.history import Minute
from support.store import LANE, Store, mac

MINUTE_MS = 60_000


def minutes(store: Store, count: int = 60) -> tuple[Minute, ...]:
    return store.run(verbs.ReadHistory(count))


def test_a_minute_is_what_came_since_the_row_before(store: Store) -> None:
    assert store.run(verbs.RecordMinute())
    store.enqueue(1, 3)
    store.clock.advance(2_000)
    for leased in store.claim(2):
        store.start(leased)
    store.finish(leased)
    store.offer(4)
    store.clock.advance(MINUTE_MS - 2_000)
    assert store.run(verbs.RecordMinute())
    (minute,) = minutes(store)
    assert (minute.at_ms, minute.seconds) == (store.clock.now_ms, 60.0)
    assert (minute.enqueued, minute.done, minute.finished, minute.refused) == (3, 1, 1, 0)
    # One that ended had waited for 2 s, which is in the bucket from 1 s to 2 s.
    assert (minute.wait_p50_ms, minute.wait_p99_ms) == (1_500, 1_990)
    assert (minute.pending, minute.leased, minute.delayed, minute.dead_letters) == (1, 1, 0, 0)
    told = {lane.name: (lane.pending, lane.leased, lane.slots) for lane in minute.lanes}
    assert told == {LANE: (1, 1, 4), "ocr": (0, 0, 0)}


def test_waits_are_of_all_that_ended_in_the_minute_at_any_rate(store: Store) -> None:
    """They were those of 32 events of each 3.75 s, and a burst's first were its shortest."""

    def run(waits_ms: Sequence[int]) -> None:
        for wait_ms in waits_ms:
            store.client.enqueue(mac(1), LANE, {})
            store.clock.advance(wait_ms)
            (leased,) = store.client.run(verbs.Claim(LANE, 1)).leased
            store.client.run(verbs.Start(leased.task_id, 1, "worker", "run"))
            store.client.run(verbs.Finish(leased.task_id, 1))

    run([1] * 5)
    store.run(verbs.RecordMinute())
    store.clock.advance(MINUTE_MS)
    run([4] * 40 + [1_500] * 80 + [25_000] * 3)
    store.run(verbs.RecordMinute())
    (minute,) = minutes(store)
    assert 1_000 < (minute.wait_p50_ms or 0) <= 2_000
    assert 10_000 < (minute.wait_p99_ms or 0) <= 30_000
    store.clock.advance(MINUTE_MS)
    store.run(verbs.RecordMinute())
    assert minutes(store)[-1].wait_p50_ms is None, "nothing ended in this one"


def test_waits_of_every_lane_and_over_the_last_bound(store: Store) -> None:
    store.run(verbs.RecordMinute())
    for lane, wait_ms in ((LANE, 0), ("ocr", 2_000_000), ("ocr", 2_000_000)):
        store.client.enqueue(mac(1), lane, {})
        store.clock.advance(wait_ms)
        (leased,) = store.claim(lane=lane)
        store.start(leased)
        store.finish(leased)
    store.run(verbs.RecordMinute())
    (minute,) = minutes(store, 120)
    assert (minute.wait_p50_ms, minute.wait_p99_ms) == (1_800_000, 1_800_000)


def test_counts_that_began_anew_are_no_waits_below_zero(store: Store) -> None:
    store.is_spoilt = True
    store.finish(store.running())
    store.run(verbs.RecordMinute())
    store.redis.delete(store.keys.lane("TIMES", LANE))
    store.clock.advance(MINUTE_MS)
    store.run(verbs.RecordMinute())
    assert minutes(store)[0].wait_p50_ms is None


def test_refusals_of_every_kind_are_counted(store: Store) -> None:
    store.run(verbs.RecordMinute())
    for reason in ("device_full", "global_full"):
        store.redis.hincrby(store.keys.name("TOTALS"), f"refused_{reason}", 2)
    store.clock.advance(MINUTE_MS)
    store.run(verbs.RecordMinute())
    assert minutes(store)[0].refused == 4


def test_twice_answers_0_and_changes_nothing_within_the_same_minute(store: Store) -> None:
    assert store.run(verbs.RecordMinute())
    store.enqueue(1)
    store.clock.advance(MINUTE_MS - 1 - store.clock.now_ms % MINUTE_MS)
    with store.unchanged():
        assert not store.run(verbs.RecordMinute())
    store.clock.advance(1)
    assert store.run(verbs.RecordMinute())


def test_memory_is_bounded_to_a_day(store: Store) -> None:
    for _ in range(1_500):
        store.client.run(verbs.RecordMinute())
        store.clock.advance(MINUTE_MS)
    assert store.redis.hlen(store.keys.name("HISTORY")) == 1_440
    assert store.redis.memory_usage(store.keys.name("HISTORY"), samples=0) < 2_000_000


@pytest.mark.parametrize(
    ("turns", "weight", "jain"),
    [((2, 2), 1, 1.0), ((3, 1), 1, 0.8), ((3, 1), 3, 1.0)],
)
def test_shares_are_by_weight_of_devices_that_have_tasks_all_the_time(
    store: Store, turns: tuple[int, int], weight: int, jain: float
) -> None:
    store.run(verbs.Configure(mac(1), weight=weight, paused=True))
    store.run(verbs.Configure(mac(2), paused=True))
    for device, count in enumerate(turns, start=1):
        store.enqueue(device, count + 1)
    store.run(verbs.RecordMinute())
    store.clock.advance(MINUTE_MS)
    for device, count in enumerate(turns, start=1):
        store.run(verbs.Configure(mac(device), paused=False))
        for _ in range(count):
            (leased,) = store.claim()
            assert leased.mac == mac(device)
            store.start(leased)
            store.clock.advance(10)
            store.finish(leased)
        store.run(verbs.Configure(mac(device), paused=True))
    # Who came late had no minute to be fair in.
    store.enqueue(3)
    store.clock.advance(MINUTE_MS - 1)
    (leased,) = store.claim()
    store.start(leased)
    store.enqueue(3)
    store.run(verbs.RecordMinute())
    assert minutes(store)[-1].jain == jain


def test_one_that_gets_all_is_told(store: Store) -> None:
    store.enqueue(1, 9)
    store.run(verbs.RecordMinute())
    store.clock.advance(MINUTE_MS)
    for _ in range(8):
        (leased,) = store.claim()
        store.start(leased)
    store.run(verbs.RecordMinute())
    # One device alone is fair to nobody.
    assert minutes(store)[-1].jain is None
