"""Who is next under `fair`: start-time fair queueing, with a guard and without the MAC's help."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from fairlane import verbs
from fairlane.verbs.accept import MAX_MS
from support.store import LANE, Store, mac


def test_equal_devices_take_turns_in_order_of_arrival(store: Store) -> None:
    arrived = [5, 1, 9, 3]
    for device in arrived:
        store.enqueue(device, 3)
    assert store.served(12) == [mac(device) for device in arrived] * 3


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_the_mac_never_decides_a_tie(store: Store, order: tuple[int, int]) -> None:
    """Newcomers at one v are served in order of arrival, also among devices long backlogged."""
    early, late = order
    for device in (10, 11, 12):
        store.enqueue(device, 20)
    store.served(7)
    store.enqueue(early)
    store.enqueue(late)
    served = store.served(6)
    assert served.index(mac(early)) < served.index(mac(late))


def test_no_two_devices_share_a_tag(store: Store) -> None:
    """Equal scores are ordered by member, so they would let the MAC decide."""
    choose = random.Random(1)
    for device in range(40):
        store.enqueue(device, 8)
        if device % 5 == 0:
            weight = choose.choice([0.5, 1, 2, 3, 7])
            store.run(verbs.Configure(mac(choose.randrange(device + 1)), weight=weight))
        leased = store.claim(choose.randrange(4))
        if leased and choose.random() < 0.5:
            store.client.cancel(leased[0].task_id)
        tags = store.redis.zrange(store.keys.lane("SCHEDULE", LANE), 0, -1, withscores=True)
        assert len({tag for _, tag in tags}) == len(tags)


@pytest.mark.parametrize(("light", "heavy"), [(1, 3), (1, 2), (2, 3)])
def test_shares_follow_weights(store: Store, light: int, heavy: int) -> None:
    store.run(verbs.Configure(mac(1), weight=light))
    store.run(verbs.Configure(mac(2), weight=heavy))
    store.enqueue(1, 40)
    store.enqueue(2, 40)
    for turns in range(1, 41):
        store.served(1)
        shares = Counter(event.mac for event in store.client.events() if event.event == "done")
        gap = shares[mac(1)] / light - shares[mac(2)] / heavy
        assert abs(gap) <= 1 / light + 1 / heavy, f"after {turns} turns: {shares}"
    assert abs(shares[mac(2)] / shares[mac(1)] - heavy / light) < 0.35


def test_a_newcomer_is_next_whatever_the_flood(store: Store) -> None:
    for device in range(1, 4):
        store.enqueue(device, 50)
    store.served(40)
    for newcomer in range(100, 110):
        store.enqueue(newcomer)
        assert mac(newcomer) in store.served(2)


def test_a_drained_device_gains_no_credit(store: Store) -> None:
    store.enqueue(1, 40)
    store.enqueue(2)
    store.served(21)
    store.enqueue(2, 20)
    assert store.served(10).count(mac(2)) == 5, "the turns that it had no use for are gone"


def test_a_device_that_comes_back_at_once_does_not_jump_the_queue(store: Store) -> None:
    store.enqueue(1, 10)
    served = []
    for _ in range(8):
        store.enqueue(2)
        served += store.served(1)
    assert 3 <= served.count(mac(2)) <= 5


def test_an_idle_lane_forgets_the_past_rush(store: Store) -> None:
    store.enqueue(1, 30)
    store.served(30)
    store.enqueue(1, 4)
    store.enqueue(2, 4)
    assert store.served(8).count(mac(1)) == 4
    assert not store.redis.zcard(store.keys.lane("FINISH", LANE)) > 2


def test_a_guarded_turn_goes_to_a_device_that_waits_too_long(store: Store) -> None:
    store.run(verbs.Configure(mac(9), weight=0.01))
    store.enqueue(9, 5)
    store.served(1)
    for device in (1, 2, 3):
        store.enqueue(device, 60)
    assert mac(9) not in store.served(40), "its next tag is a hundred tasks away"
    store.clock.advance(store.settings.starvation_after_ms)
    for _ in range(8):
        store.clock.advance(1)
        if mac(9) in store.served(1):
            break
    else:
        pytest.fail("a device that waits over T_starve is owed one turn in four")
    assert mac(9) not in store.served(7), "it has been served: it starves no more"


def test_the_guard_does_not_pay_for_what_a_device_has_had(store: Store) -> None:
    store.run(verbs.Configure(mac(9), weight=0.01))
    store.enqueue(9, 20)
    assert len(store.claim(10)) == 10
    store.enqueue(1, 60)
    store.clock.advance(store.settings.starvation_after_ms)
    assert mac(9) not in store.served(12), "its tag is ten of its tasks ahead, not one"


def test_the_guard_takes_one_turn_in_four_at_most(store: Store) -> None:
    store.enqueue(1, 80)
    store.served(1)
    for device in range(20, 40):
        store.run(verbs.Configure(mac(device), weight=0.01))
        store.enqueue(device, 2)
    store.served(20)
    store.clock.advance(store.settings.starvation_after_ms)
    served = store.served(16)
    assert served.count(mac(1)) == 12, "the other four are the guard's"


def test_a_large_batch_shares_its_credits_among_all_who_wait(store: Store) -> None:
    store.enqueue(1, 100)
    for device in range(2, 12):
        store.enqueue(device, 3)
    shares = Counter(task.mac for task in store.claim(11))
    assert len(shares) == 11, "one each, and not ten of the first"


def test_a_refused_lease_is_not_charged(store: Store) -> None:
    store.enqueue(1, 10)
    store.enqueue(2, 10)
    (leased,) = store.claim()
    assert leased.mac == mac(1)
    store.run(verbs.Defer(leased.task_id, leased.attempt))
    assert store.served(3).count(mac(1)) == 2, "the turn it had no use of is given back"


def test_a_refund_at_another_weight_is_no_credit(store: Store) -> None:
    store.enqueue(1, 40)
    store.enqueue(2, 40)
    for leased in store.claim(40):
        store.start(leased)
        store.finish(leased)
    mine = [leased for leased in store.claim(8) if leased.mac == mac(1)]
    store.run(verbs.Configure(mac(1), weight=0.001))
    for leased in mine:
        store.client.cancel(leased.task_id)
    store.run(verbs.Configure(mac(1), weight=1.0))
    served = [leased.mac for leased in store.claim(12)]
    assert served.count(mac(2)) >= 4, "device 1 is not served before device 2 for long"


def test_arrivals_are_told_apart_after_a_device_of_little_weight_had_its_way(store: Store) -> None:
    """Its tag is past 2^53, where whole numbers end; the idle lane does not stay there."""
    store.run(verbs.Configure(mac(9), weight=0.001))
    store.enqueue(9, 2, ttl_ms=MAX_MS)
    for run_ms in (MAX_MS - 1_000, 1):
        (leased,) = store.claim()
        store.start(leased)
        store.clock.advance(run_ms)
        reached = float(store.redis.hget(store.keys.lane("VIRTUAL", LANE), "v") or 0)
        store.finish(leased)
    assert reached > 2**53
    arrived = [5, 1, 8, 3, 7, 2]
    for device in arrived:
        store.enqueue(device, 2)
    assert store.served(12) == [mac(device) for device in arrived] * 2


def test_an_idle_lane_begins_at_zero_again(store: Store) -> None:
    store.enqueue(1, 3)
    store.enqueue(2, 3)
    virtual = store.keys.lane("VIRTUAL", LANE)
    order = {name + field for name in ("", "site_") for field in ("v", "joined", "work")}
    store.served(4)
    assert {"v", "joined", "work"} <= set(store.redis.hgetall(virtual))
    store.served(2)
    assert not order & set(store.redis.hgetall(virtual))
    assert not store.redis.exists(store.keys.lane("FINISH", LANE))


def test_the_guard_follows_the_work_of_newcomers_who_do_not_move_v(store: Store) -> None:
    store.run(verbs.Configure(mac(9), weight=0.01))
    store.enqueue(9, 20)
    assert len(store.claim(10)) == 10, "its tag is ten of its tasks ahead now"
    store.clock.advance(store.settings.starvation_after_ms)
    served = []
    for newcomer in range(100, 160):
        store.enqueue(newcomer)
        served += store.served(1)
    assert mac(9) not in served[:4]
    assert mac(9) in served
