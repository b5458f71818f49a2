"""Find what is wrong with devices: counts, places and tags that do not equal their lists."""

from __future__ import annotations

from fairlane import verbs
from fairlane.errors import InvalidData, InvalidMac
from fairlane.flaw import Flaw
from support.store import LANE, Store, mac


def test_a_device_that_is_well_has_no_flaw(store: Store) -> None:
    store.enqueue(1, 2)
    assert store.run(verbs.CheckDevices([mac(1), mac(2)])) == ()


def test_what_is_wrong_is_named_with_what_would_be_right(store: Store) -> None:
    store.enqueue(1, 2)
    store.enqueue(2)
    store.redis.hincrby(store.keys.device("META", mac(1)), "pending_count", 5)
    store.redis.zrem(store.keys.lane("WAITING", LANE), mac(2))
    store.is_spoilt = True
    with store.unchanged():
        flaws = store.run(verbs.CheckDevices([mac(1), mac(2)]))
    assert flaws == (
        Flaw(mac(1), "pending_count", "7", "2"),
        Flaw(mac(2), "text.waits since", "0", str(store.clock.now_ms)),
    )
    assert str(flaws[0]) == f"{mac(1)}: pending_count: 7, should be 2"


def test_a_device_seen_in_the_schedule_of_a_site_that_is_not_its_own(store: Store) -> None:
    store.enqueue(1)
    store.redis.zadd(store.keys.lane("SCHEDULE", LANE) + "@lab", {mac(1): 0})
    store.is_spoilt = True
    assert store.run(verbs.CheckDevices([mac(1)])) == ()
    (flaw,) = store.run(verbs.CheckDevices([mac(1)], site="lab"))
    assert flaw == Flaw(mac(1), "text.in the schedule of lab", "1", "0")


def test_what_cannot_be_asked(store: Store) -> None:
    store.refuses(InvalidMac, verbs.CheckDevices(["nobody"]))
    store.refuses(InvalidData, verbs.CheckDevices([mac(1)], site="A B"))
    store.refuses(InvalidData, verbs.CheckDevices([mac(1)] * 1_001))
