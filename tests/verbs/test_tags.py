"""A device's tag stands in one place, and moves there as its tasks turn out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from fairlane import verbs
from support.store import ESTIMATE_MS, LANE, Store, mac
from verbs.conftest import Open

#: Past so many remembered tags v rises to the lowest of them.
MOST_REMEMBERED: Final = 100_000
UNITS_PER_MS: Final = 16_000


def tag(store: Store, device: int) -> float | None:
    """Return the tag of a device in the schedule."""
    score = store.redis.zscore(store.keys.lane("SCHEDULE", LANE), mac(device))
    return None if score is None else -score


def remembered(store: Store, device: int, site: str = "") -> float | None:
    """Return the tag of a device that has nothing left, while it is ahead of v."""
    name = store.keys.lane("FINISH", LANE) + (f"@{site}" if site else "")
    found: float | None = store.redis.zscore(name, mac(device))
    return found


def virtual(store: Store, field: str = "v") -> float:
    return float(store.redis.hget(store.keys.lane("VIRTUAL", LANE), field) or 0)


def test_a_refund_does_not_move_a_device_that_is_next(store: Store) -> None:
    store.enqueue(1)
    store.enqueue(2, 40)
    (early,) = store.claim()
    store.served(5)
    # Its tag is behind v, so it starts there.
    store.enqueue(1)
    before = tag(store, 1)
    assert before == virtual(store)
    store.start(early)
    store.finish(early)
    assert tag(store, 1) == before


def test_a_weight_that_takes_what_a_tag_was_ahead_takes_the_tag(store: Store) -> None:
    store.enqueue(2, 40)
    store.enqueue(1)
    store.served(3)
    assert remembered(store, 1) == virtual(store) + 1
    store.run(verbs.Configure(mac(1), weight=2))
    assert remembered(store, 1) is None


def two_steps(store: Store) -> None:
    turn = store.run(verbs.ClaimDevice(LANE))
    assert turn is not None
    store.run(verbs.Release(turn.mac, turn.lane, turn.token))


@pytest.mark.parametrize("turn", [Store.claim, two_steps])
def test_v_rises_to_the_tags_that_would_become_too_many(
    store: Store, turn: Callable[[Store], object]
) -> None:
    for device in (1, 2):
        store.enqueue(device, 3)
    store.is_spoilt = True
    lowest = 10**12
    finish = store.keys.lane("FINISH", LANE)
    store.redis.zadd(finish, {f"m{at}": lowest + at for at in range(MOST_REMEMBERED)})
    turn(store)
    assert virtual(store) < lowest
    store.redis.zadd(finish, {"one more": lowest + MOST_REMEMBERED})
    turn(store)
    assert virtual(store) == lowest


def test_what_the_guard_compares_does_not_stay_behind_v(store: Store) -> None:
    store.enqueue(1, 80)
    store.enqueue(2)
    store.claim(41)
    store.enqueue(3, 5)
    store.clock.advance(store.settings.starvation_after_ms)
    assert virtual(store) > virtual(store, "work") == 0
    for _ in range(4):
        store.claim()
    assert virtual(store, "work") > 0, "no task has ended, so nobody else counted work"


def test_a_tag_stays_in_the_site_that_its_device_leaves(store: Store) -> None:
    store.enqueue(2, 40, site="a")
    store.enqueue(1, 2, site="a")
    store.served(2)
    store.run(verbs.Configure(mac(1), paused=True))
    assert remembered(store, 1, "a")
    store.run(verbs.Configure(mac(1), site="b"))
    assert remembered(store, 1, "a") is None


def test_a_site_under_aging_leaves_nothing_of_its_time_under_fair(open_store: Open) -> None:
    store = open_store(policy="fair")
    store.enqueue(1, site="a")
    store.enqueue(2, site="a")
    first, second = store.claim(2)
    store.start(second)
    store.finish(second)
    assert remembered(store, 2, "a")
    store.client.migrate(store.other(policy="aging").settings)
    store.start(first)
    store.finish(first)
    assert not [name for name in store.redis.keys("*") if "@" in name]


def test_the_tag_of_a_turn_out_of_order_is_remembered_until_it_has_a_lease(store: Store) -> None:
    store.run(verbs.Configure(mac(1), min_running=1))
    store.enqueue(1, 5)
    store.enqueue(2, 30)
    assert store.served(3) == [mac(1)] * 3
    turn = store.run(verbs.ClaimDevice(LANE))
    assert turn is not None
    assert turn.mac == mac(1)
    assert remembered(store, 1) == 3 * ESTIMATE_MS * UNITS_PER_MS + 1
    store.run(verbs.Pop(turn.mac, turn.lane, turn.token))
    assert remembered(store, 1) is None


def test_a_two_step_turn_leaves_no_lock(store: Store) -> None:
    store.enqueue(1)
    store.enqueue(2)
    lock = {device: store.keys.device("ACTIVE", mac(device), LANE) for device in (1, 2)}
    first, second = (store.run(verbs.ClaimDevice(LANE)) for _ in range(2))
    assert first is not None
    assert second is not None
    assert store.redis.exists(*lock.values()) == 2
    store.run(verbs.Release(first.mac, first.lane, first.token))
    assert store.redis.exists(*lock.values()) == 1
    store.clock.now_ms = second.deadline_ms
    store.run(verbs.Sweep())
    assert store.redis.exists(*lock.values()) == 0


def test_a_lease_under_aging_tells_who_has_it_and_since_when(open_store: Open) -> None:
    store = open_store(policy="aging")
    (task_id,) = store.enqueue(1)
    store.clock.advance(5)
    store.claim(holder="here")
    assert store.client.task(task_id).claimed_at_ms == store.clock.now_ms
    assert store.redis.hget(store.keys.task(task_id), "holder") == "here"
