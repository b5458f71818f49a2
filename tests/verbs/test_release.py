"""End a two-step turn and put the device back into the schedule if it has a queue."""

from __future__ import annotations

from fairlane import verbs
from fairlane.errors import TurnLost, UnknownLane
from fairlane.model import Released
from support.store import LANE, Store, mac


def opened(store: Store) -> tuple[str, str, str]:
    turn = store.run(verbs.ClaimDevice(LANE))
    assert turn is not None
    return turn.mac, turn.lane, turn.token


def test_returns_what_is_left_and_whether_another_starves(store: Store) -> None:
    store.enqueue(1, 3)
    held = opened(store)
    store.run(verbs.Pop(*held))
    assert store.run(verbs.Release(*held)) == Released(2, other_starved=False)
    assert store.claim()[0].mac == mac(1)


def test_an_empty_device_leaves_nothing_behind(store: Store) -> None:
    store.enqueue(1)
    held = opened(store)
    (leased,) = store.run(verbs.Pop(*held)).leased
    assert store.run(verbs.Release(*held)) == Released(0, other_starved=False)
    assert store.run(verbs.ClaimDevice(LANE)) is None
    store.start(leased)
    store.finish(leased)
    assert not store.redis.exists(store.keys.device("META", mac(1)))


def test_another_starves(store: Store) -> None:
    store.enqueue(1)
    held = opened(store)
    store.enqueue(2)
    store.clock.advance(store.settings.starvation_after_ms)
    assert store.run(verbs.Release(*held)).other_starved


def test_a_paused_device_stays_out(store: Store) -> None:
    store.enqueue(1)
    held = opened(store)
    store.run(verbs.Configure(mac(1), paused=True))
    store.run(verbs.Release(*held))
    assert store.run(verbs.ClaimDevice(LANE)) is None


def test_turn_lost_without_a_turn(store: Store) -> None:
    store.enqueue(1)
    store.refuses(TurnLost, verbs.Release(mac(1), LANE, "1"))
    device, lane, token = opened(store)
    store.refuses(TurnLost, verbs.Release(device, lane, token + "0"))
    store.refuses(UnknownLane, verbs.Release(device, "video", token))


def test_twice_is_turn_lost_and_changes_nothing(store: Store) -> None:
    store.enqueue(1)
    verb = verbs.Release(*opened(store))
    store.run(verb)
    store.refuses(TurnLost, verb)
    opened(store)
    store.refuses(TurnLost, verb)


def test_the_tags_that_v_has_passed_are_forgotten(store: Store) -> None:
    # Two that go on: a lane with nobody left forgets by itself.
    store.enqueue(1, 50)
    store.enqueue(6, 50)
    for device in range(2, 6):
        store.enqueue(device)

    def turn() -> None:
        held = opened(store)
        for leased in store.run(verbs.Pop(*held)).leased:
            store.start(leased)
            store.clock.advance(10)
            store.finish(leased)
        store.run(verbs.Release(*held))

    finish = store.keys.lane("FINISH", LANE)
    for _ in range(6):
        turn()
    assert store.redis.zcard(finish) == 4, "the drained devices' tags"
    for _ in range(4):
        turn()
    assert store.redis.zcard(finish) == 0
