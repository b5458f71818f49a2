"""Lease the next task of a device whose two-step turn is open."""

from __future__ import annotations

from fairlane import verbs
from fairlane.errors import InvalidMac, TurnLost, UnknownLane
from fairlane.model import Claimed, Leased
from support.store import LANE, Store, mac


def turn(store: Store) -> tuple[str, str, str]:
    opened = store.run(verbs.ClaimDevice(LANE))
    assert opened is not None
    return opened.mac, opened.lane, opened.token


def test_returns_the_next_task_until_the_queue_is_empty(store: Store) -> None:
    first, second = store.enqueue(1, 2)
    held = turn(store)
    assert store.run(verbs.Pop(*held)) == Claimed((Leased(first, 1, LANE, mac(1)),), (), 0)
    assert store.run(verbs.Pop(*held)).leased[0].task_id == second
    assert store.run(verbs.Pop(*held)) == Claimed((), (), 0)


def test_expired_tasks_end_on_the_way(store: Store) -> None:
    (late,) = store.enqueue(1, ttl_ms=1_000)
    (good,) = store.enqueue(1)
    held = turn(store)
    store.clock.advance(1_001)
    popped = store.run(verbs.Pop(*held))
    assert (popped.leased[0].task_id, popped.expired) == (good, (late,))


def test_a_task_popped_is_charged_like_one_claimed(store: Store) -> None:
    store.enqueue(1, 3)
    store.enqueue(2, 3)
    held = turn(store)
    store.run(verbs.Pop(*held))
    store.run(verbs.Release(*held))
    assert store.served(3) == [mac(2), mac(1), mac(2)]


def test_turn_lost_with_another_token_or_no_turn(store: Store) -> None:
    store.enqueue(1)
    store.refuses(TurnLost, verbs.Pop(mac(1), LANE, "1"))
    device, lane, token = turn(store)
    store.refuses(TurnLost, verbs.Pop(device, lane, token + "0"))
    store.refuses(TurnLost, verbs.Pop(mac(2), lane, token))
    store.refuses(TurnLost, verbs.Pop(device, "ocr", token))
    store.refuses(UnknownLane, verbs.Pop(device, "video", token))
    store.refuses(InvalidMac, verbs.Pop("nonsense", lane, token))


def test_twice_leases_the_devices_next_task(store: Store) -> None:
    store.enqueue(1, 2)
    verb = verbs.Pop(*turn(store))
    assert store.run(verb).leased != store.run(verb).leased


def test_a_lost_task_is_not_charged_again_and_its_device_keeps_its_tag(store: Store) -> None:
    (task_id,) = store.enqueue(1)
    store.claim()
    store.clock.advance(store.settings.lease_ms)
    store.run(verbs.Sweep())
    (leased,) = store.run(verbs.Pop(*turn(store))).leased
    assert (leased.task_id, leased.attempt) == (task_id, 2)
    assert store.redis.hexists(store.keys.device("META", mac(1)), f"{LANE}.tag")
