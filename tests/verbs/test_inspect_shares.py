"""Read what the devices that wait have used of the workers, lane by lane."""

from __future__ import annotations

from fairlane import verbs
from fairlane.errors import InvalidData
from fairlane.model import Share
from support.store import Store, mac


def test_an_empty_store(store: Store) -> None:
    assert store.run(verbs.InspectShares()) == ()


def test_returns_what_each_used_since_it_began_to_wait(store: Store) -> None:
    store.enqueue(1, 3)
    store.enqueue(2, 3)
    store.run(verbs.Configure(mac(2), weight=2.0))
    assert {store.served(1, 40)[0], store.served(1, 70)[0]} == {mac(1), mac(2)}
    first, second = sorted(store.run(verbs.InspectShares()), key=lambda share: share.mac)
    assert (first.lane, first.mac, first.weight) == ("text", mac(1), 1.0)
    assert (second.mac, second.weight) == (mac(2), 2.0)
    assert first.used_ms + second.used_ms == 110


def test_a_device_that_had_nothing_left_begins_anew(store: Store) -> None:
    store.enqueue(1, 2)
    store.served(1, 40)
    assert store.run(verbs.InspectShares()) == (Share("text", mac(1), 1.0, 40),)
    store.served(1, 40)
    store.enqueue(1)
    assert store.run(verbs.InspectShares()) == (Share("text", mac(1), 1.0, 0),)


def test_no_more_than_the_limit(store: Store) -> None:
    for device in range(3):
        store.enqueue(device)
    assert len(store.run(verbs.InspectShares(2))) == 2
    for limit in (0, 1_001, True):
        store.refuses(InvalidData, verbs.InspectShares(limit))


def test_twice_reads_again(store: Store) -> None:
    store.enqueue(1)
    with store.unchanged():
        assert store.run(verbs.InspectShares()) == store.run(verbs.InspectShares())
