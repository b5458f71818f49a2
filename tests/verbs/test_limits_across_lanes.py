"""A limit that holds a device in one lane, and what lets it in in another."""

from __future__ import annotations

from fairlane import verbs
from support.store import LANE, Store, mac

RACERS = 8


def rings(store: Store) -> bool:
    """Tell whether the dispatcher is called, and answer."""
    return bool(store.redis.delete(store.keys.doorbell))


def test_a_device_that_an_end_lets_in_elsewhere_is_called_for(store: Store) -> None:
    store.run(verbs.Configure(mac(1), max_running=1))
    leased = store.running(1)
    store.enqueue(1, task_type="ocr")
    assert rings(store)
    store.finish(leased)
    assert rings(store)
    assert store.claim(lane="ocr")


def test_a_pop_that_notices_a_token_for_another_lane_calls_for_it(store: Store) -> None:
    store.run(verbs.Configure(mac(1), rate_per_s=2))
    store.enqueue(1, 4)
    turn = store.run(verbs.ClaimDevice(LANE))
    assert turn is not None
    for _ in range(2):
        store.run(verbs.Pop(turn.mac, turn.lane, turn.token))
    store.enqueue(1, task_type="ocr")
    rings(store)
    store.clock.advance(1_000)
    store.run(verbs.Pop(turn.mac, turn.lane, turn.token))
    assert rings(store)


def test_a_place_that_a_lane_frees_is_told_to_the_others_of_its_workers(store: Store) -> None:
    store.offer(1, LANE, "ocr")
    # One in the slot, one ahead of it.
    store.running(1)
    leased = store.running(1)
    store.enqueue(2, task_type="ocr")
    rings(store)
    assert store.claim(0, lane="ocr") == ()
    store.finish(leased)
    assert rings(store)
    assert store.claim(0, lane="ocr")
