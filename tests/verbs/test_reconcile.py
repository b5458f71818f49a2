"""Recount a page of devices from their lists and seat them; on a healthy store nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairlane import verbs
from fairlane.errors import InvalidData
from fairlane.keys import Keys
from support.store import LANE, Store, mac
from verbs.conftest import Open

Spoil = Callable[[Any, Keys], Any]


def busy(store: Store) -> None:
    """Bring devices into every state that a device can be in."""
    for device in range(6):
        store.enqueue(device, 3)
        store.clock.advance(100)
    store.served(4)
    leased = store.claim(3)
    store.run(verbs.Defer(leased[0].task_id, leased[0].attempt))
    store.run(verbs.Defer(leased[1].task_id, leased[1].attempt, "", "device"))
    store.run(verbs.Configure(mac(5), paused=True))
    store.run(verbs.ClaimDevice(LANE))
    store.enqueue(7, task_type="ocr")


def test_on_a_healthy_store_nothing_changes(store: Store) -> None:
    busy(store)
    with store.unchanged():
        assert store.run(verbs.Reconcile()) == (-1, ())


SPOILT: dict[str, Spoil] = {
    "a device fell out of the schedule": lambda redis, keys: (
        redis.zrem(keys.lane("SCHEDULE", LANE), mac(1)),
        redis.zrem(keys.lane("WAITING", LANE), mac(1)),
    ),
    "a paused device is in the schedule": lambda redis, keys: (
        redis.zadd(keys.lane("SCHEDULE", LANE), {mac(5): 0}),
        redis.zadd(keys.lane("WAITING", LANE), {mac(5): 0}),
    ),
    "overloaded without cause": lambda redis, keys: redis.sadd(keys.name("OVERLOADED"), mac(1)),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_mends_a_place_that_is_wrong(store: Store, spoil: Spoil) -> None:
    busy(store)
    spoil(store.redis, store.keys)
    with pytest.raises(AssertionError):
        store.check()
    store.is_spoilt = True
    after, mended = store.run(verbs.Reconcile())
    assert (after, len(mended)) == (-1, 1)
    store.check()


def test_mends_counts_that_do_not_equal_the_lists(store: Store) -> None:
    kept, lost = store.enqueue(1, 2)
    store.redis.lrem(store.keys.device("QUEUE", mac(1), LANE), 1, lost)
    store.redis.delete(store.keys.task(lost))
    store.redis.zrem(store.keys.name("DEADLINES"), lost)
    store.is_spoilt = True
    assert store.run(verbs.Reconcile()) == (-1, (mac(1),))
    assert store.client.device(mac(1)).pending == 1
    assert store.run(verbs.Overload()).global_pending == 1
    assert [task.task_id for task in store.claim(2)] == [kept]


def test_the_sums_follow_a_device_whose_tasks_are_gone(store: Store) -> None:
    kept, lost = store.enqueue(1, 2, site="lab")
    store.redis.lrem(store.keys.device("QUEUE", mac(1), LANE), 1, lost)
    store.redis.delete(store.keys.task(lost))
    store.redis.zrem(store.keys.name("DEADLINES"), lost)
    store.redis.hincrby(store.keys.name("TOTALS"), "accepted", -1)
    # Every count is right again, though only the device was counted anew.
    assert store.run(verbs.Reconcile()) == (-1, (mac(1),))
    assert [task.task_id for task in store.claim(2)] == [kept]


def test_a_page_at_a_time(store: Store) -> None:
    for device in range(5):
        store.enqueue(device)
    assert store.run(verbs.Reconcile(0, 2)) == (2, ())
    assert store.run(verbs.Reconcile(2, 2)) == (4, ())
    assert store.run(verbs.Reconcile(4, 2)) == (-1, ())
    for offset, limit in ((-1, 1), (0, 0), (0, 1_001)):
        store.refuses(InvalidData, verbs.Reconcile(offset, limit))


def test_twice_changes_nothing(store: Store) -> None:
    busy(store)
    store.redis.zrem(store.keys.lane("SCHEDULE", LANE), mac(1))
    store.is_spoilt = True
    store.run(verbs.Reconcile())
    with store.unchanged():
        assert store.run(verbs.Reconcile()) == (-1, ())


@pytest.mark.parametrize("policy", ["fair", "aging"])
def test_devices_with_limits_are_left_as_they_are(open_store: Open, policy: str) -> None:
    store = open_store(policy=policy)
    store.run(verbs.Configure(mac(0), min_running=3))
    store.run(verbs.Configure(mac(1), max_running=1))
    store.run(verbs.Configure(mac(2), rate_per_s=1))
    for device in range(3):
        store.enqueue(device, 3)
    store.claim(4)
    store.clock.advance(100)
    assert store.run(verbs.Reconcile()) == (-1, ())
    with store.unchanged():
        store.run(verbs.Reconcile())
