"""Set a device's weight, pause, limits or site; active at once on its backlog."""

from __future__ import annotations

import pytest

from fairlane import verbs
from fairlane.errors import InvalidData, InvalidMac
from fairlane.model import DeviceLimits
from support.store import Store, mac


def test_returns_what_is_in_force(store: Store) -> None:
    assert store.run(verbs.Configure(mac(1))) == DeviceLimits()
    assert store.run(verbs.Configure(mac(1), weight=2.5)) == DeviceLimits(weight=2.5)
    paused = DeviceLimits(weight=2.5, paused=True)
    assert store.run(verbs.Configure(mac(1), paused=True)) == paused
    assert store.client.device(mac(1)).limits == paused


def test_a_device_with_the_defaults_is_not_remembered(store: Store) -> None:
    store.run(verbs.Configure(mac(1), weight=3, paused=True))
    assert store.redis.exists(store.keys.device("META", mac(1)))
    assert store.run(verbs.Configure(mac(1), weight=1, paused=False)) == DeviceLimits()
    assert not store.redis.exists(store.keys.device("META", mac(1)))


def test_a_weight_outlives_the_backlog(store: Store) -> None:
    store.run(verbs.Configure(mac(1), weight=3))
    store.enqueue(1)
    store.served(1)
    assert store.client.device(mac(1)).limits.weight == 3


def test_a_paused_device_is_not_served_and_then_it_is(store: Store) -> None:
    store.enqueue(1)
    store.run(verbs.Configure(mac(1), paused=True))
    assert store.claim(5) == ()
    store.enqueue(1)
    store.enqueue(2)
    assert [task.mac for task in store.claim(5)] == [mac(2)]
    (lane,) = [lane for lane in store.client.device(mac(1)).lanes if lane.queued]
    assert (lane.held_by, lane.queued) == ("paused", 2)
    while store.client.wait(0.01):
        pass
    store.run(verbs.Configure(mac(1), paused=False))
    assert store.client.wait(0.01), "the dispatcher hears of it"
    assert len(store.claim(5)) == 2


def test_a_weight_acts_at_once_on_the_backlog(store: Store) -> None:
    store.enqueue(1, 8)
    store.enqueue(2, 8)
    assert store.served(4).count(mac(1)) == 2
    store.run(verbs.Configure(mac(2), weight=3))
    assert store.served(4).count(mac(2)) == 3


@pytest.mark.parametrize("weight", [0, -1, 0.0009, 1_001, float("nan"), float("inf"), "2", True])
def test_another_weight(store: Store, weight: float) -> None:
    store.refuses(InvalidData, verbs.Configure(mac(1), weight=weight))


def test_no_device(store: Store) -> None:
    store.refuses(InvalidMac, verbs.Configure("ff:ff:ff:ff:ff:ff", weight=2))


def test_twice_changes_nothing(store: Store) -> None:
    store.enqueue(1, 3)
    store.enqueue(2, 3)
    store.served(3)
    verb = verbs.Configure(mac(1), weight=0.3, paused=False)
    first = store.run(verb)
    with store.unchanged():
        assert store.run(verb) == first
