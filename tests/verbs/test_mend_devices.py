"""Mend devices whose counts, places or tags do not equal their lists."""

from __future__ import annotations

from fairlane import verbs
from fairlane.errors import InvalidData, InvalidMac
from fairlane.flaw import Flaw
from support.store import LANE, Store, mac


def test_what_was_wrong_is_told_and_mended(store: Store) -> None:
    store.enqueue(1, 2)
    store.redis.hincrby(store.keys.device("META", mac(1)), "pending_count", 5)
    assert store.run(verbs.MendDevices([mac(1), mac(2)])) == (
        Flaw(mac(1), "pending_count", "7", "2"),
    )
    assert store.client.device(mac(1)).pending == 2


def test_twice_changes_nothing(store: Store) -> None:
    store.enqueue(1, 2)
    store.redis.zrem(store.keys.lane("SCHEDULE", LANE), mac(1))
    assert store.run(verbs.MendDevices([mac(1)]))
    with store.unchanged():
        assert store.run(verbs.MendDevices([mac(1)])) == ()


def test_a_device_keeps_its_tag(store: Store) -> None:
    store.enqueue(1, 3)
    store.enqueue(2, 3)
    store.served(3)
    schedule = store.keys.lane("SCHEDULE", LANE)
    before = store.redis.zrange(schedule, 0, -1, withscores=True)
    store.redis.hincrby(store.keys.device("META", mac(1)), f"{LANE}.pending_count", 1)
    store.is_spoilt = True  # the sums follow
    store.run(verbs.MendDevices([mac(1), mac(2)]))
    assert store.redis.zrange(schedule, 0, -1, withscores=True) == before
    store.run(verbs.MendSums())
    store.check()


def test_a_tag_beside_leases_that_are_over_is_remembered(store: Store) -> None:
    store.enqueue(1, 2)
    store.enqueue(2, 2)
    store.run(verbs.Configure(mac(1), paused=True))
    store.redis.hset(store.keys.device("META", mac(1)), f"{LANE}.tag", 10**9)
    assert store.run(verbs.MendDevices([mac(1)]))
    assert store.redis.zscore(store.keys.lane("FINISH", LANE), mac(1)) == 10**9


def test_a_promise_that_is_kept_first_is_among_these_again(store: Store) -> None:
    store.run(verbs.Configure(mac(1), min_running=1))
    store.enqueue(1, 2)
    store.redis.zrem(store.keys.lane("FLOOR", LANE), mac(1))
    assert store.run(verbs.MendDevices([mac(1)]))


def test_a_site_that_only_another_sites_device_held_steps_back(store: Store) -> None:
    store.enqueue(1, 2, site="lab")
    store.redis.zadd(store.keys.lane("SCHEDULE", LANE), {mac(1): 0})
    store.redis.zadd(store.keys.lane("SITES", LANE), {"default": 0})
    assert store.run(verbs.MendDevices([mac(1)]))


def test_what_cannot_be_mended(store: Store) -> None:
    store.refuses(InvalidMac, verbs.MendDevices(["nobody"]))
    store.refuses(InvalidData, verbs.MendDevices([mac(1)] * 1_001))
