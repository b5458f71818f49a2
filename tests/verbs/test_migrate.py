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
