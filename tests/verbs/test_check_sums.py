"""Find sums over all devices and tasks that are wrong."""

from __future__ import annotations

from fairlane import verbs
from fairlane.flaw import Flaw
from fairlane.scripts import definitions
from support.store import LANE, Store, mac


def test_sums_that_are_right(store: Store) -> None:
    store.enqueue(1, 2)
    store.enqueue(2, site="lab")
    store.claim(2)
    store.offer(2)
    assert store.run(verbs.CheckSums()) == ((), ())


def test_what_is_wrong_is_named_with_what_would_be_right(store: Store) -> None:
    store.enqueue(1, 2)
    store.redis.incr(store.keys.name("GLOBAL_PENDING"), 5)
    store.redis.hset(store.keys.name("CAPACITY"), f"slots:{LANE}", 7)
    store.is_spoilt = True
    with store.unchanged():
        flaws, left_out = store.run(verbs.CheckSums())
    assert flaws == (
        Flaw("store", "global_pending", "7", "2"),
        Flaw("store", f"{LANE} slots", "7", "0"),
    )
    assert left_out == ()


def test_devices_beyond_what_a_step_can_count_are_told_and_left_alone(store: Store) -> None:
    store.enqueue(1, 2)
    raw, name = store.redis, store.keys.name("MACS")
    most = bound("DEVICES")
    raw.zadd(name, {mac(at): at for at in range(2, most + 2)})
    raw.hincrby(store.keys.lane("VIRTUAL", LANE), "pending", 3)
    store.is_spoilt = True
    assert store.run(verbs.CheckSums()) == ((), (("devices with tasks", most + 1),))
    raw.zremrangebyrank(name, 0, 0)
    flaws, left_out = store.run(verbs.CheckSums())
    assert [flaw.what for flaw in flaws] == [f"{LANE} pending"]
    assert left_out == ()


def test_leases_and_delayed_tasks_beyond_what_a_step_can_count(store: Store) -> None:
    most = bound("TASKS")
    store.enqueue(1)
    for name in (store.keys.lane("INFLIGHT", LANE), store.keys.name("DELAYED")):
        store.redis.zadd(name, {f"t{at}": at for at in range(most + 1)})
    store.is_spoilt = True
    _, left_out = store.run(verbs.CheckSums())
    assert left_out == (("delayed tasks", most + 1), (f"leases in lane {LANE}", most + 1))


def test_sites_beyond_what_a_step_can_count(store: Store) -> None:
    most = bound("SITES")
    store.redis.hset(store.keys.name("SITES_PENDING"), mapping={f"s{at}": 1 for at in range(most)})
    store.is_spoilt = True
    assert store.run(verbs.CheckSums())[1] == ()
    store.redis.hset(store.keys.name("SITES_PENDING"), "one-more", 1)
    _, left_out = store.run(verbs.CheckSums())
    assert left_out == tuple((f"sites in lane {lane}", most + 1) for lane in store.settings.lanes)


def test_the_slots_of_a_worker_that_is_gone_are_the_sweeps_to_take_back(store: Store) -> None:
    """Its row ends by itself, a little before the sweep takes note."""
    store.offer(2)
    store.redis.unlink(store.keys.name("WORKER") + "host:1:a")
    store.is_spoilt = True
    assert store.run(verbs.CheckSums()) == ((), ())
    with store.unchanged():
        assert store.run(verbs.MendSums()) == ((), ())


def bound(what: str) -> int:
    """Return how many of these one step counts at most."""
    return int(definitions()[f"FEW_{what}"].rpartition(" ")[2])
