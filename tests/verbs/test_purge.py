"""End up to `limit` pending or delayed tasks that are past their TTL."""

from __future__ import annotations

import pytest

from fairlane import TaskState, verbs
from fairlane.errors import InvalidData
from support.store import LANE, Store, mac
from verbs.conftest import Open


@pytest.mark.parametrize("order", ["fifo", "lifo"])
def test_exactly_the_expired_ones(open_store: Open, order: str) -> None:
    store = open_store(order=order)
    old = store.enqueue(1, 100)
    store.clock.advance(1)
    young = store.enqueue(1, 50)
    store.clock.advance(store.settings.task_ttl_ms)
    assert sorted(store.run(verbs.Purge(1_000))) == sorted(old)
    assert store.client.device(mac(1)).pending == 50
    assert {store.state(task) for task in old} == {TaskState.EXPIRED}
    assert store.run(verbs.InspectTotals()).counts["expired"] == 100
    served = [task.task_id for _ in range(50) for task in store.claim()]
    assert served == (young if order == "fifo" else young[::-1])


def test_strictly_older_than_the_ttl(store: Store) -> None:
    (task_id,) = store.enqueue(1)
    store.clock.advance(store.settings.task_ttl_ms)
    with store.unchanged():
        assert store.run(verbs.Purge()) == ()
    store.clock.advance(1)
    assert store.run(verbs.Purge()) == (task_id,)


def test_an_expired_task_is_told_and_not_forgotten(store: Store) -> None:
    (task_id,) = store.enqueue(1, ttl_ms=2_000)
    store.clock.advance(2_001)
    store.run(verbs.Purge())
    record = store.client.task(task_id)
    assert (record.state, record.ended_at_ms) == (TaskState.EXPIRED, store.clock.now_ms)


def test_a_delayed_task_expires_too(store: Store) -> None:
    leased = store.running(ttl_ms=10_000)
    store.run(verbs.Defer(leased.task_id, 1))
    store.clock.advance(10_001)
    assert store.run(verbs.Purge()) == (leased.task_id,)
    store.clock.advance(60_000)
    assert store.claim() == ()


def test_a_leased_task_does_not(store: Store) -> None:
    store.enqueue(1, ttl_ms=1_000)
    (leased,) = store.claim()
    store.clock.advance(2_000)
    assert store.run(verbs.Purge()) == ()
    store.start(leased)


def test_short_ttls_in_the_middle_of_a_queue_end_a_few_a_run(store: Store) -> None:
    store.enqueue(1)
    late = store.enqueue(1, 10, ttl_ms=1)
    store.enqueue(1)
    store.clock.advance(2)
    ended: list[str] = []
    while expired := store.run(verbs.Purge()):
        assert len(expired) <= 4, "LREM in the middle of a list is bounded"
        ended += expired
    assert sorted(ended) == sorted(late)


def test_at_most_limit(store: Store) -> None:
    store.client.enqueue_many([verbs.Enqueue(mac(n % 3), LANE, {}, ttl_ms=1) for n in range(30)])
    store.clock.advance(2)
    assert [len(store.run(verbs.Purge(7))) for _ in range(6)] == [7, 7, 7, 7, 2, 0]
    for limit in (0, -1, 1_001, "7"):
        store.refuses(InvalidData, verbs.Purge(limit))  # type: ignore[arg-type]


def test_an_overloaded_device_is_no_longer_so_once_its_tasks_expired(open_store: Open) -> None:
    store = open_store(admission="system", max_per_mac_pending=3)
    store.enqueue(1, 4)
    assert store.run(verbs.Overload()).overloaded
    store.clock.advance(store.settings.task_ttl_ms + 1)
    store.run(verbs.Purge())
    assert not store.run(verbs.Overload()).overloaded
    store.enqueue(2)


def test_twice_ends_the_next_ones_or_none(store: Store) -> None:
    store.enqueue(1, 3, ttl_ms=1)
    store.clock.advance(2)
    assert len(store.run(verbs.Purge())) == 3
    with store.unchanged():
        assert store.run(verbs.Purge()) == ()


def _is_not_in_the_way(store: Store, spoilt: list[str]) -> None:
    """Prove that deadlines which lead to nothing are gone once they were met."""
    (task_id,) = store.enqueue(9, ttl_ms=50)
    store.clock.advance(51)
    for _ in spoilt:
        assert store.run(verbs.Purge(1)) == ()
    assert store.run(verbs.Purge(1)) == (task_id,)


def test_a_deadline_without_a_record_is_not_in_the_way(store: Store) -> None:
    store.is_spoilt = True
    spoilt = ["nobody's", "nor this one"]
    for at, task_id in enumerate(spoilt):
        store.redis.zadd(store.keys.name("DEADLINES"), {task_id: at + 1})
    _is_not_in_the_way(store, spoilt)


def test_a_deadline_of_what_waits_elsewhere_is_not_in_the_way(store: Store) -> None:
    store.is_spoilt = True
    spoilt = store.enqueue(1, 2, ttl_ms=1)
    store.redis.rename(
        store.keys.device("QUEUE", mac(1), LANE), store.keys.device("QUEUE", mac(2), LANE)
    )
    _is_not_in_the_way(store, spoilt)
