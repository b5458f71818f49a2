"""Set a device's weight, pause, limits or site; active at once on its backlog."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane import verbs
from fairlane.errors import InvalidData, InvalidMac, LimitsChanged
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


def test_each_setting_stays_as_it_is_until_it_is_given(store: Store) -> None:
    given = DeviceLimits(
        weight=0.5, paused=True, min_running=2, max_running=7, rate_per_s=0.25, site="lab"
    )
    changes: dict[str, Any] = {name: getattr(given, name) for name in given.__slots__}
    for name, value in changes.items():
        limits = store.run(verbs.Configure(mac(1), **_one(given, name)))
        assert getattr(limits, name) == value
    assert limits == given
    assert store.run(verbs.Configure(mac(1))) == given
    assert store.client.device(mac(1)).limits == given


def _one(limits: DeviceLimits, name: str) -> dict[str, Any]:
    return {name: getattr(limits, name)}


def test_each_default_is_forgotten_and_with_the_last_the_device(store: Store) -> None:
    key = store.keys.device("META", mac(1))
    store.run(verbs.Configure(mac(1), 2, True, 1, 1, 1, "lab"))
    defaults = DeviceLimits()
    for name in ("weight", "paused", "min_running", "max_running", "rate_per_s"):
        store.run(verbs.Configure(mac(1), **_one(defaults, name)))
        assert store.redis.hexists(key, "configured")
    assert store.run(verbs.Configure(mac(1), site="")) == defaults
    assert not store.redis.exists(key)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("min_running", [-1, 1.0, True, "1", 1_000_001]),
        ("max_running", [-1, 1.0, True, "1", 1_000_001]),
        ("rate_per_s", [-1, float("nan"), float("inf"), "1", True, 10.0**7, 1e-7]),
        ("paused", [0, 1, "1"]),
        ("site", ["-", "A", "a b", "a@b", "a:b", "ü", "x" * 65, 7, ".a"]),
    ],
)
def test_another_value(store: Store, name: str, values: list[object]) -> None:
    store.enqueue(1)
    for value in values:
        arguments: dict[str, Any] = {name: value}
        store.refuses(InvalidData, verbs.Configure(mac(1), **arguments))


def test_the_smallest_and_largest_values(store: Store) -> None:
    for limits in (
        DeviceLimits(0.001, False, 1, 1, 1e-6, "0"),
        DeviceLimits(1_000, True, 1_000_000, 1_000_000, 1e6, "z" * 64),
    ):
        changes: dict[str, Any] = {name: getattr(limits, name) for name in limits.__slots__}
        assert store.run(verbs.Configure(mac(1), **changes)) == limits


def test_a_change_is_active_at_once_in_both_lanes(store: Store) -> None:
    for task_type in ("text", "ocr"):
        store.enqueue(1, 4, task_type=task_type)
        store.enqueue(2, 4, task_type=task_type)
    store.run(verbs.Configure(mac(1), paused=True))
    for lane in ("text", "ocr"):
        assert {task.mac for task in store.claim(2, lane=lane)} == {mac(2)}
    store.run(verbs.Configure(mac(1), paused=False, min_running=3))
    for lane in ("text", "ocr"):
        assert store.claim(2, lane=lane)[0].mac == mac(1)


def test_a_weight_acts_on_what_a_device_owes_while_it_cannot_go(store: Store) -> None:
    """Paused, with leases: its tag stands beside them and shrinks as one in the schedule does."""
    store.enqueue(1, 3)
    store.enqueue(2, 30)
    leased = store.claim(2)
    store.run(verbs.Configure(mac(1), paused=True))
    for task in leased:
        store.start(task)
        store.clock.advance(100)
        store.finish(task)
    owed = _owed(store)
    store.run(verbs.Configure(mac(1), weight=4))
    assert abs(_owed(store) - owed / 4) <= 1
    store.run(verbs.Configure(mac(1), weight=1))
    assert abs(_owed(store) - owed) <= 4


def _owed(store: Store) -> float:
    (lane,) = (lane for lane in store.client.device(mac(1)).lanes if lane.queued)
    v = next(lane.v for lane in store.run(verbs.InspectLanes()) if lane.name == "text")
    return lane.tag - v


def test_a_weight_that_comes_and_goes_gains_nothing(store: Store) -> None:
    store.enqueue(1, 60)
    store.enqueue(2, 60)
    served = []
    for _ in range(20):
        store.run(verbs.Configure(mac(1), weight=1_000))
        store.run(verbs.Configure(mac(1), weight=1))
        served += store.served(2)
    assert served.count(mac(1)) <= 21


def test_twice_with_every_setting_changes_nothing(store: Store) -> None:
    store.enqueue(1, 5)
    store.enqueue(2, 5)
    store.served(3)
    store.claim(2)
    verb = verbs.Configure(mac(1), 0.3, False, 2, 3, 0.5, "lab")
    first = store.run(verb)
    with store.unchanged():
        assert store.run(verb) == first


def test_a_weight_and_a_site_at_once_leave_the_weights_of_both_sites_right(store: Store) -> None:
    store.run(verbs.Configure(mac(1), weight=3))
    store.enqueue(1, 2)
    store.enqueue(2, 3)
    leased = store.claim(3)
    (other,) = [task for task in leased if task.mac == mac(2)][:1]
    store.start(other)
    store.run(verbs.Configure(mac(1), weight=4, site="home"))
    store.run(verbs.Configure(mac(1), weight=0.5, site=""))
    assert store.finish(other)
    store.run(verbs.Configure(mac(1), weight=1))


def test_limits_that_somebody_else_has_set_meanwhile_stay(store: Store) -> None:
    read = store.run(verbs.Configure(mac(1), weight=2, rate_per_s=0.25, site="lab")).version
    assert store.client.device(mac(1)).limits.version == read
    store.run(verbs.Configure(mac(1), paused=True))
    for versions in ([read], ["none"], [DeviceLimits().version, read]):
        store.refuses(LimitsChanged, verbs.Configure(mac(1), weight=3, if_versions=versions))
    now = store.client.device(mac(1)).limits.version
    verb = verbs.Configure(mac(1), weight=3, if_versions=[read, now])
    assert store.run(verb).weight == 3
    with store.unchanged():
        assert store.run(verb).weight == 3, "its answer was lost, and it is sent again"


@pytest.mark.parametrize("weight", [1, 0.001, 1_000, 1 / 3, 123.456789])
@pytest.mark.parametrize("rate_per_s", [0, 1e-6, 1_000_000, 2 / 3])
def test_python_and_lua_tell_one_version(store: Store, weight: float, rate_per_s: float) -> None:
    store.run(verbs.Configure(mac(1), weight, True, 1, 1_000_000, rate_per_s))
    read = store.client.device(mac(1)).limits.version
    store.run(verbs.Configure(mac(1), paused=False, if_versions=[read]))
