"""Change the stored configuration; after a change of policy or lanes, reconcile every device."""

from __future__ import annotations

import pytest

from fairlane import TaskType, verbs
from fairlane.errors import LaneInUse
from support.store import LANE, Store, mac
from verbs.conftest import Open


def test_returns_the_changed_fields_and_others_adopt_them(store: Store) -> None:
    migrator = store.other()
    changed = migrator.migrate(store.other(batch_size=7, order="lifo").settings)
    assert set(changed) == {"batch_size", "order", "digest"}
    first, second = store.enqueue(1, 2)
    assert [task.task_id for task in store.claim(2)] == [second, first]
    assert (store.client.settings.batch_size, store.client.settings.order) == (7, "lifo")


@pytest.mark.parametrize(("before", "after"), [("fair", "aging"), ("aging", "fair")])
def test_a_new_policy_seats_every_device_anew(open_store: Open, before: str, after: str) -> None:
    store = open_store(policy=before)
    for device in range(5):
        store.enqueue(device, 3)
        store.clock.advance(1_000)
    store.served(4)
    (leased,) = store.claim()
    store.run(verbs.Defer(leased.task_id, leased.attempt, "", "device"))
    store.client.migrate(store.other(policy=after).settings)
    store.check()
    store.clock.advance(33_000)
    assert len(store.served(15)) == 11


def test_a_limit_that_was_lowered_or_raised_overloads_accordingly(store: Store) -> None:
    store.enqueue(1, 8)
    store.client.migrate(store.other(max_per_mac_pending=5).settings)
    assert store.run(verbs.Overload()).overloaded_devices == 1
    store.client.migrate(store.other(max_per_mac_pending=10).settings)
    assert store.run(verbs.Overload()).overloaded_devices == 0


def test_lane_in_use(store: Store) -> None:
    only_ocr = store.other(task_types=(TaskType("ocr", "ocr", "sensitive.ocr"),)).settings
    (task_id,) = store.enqueue(1, task_type=LANE)
    with store.unchanged(), pytest.raises(LaneInUse, match=LANE):
        store.other().migrate(only_ocr)
    store.claim()
    with store.unchanged(), pytest.raises(LaneInUse, match=LANE):
        store.other().migrate(only_ocr)
    with pytest.raises(LaneInUse):
        store.client.migrate(only_ocr)
    # Who was refused goes on with what the store has.
    store.client.cancel(task_id)
    store.other().migrate(only_ocr)
    assert [lane.name for lane in store.run(verbs.InspectLanes())] == ["ocr"]


def test_a_lane_that_goes_takes_its_keys_along(store: Store) -> None:
    only_ocr = store.other(task_types=(TaskType("ocr", "ocr", "sensitive.ocr"),)).settings
    store.finish(store.running())
    store.other().migrate(only_ocr)
    assert not [key for key in store.redis.keys("*") if key.endswith(f":{LANE}")]


def test_a_lane_that_goes_takes_along_what_its_devices_waited_for(store: Store) -> None:
    """Those whose tasks were cancelled meanwhile: in backoff, and waiting for a token."""
    store.run(verbs.Configure(mac(2), rate_per_s=0.01))
    ids = [*store.enqueue(1), *store.enqueue(2, 2)]
    for leased in store.claim(2):
        store.run(verbs.Defer(leased.task_id, leased.attempt, "", "device"))
    assert store.redis.zcard(store.keys.lane("BACKOFF", LANE)) == 2
    store.clock.advance(33_000)
    store.run(verbs.Sweep())
    assert store.redis.zcard(store.keys.lane("THROTTLED", LANE)) == 1
    (again,) = store.claim()
    store.run(verbs.Defer(again.task_id, again.attempt, "", "device"))
    for task_id in ids:
        store.client.cancel(task_id)
    waited = [store.keys.lane(name, LANE) for name in ("BACKOFF", "THROTTLED")]
    assert store.redis.exists(*waited) == 2
    only_ocr = store.other(task_types=(TaskType("ocr", "ocr", "sensitive.ocr"),)).settings
    store.other().migrate(only_ocr)
    assert not store.redis.exists(*waited)
    for device in (1, 2):
        meta = store.keys.device("META", mac(device))
        assert not store.redis.hexists(meta, f"{LANE}.unschedulable_until")


def ordered(store: Store) -> None:
    """Fill every set that orders devices and sites, and have some of both remembered."""
    store.run(verbs.Configure(mac(1), weight=3))
    store.run(verbs.Configure(mac(4), weight=5))
    for device, site in ((1, None), (2, None), (3, "a"), (6, "a"), (4, "a"), (5, "b")):
        store.enqueue(device, 1 if device in (2, 5, 6) else 6, site=site)
    store.served(5)
    store.run(verbs.Configure(mac(1), min_running=2))


def test_no_set_has_tags_of_two_policies(open_store: Open) -> None:
    """A schedule is emptied in the step that changes the policy: `reconcile` comes later."""
    store = open_store(policy="fair")
    ordered(store)
    orders = ("SCHEDULE", "WAITING", "FINISH", "FLOOR", "SITES", "SITES_FINISH")
    before = {name for name in orders if store.redis.exists(store.keys.lane(name, LANE))}
    assert before == {*orders}
    assert store.redis.exists(store.keys.lane("FINISH", LANE) + "@a")
    aging = store.other(policy="aging").settings
    store.client._carry(store.client._session.impose(aging))
    assert not [name for name in orders if store.redis.exists(store.keys.lane(name, LANE))]
    assert not [name for name in store.redis.keys("*") if "@" in name]
    store.client.migrate(aging)


def test_the_weights_of_a_schedule_are_counted_anew_with_it(open_store: Open) -> None:
    store = open_store(policy="fair")
    ordered(store)
    store.claim(4)
    store.client.migrate(store.other(policy="aging").settings)
    store.client.migrate(store.other(policy="fair").settings)
    store.check()


def test_a_new_lane(store: Store) -> None:
    types = (*store.settings.task_types, TaskType("video", "video", "sensitive.video"))
    store.client.migrate(store.other(task_types=types).settings)
    store.enqueue(1, task_type="video")
    assert store.claim(lane="video")[0].mac == mac(1)


def test_twice_changes_nothing(store: Store) -> None:
    settings = store.other(batch_size=7).settings
    store.client.migrate(settings)
    with store.unchanged():
        assert store.client.migrate(settings) == ()
