"""Find sums over all devices and tasks that are wrong."""

from __future__ import annotations

from fairlane import verbs
from fairlane.flaw import Flaw
from support.store import LANE, Store, mac


def test_sums_that_are_right(store: Store) -> None:
    store.enqueue(1, 2)
    store.enqueue(2, site="lab")
    store.claim(2)
    store.offer(2)
    assert store.run(verbs.CheckSums()) == ()


def test_what_is_wrong_is_named_with_what_would_be_right(store: Store) -> None:
    store.enqueue(1, 2)
    store.redis.incr(store.keys.name("GLOBAL_PENDING"), 5)
    store.redis.hset(store.keys.name("CAPACITY"), f"slots:{LANE}", 7)
    store.is_spoilt = True
    with store.unchanged():
        assert store.run(verbs.CheckSums()) == (
            Flaw("store", "global_pending", "7", "2"),
            Flaw("store", f"{LANE} slots", "7", "0"),
        )


def test_devices_beyond_what_a_script_can_count_are_left_alone(store: Store) -> None:
    store.enqueue(1, 2)
    raw, name = store.redis, store.keys.name("MACS")
    raw.zadd(name, {mac(at): at for at in range(2, 5_002)})
    raw.hincrby(store.keys.lane("VIRTUAL", LANE), "pending", 3)
    store.is_spoilt = True
    assert store.run(verbs.CheckSums()) == ()
    raw.zremrangebyrank(name, 0, 4_000)
    assert [flaw.what for flaw in store.run(verbs.CheckSums())] == [f"{LANE} pending"]
