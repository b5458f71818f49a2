"""Lease up to `want` tasks of a lane, the device that is owed most first."""

from __future__ import annotations

import pytest

from fairlane import TaskState, verbs
from fairlane.errors import InvalidData, InvalidMac, UnknownLane
from fairlane.model import Claimed, Leased
from support.store import LANE, Store, mac
from verbs.conftest import Open


def test_returns_the_leased_tasks_in_order(store: Store) -> None:
    first, second, third = store.enqueue(1, 3)
    claimed = store.run(verbs.Claim(LANE, 2, "me"))
    assert claimed == Claimed(
        (Leased(first, 1, LANE, mac(1)), Leased(second, 1, LANE, mac(1))), (), next_due_ms=0
    )
    record = store.client.task(first)
    assert (record.state, record.claimed_at_ms) == (TaskState.LEASED, store.clock.now_ms)
    assert store.redis.hget(store.keys.task(first), "holder") == "me"
    assert store.client.task(third).place == 0


def test_with_payload_brings_the_bytes_along(store: Store) -> None:
    store.client.enqueue(mac(1), LANE, {"text": "中文"})
    (leased,) = store.claim(with_payload=True)
    assert leased.payload == '{"text":"中文"}'.encode()


def test_nothing_to_claim(store: Store) -> None:
    assert store.run(verbs.Claim(LANE, 5)) == Claimed((), (), 0)


def test_want_zero_is_the_lanes_credits(store: Store) -> None:
    store.enqueue(1, 10)
    assert store.claim(0) == ()
    store.offer(3)
    assert len(store.claim(0)) == 3 + 1  # the lane's first headroom
    assert store.claim(0) == ()


def test_lanes_that_workers_serve_together_share_their_slots(store: Store) -> None:
    store.enqueue(1, 10, task_type="ocr")
    store.enqueue(1, 10, task_type="text")
    store.offer(4, "ocr", "text")
    assert len(store.claim(0, lane="ocr")) == 5
    assert store.claim(0, lane="text") == ()


def test_without_credits_nothing_changes(store: Store) -> None:
    store.enqueue(1)
    with store.unchanged():
        assert store.claim(0) == ()


def test_no_more_than_a_batch_of_one_device_a_turn(store: Store) -> None:
    store.enqueue(1, 30)
    store.enqueue(2, 1)
    leased = [task.mac for task in store.claim(12)]
    assert leased.count(mac(2)) == 1
    assert leased.index(mac(2)) <= store.settings.batch_size


def test_exclude_mac_waits_while_another_can_go(store: Store) -> None:
    store.enqueue(1, 2)
    store.enqueue(2, 1)
    assert store.claim(1, exclude_mac=mac(1))[0].mac == mac(2)
    assert store.claim(1, exclude_mac=mac(1))[0].mac == mac(1)


def test_expired_tasks_end_on_the_way(store: Store) -> None:
    (late,) = store.enqueue(1, ttl_ms=1_000)
    (good,) = store.enqueue(1)
    store.clock.advance(1_001)
    claimed = store.run(verbs.Claim(LANE, 5))
    assert claimed.expired == (late,)
    assert [task.task_id for task in claimed.leased] == [good]
    assert store.state(late) is TaskState.EXPIRED


def test_a_task_may_be_claimed_at_its_very_ttl(store: Store) -> None:
    (task_id,) = store.enqueue(1, ttl_ms=1_000)
    store.clock.advance(1_000)
    assert [task.task_id for task in store.claim()] == [task_id]


def test_hundreds_of_expired_tasks_do_not_stop_the_rest(store: Store) -> None:
    store.client.enqueue_many([verbs.Enqueue(mac(1), LANE, {}, ttl_ms=1) for _ in range(150)])
    (good,) = store.enqueue(2)
    store.clock.advance(2)
    seen = [store.run(verbs.Claim(LANE, 1)) for _ in range(4)]
    assert sum(len(claimed.expired) for claimed in seen) == 150
    assert [task.task_id for claimed in seen for task in claimed.leased] == [good]


def test_tells_when_to_look_again(store: Store) -> None:
    leased = store.running()
    due = store.run(verbs.Defer(leased.task_id, leased.attempt)).due_ms
    assert store.run(verbs.Claim(LANE, 1)) == Claimed((), (), due)
    store.clock.advance(due - store.clock.now_ms)
    assert [task.task_id for task in store.claim()] == [leased.task_id]


@pytest.mark.parametrize(("order", "expected"), [("fifo", [0, 1, 2]), ("lifo", [2, 1, 0])])
def test_the_order_within_a_device(open_store: Open, order: str, expected: list[int]) -> None:
    store = open_store(order=order)
    tasks = store.enqueue(1, 3)
    for place, at in enumerate(expected):
        assert store.client.task(tasks[at]).place == place
    assert [task.task_id for task in store.claim(3)] == [tasks[at] for at in expected]


def test_each_lease_is_a_new_attempt(store: Store) -> None:
    (task_id,) = store.enqueue(1)
    for attempt in (1, 2, 3):
        (leased,) = store.claim()
        assert leased.attempt == attempt
        store.clock.now_ms = int(store.redis.zscore(store.keys.lane("INFLIGHT", LANE), task_id))
        store.run(verbs.Sweep())


def test_a_queued_id_without_a_record_is_counted_and_passed_over(store: Store) -> None:
    broken, good = store.enqueue(1, 2)
    store.is_spoilt = True
    store.redis.delete(store.keys.task(broken))
    assert [task.task_id for task in store.claim(2)] == [good]
    assert store.run(verbs.InspectTotals()).counts["corrupt"] == 1


def test_what_cannot_be_asked(store: Store) -> None:
    store.refuses(UnknownLane, verbs.Claim("video", 1))
    store.refuses(InvalidMac, verbs.Claim(LANE, 1, exclude_mac="nonsense"))
    for want in (-1, 1_001, 1.5, True):
        store.refuses(InvalidData, verbs.Claim(LANE, want))  # type: ignore[arg-type]


def test_twice_leases_other_tasks(store: Store) -> None:
    store.enqueue(1, 2)
    verb = verbs.Claim(LANE, 1)
    assert store.run(verb).leased[0].task_id != store.run(verb).leased[0].task_id


def test_a_claim_forgets_the_tags_that_v_has_passed(store: Store) -> None:
    store.enqueue(1, 20)
    for device in range(2, 6):
        store.enqueue(device)
    store.served(5)
    finish = store.keys.lane("FINISH", LANE)
    assert store.redis.zcard(finish) == 4, "the drained devices' tags"
    store.served(3)
    assert store.redis.zcard(finish) == 0
