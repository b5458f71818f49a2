"""Extend a two-step turn, and tell how large its batch may be now."""

from __future__ import annotations

import pytest

from fairlane import verbs
from fairlane.errors import TurnLost, UnknownLane
from fairlane.model import TurnStatus
from support.store import LANE, Store, mac
from verbs.conftest import Open


def opened(store: Store) -> tuple[str, str, str]:
    turn = store.run(verbs.ClaimDevice(LANE))
    assert turn is not None
    return turn.mac, turn.lane, turn.token


def test_returns_the_new_deadline_and_the_normal_batch(store: Store) -> None:
    store.enqueue(1)
    held = opened(store)
    now = store.clock.advance(20_000)
    deadline = now + store.settings.turn_lease_ms
    assert store.run(verbs.Renew(*held)) == TurnStatus(deadline, 10, other_starved=False)
    store.clock.now_ms = deadline - 1
    assert store.run(verbs.Sweep()).turns == 0


@pytest.mark.parametrize("policy", ["fair", "aging"])
def test_the_small_batch_while_another_device_starves(open_store: Open, policy: str) -> None:
    store = open_store(policy=policy, turn_lease_ms=100_000)
    store.enqueue(1, 20)
    held = opened(store)
    store.enqueue(2)
    store.clock.advance(30_000 - 1)
    status = store.run(verbs.Renew(*held))
    assert (status.batch, status.other_starved) == (10, False)
    store.clock.advance(1)
    status = store.run(verbs.Renew(*held))
    assert (status.batch, status.other_starved) == (1, True)


def test_a_device_in_backoff_starves_nobody(store: Store) -> None:
    store.enqueue(2)
    (leased,) = store.claim()
    store.run(verbs.Defer(leased.task_id, 1, "", "device"))
    store.enqueue(1)
    held = opened(store)
    store.clock.advance(29_999)
    assert not store.run(verbs.Renew(*held)).other_starved


def test_turn_lost_once_the_lock_is_anothers(store: Store) -> None:
    store.enqueue(1)
    a = opened(store)
    store.clock.advance(store.settings.turn_lease_ms)
    store.run(verbs.Sweep())
    store.refuses(TurnLost, verbs.Renew(*a))
    b = opened(store)
    assert a[0] == b[0]
    store.refuses(TurnLost, verbs.Renew(*a))
    store.refuses(TurnLost, verbs.Release(*a))
    store.refuses(TurnLost, verbs.Pop(*a))
    assert store.run(verbs.Pop(*b)).leased[0].mac == mac(1)
    store.run(verbs.Release(*b))


def test_turn_lost_once_its_lock_ran_out(store: Store) -> None:
    store.enqueue(1)
    held = opened(store)
    store.redis.delete(store.keys.device("ACTIVE", mac(1), LANE))
    store.is_spoilt = True
    store.refuses(TurnLost, verbs.Renew(*held))
    store.clock.advance(store.settings.turn_lease_ms)
    assert store.run(verbs.Sweep()).turns == 1
    store.check()


def test_what_cannot_be_asked(store: Store) -> None:
    store.refuses(UnknownLane, verbs.Renew(mac(1), "video", "1"))


def test_twice_extends_it_again_from_the_later_clock(store: Store) -> None:
    store.enqueue(1)
    held = opened(store)
    first = store.run(verbs.Renew(*held))
    with store.unchanged():
        assert store.run(verbs.Renew(*held)) == first
    store.clock.advance(7)
    assert store.run(verbs.Renew(*held)).deadline_ms == first.deadline_ms + 7


def test_the_lock_lives_on(store: Store) -> None:
    store.enqueue(1)
    held = opened(store)
    lock = store.keys.device("ACTIVE", mac(1), LANE)
    store.redis.pexpire(lock, 10_000)
    store.run(verbs.Renew(*held))
    assert store.redis.get(lock) == held[2]
    assert 890_000 < store.redis.pttl(lock) <= 900_000
