"""Take back what ended on its own: lost leases, backoffs, delays, dead turns and workers."""

from __future__ import annotations

import pytest

from fairlane import TaskState, verbs
from fairlane.errors import InvalidData
from fairlane.model import Swept
from support.store import LANE, Store, mac
from verbs.conftest import Open

NOTHING = Swept((), (), 0, 0, 0, ())


def test_a_lease_lost_before_its_start_costs_nothing_and_its_interval_doubles(
    store: Store,
) -> None:
    (task_id,) = store.enqueue(1, ttl_ms=7 * 24 * 3_600_000)
    lease_ms, hour_ms = store.settings.lease_ms, 3_600_000
    for attempt in range(1, 10):
        (leased,) = store.claim()
        assert leased.attempt == attempt
        expected = min(lease_ms * 2 // 3 * 2 ** (attempt - 1), hour_ms)
        store.clock.advance(expected - 1)
        assert store.run(verbs.Sweep()) == NOTHING
        store.clock.advance(1)
        assert store.run(verbs.Sweep()).lost == (f"{task_id}.{attempt}",)
    record = store.client.task(task_id)
    assert (record.state, record.failures, record.defers) == (TaskState.PENDING, 0, 0)
    (leased,) = store.claim()
    store.start(leased)


def test_a_lost_start_counts_and_the_last_one_is_dead(store: Store) -> None:
    (task_id,) = store.enqueue(1)
    for attempt in (1, 2, 3):
        (leased,) = store.claim()
        store.start(leased)
        store.clock.advance(store.settings.lease_ms)
        swept = store.run(verbs.Sweep())
        assert swept.lost == (f"{task_id}.{attempt}",)
    assert swept.dead == (task_id,)
    (letter,) = store.run(verbs.DeadLetters())
    assert (letter.cause, letter.failures) == ("worker_lost", 3)
    assert "worker" in letter.error


def test_a_lost_start_waits_again_and_says_why(store: Store) -> None:
    leased = store.running()
    store.clock.advance(store.settings.lease_ms)
    store.run(verbs.Sweep())
    record = store.client.task(leased.task_id)
    assert (record.state, record.cause, record.failures) == (TaskState.PENDING, "worker_lost", 1)


def test_what_was_lost_is_counted_and_told(store: Store) -> None:
    leased = store.running()
    store.clock.advance(store.settings.lease_ms)
    store.run(verbs.Sweep())
    assert store.redis.hget(store.keys.name("TOTALS"), "lost_leases") == "1"
    (told,) = [event for event in store.client.events() if event.event == "lease_lost"]
    assert told.tasks == (f"{leased.task_id}.1",)


def test_a_worker_that_is_gone_is_told_once(store: Store) -> None:
    store.offer(2)
    store.clock.advance(30_000)
    assert store.run(verbs.Sweep()).workers == ("host:1:a",)
    assert store.run(verbs.Sweep()) == NOTHING
    (told,) = [event for event in store.client.events() if event.event == "worker_gone"]
    assert told.detail == "host:1:a"


def test_a_lease_of_what_is_not_leased_is_not_in_the_way(store: Store) -> None:
    store.is_spoilt = True  # another program put it there
    ended, lost = store.running(1), store.running(2)
    store.finish(ended)
    store.redis.zadd(store.keys.lane("INFLIGHT", LANE), {ended.task_id: 1})
    store.clock.advance(store.settings.lease_ms)
    assert store.run(verbs.Sweep(1)).lost == ()
    assert store.run(verbs.Sweep(1)).lost == (f"{lost.task_id}.1",)
    assert store.state(ended.task_id) is TaskState.DONE


def test_a_lost_task_is_served_next_and_its_device_is_not_charged_again(store: Store) -> None:
    first, *_ = store.enqueue(1, 3)
    store.enqueue(2, 3)
    store.claim()
    store.clock.advance(store.settings.lease_ms)
    store.run(verbs.Sweep())
    assert store.client.task(first).place == 0
    assert store.served(3) == [mac(2), mac(1), mac(1)]


def test_a_lost_task_past_its_ttl_is_expired(store: Store) -> None:
    (task_id,) = store.enqueue(1, ttl_ms=1_000)
    store.claim()
    store.clock.advance(store.settings.lease_ms)
    store.run(verbs.Sweep())
    assert store.state(task_id) is TaskState.EXPIRED


def test_a_lost_task_at_its_very_ttl_is_not_yet_expired(store: Store) -> None:
    (task_id,) = store.enqueue(1, ttl_ms=store.settings.lease_ms)
    store.claim()
    store.clock.advance(store.settings.lease_ms)
    store.run(verbs.Sweep())
    assert store.state(task_id) is TaskState.PENDING


def test_a_heartbeat_keeps_a_lease(store: Store) -> None:
    leased = store.running()
    for _ in range(5):
        store.clock.advance(store.settings.lease_ms - 1)
        store.offer(1, active=[(leased.task_id, 1)])
        assert store.run(verbs.Sweep()).lost == ()
    store.clock.advance(store.settings.lease_ms)
    assert store.run(verbs.Sweep()).lost == (f"{leased.task_id}.1",)


def test_delays_and_backoffs_end_at_their_due_time(open_store: Open) -> None:
    store = open_store(defer_jitter_percent=0)
    one, other = store.running(1), store.running(2)
    store.run(verbs.Defer(one.task_id, 1))
    due_ms = store.run(verbs.Defer(other.task_id, 1, "", "device")).due_ms
    store.clock.now_ms = due_ms - 1
    assert store.run(verbs.Sweep()) == NOTHING
    store.clock.advance(1)
    swept = store.run(verbs.Sweep())
    assert (swept.backoffs, swept.delays) == (1, 1)
    assert {task.mac for task in store.claim(5)} == {mac(1), mac(2)}


def test_a_dead_turn_ends_after_its_lease(store: Store) -> None:
    store.enqueue(1)
    turn = store.run(verbs.ClaimDevice(LANE))
    assert turn is not None
    store.clock.now_ms = turn.deadline_ms - 1
    assert store.run(verbs.Sweep()) == NOTHING
    store.clock.advance(1)
    assert store.run(verbs.Sweep()).turns == 1
    assert len(store.claim()) == 1


def test_a_workers_row_is_gone_30_s_after_its_last_report(store: Store) -> None:
    store.offer(2)
    store.clock.advance(30_000 - 1)
    assert store.run(verbs.Sweep()) == NOTHING
    assert store.run(verbs.InspectWorkers())[0].slots == 2
    store.clock.advance(1)
    assert store.run(verbs.InspectWorkers()) == ()
    assert store.run(verbs.Sweep()).workers == ("host:1:a",)
    assert not store.redis.exists(store.keys.name("WORKER") + "host:1:a")
    assert store.run(verbs.InspectLanes())[1].slots == 0


def test_at_most_limit_of_each_kind(store: Store) -> None:
    for device in range(5):
        store.enqueue(device)
    store.claim(5)
    store.clock.advance(store.settings.lease_ms)
    assert [len(store.run(verbs.Sweep(2)).lost) for _ in range(4)] == [2, 2, 1, 0]
    for limit in (0, 1_001, True):
        store.refuses(InvalidData, verbs.Sweep(limit))


@pytest.mark.parametrize("order", ["fifo", "lifo"])
def test_a_lost_batch_is_served_before_the_rest(open_store: Open, order: str) -> None:
    store = open_store(order=order)
    store.enqueue(1, 5)
    batch = {task.task_id for task in store.claim(3)}
    store.clock.advance(store.settings.lease_ms)
    store.run(verbs.Sweep())
    assert {task.task_id for task in store.claim(3)} == batch


def test_twice_takes_back_the_next_ones_or_none(store: Store) -> None:
    store.running()
    store.clock.advance(store.settings.lease_ms)
    store.run(verbs.Sweep())
    with store.unchanged():
        assert store.run(verbs.Sweep()) == NOTHING


def test_a_sweep_takes_no_more_than_its_limit_in_all(open_store: Open) -> None:
    store = open_store()
    for n in range(6):
        store.client.enqueue(mac(n), "text", {})
        store.client.enqueue(mac(n), "ocr", {})
    for lane in ("text", "ocr"):
        store.run(verbs.Claim(lane, 4))
    store.clock.advance(store.client.settings.lease_ms + 1)
    assert [len(store.run(verbs.Sweep(3)).lost) for _ in range(4)] == [3, 3, 2, 0]
