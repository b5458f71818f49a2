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


def test_a_device_whose_backoff_is_over_may_go(store: Store) -> None:
    leased = store.running()
    store.clock.now_ms = store.run(verbs.Defer(leased.task_id, 1, "", "device")).due_ms
    assert store.run(verbs.ClaimDevice(LANE)) is not None


def test_a_turn_in_order_moves_the_lanes_virtual_time(store: Store) -> None:
    store.enqueue(1, 3)
    store.enqueue(2, 3)
    store.served(2)

    def v() -> float:
        return next(lane.v for lane in store.run(verbs.InspectLanes()) if lane.name == LANE)

    (place,) = (lane for lane in store.client.device(mac(1)).lanes if lane.lane == LANE)
    assert v() < (place.tag or 0)
    store.run(verbs.ClaimDevice(LANE))
    assert v() == place.tag


def test_a_turn_is_told_with_its_token(store: Store) -> None:
    store.enqueue(1)
    turn = store.run(verbs.ClaimDevice(LANE))
    assert turn is not None
    told = store.client.events()[-1]
    assert (told.event, told.mac, told.lane) == ("turn_opened", mac(1), LANE)
    assert told.detail == turn.token
