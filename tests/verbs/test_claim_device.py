"""Open a two-step turn for the device that is owed most, with a lock on it."""

from __future__ import annotations

from fairlane import verbs
from fairlane.errors import InvalidMac, UnknownLane
from fairlane.model import Turn
from support.store import LANE, Store, mac


def test_returns_the_turn_with_its_token_and_deadline(store: Store) -> None:
    store.enqueue(1)
    turn = store.run(verbs.ClaimDevice(LANE))
    assert turn == Turn(mac(1), LANE, "1", store.clock.now_ms + store.settings.turn_lease_ms)
    lock = store.keys.device("ACTIVE", mac(1), LANE)
    assert store.redis.get(lock) == turn.token
    assert 890_000 < store.redis.pttl(lock) <= 900_000


def test_a_device_has_one_turn_at_a_time(store: Store) -> None:
    store.enqueue(1)
    store.enqueue(2)
    first, second = store.run(verbs.ClaimDevice(LANE)), store.run(verbs.ClaimDevice(LANE))
    assert first is not None
    assert second is not None
    assert (first.mac, second.mac) == (mac(1), mac(2))
    assert first.token != second.token
    assert store.run(verbs.ClaimDevice(LANE)) is None
    store.enqueue(1)
    assert store.claim(5) == (), "nobody else takes a device out of its turn"


def test_turns_of_two_lanes_do_not_meet(store: Store) -> None:
    store.enqueue(1, task_type="ocr")
    store.enqueue(1, task_type="text")
    assert store.run(verbs.ClaimDevice("ocr")) is not None
    assert store.run(verbs.ClaimDevice("text")) is not None


def test_none_when_no_device_can_go(store: Store) -> None:
    assert store.run(verbs.ClaimDevice(LANE)) is None
    store.enqueue(1)
    store.run(verbs.Configure(mac(1), paused=True))
    with store.unchanged():
        assert store.run(verbs.ClaimDevice(LANE)) is None


def test_exclude_mac_waits_while_another_can_go(store: Store) -> None:
    store.enqueue(1)
    store.enqueue(2)
    first = store.run(verbs.ClaimDevice(LANE, exclude_mac=mac(1)))
    second = store.run(verbs.ClaimDevice(LANE, exclude_mac=mac(1)))
    assert first is not None
    assert second is not None
    assert (first.mac, second.mac) == (mac(2), mac(1))


def test_what_cannot_be_asked(store: Store) -> None:
    store.refuses(UnknownLane, verbs.ClaimDevice("video"))
    store.refuses(InvalidMac, verbs.ClaimDevice(LANE, exclude_mac="nonsense"))


def test_twice_opens_another_devices_turn_and_the_sweep_ends_an_orphan(store: Store) -> None:
    store.enqueue(1)
    store.enqueue(2)
    verb = verbs.ClaimDevice(LANE)
    assert store.run(verb) != store.run(verb)
    store.clock.advance(store.settings.turn_lease_ms)
    assert store.run(verbs.Sweep()).turns == 2
    assert len(store.claim(5)) == 2
