"""List the devices that have pending tasks, the longest backlogged first."""

from __future__ import annotations

from fairlane import verbs
from fairlane.errors import InvalidData
from support.store import Store, mac


def test_returns_macs_with_their_pending_tasks_in_all_lanes(store: Store) -> None:
    for device in (3, 1, 2):
        store.enqueue(device, device, task_type="text")
        store.clock.advance(1)
    store.enqueue(1, task_type="ocr")
    assert store.run(verbs.Devices()) == ((mac(3), 3), (mac(1), 2), (mac(2), 2))


def test_a_device_that_drained_is_no_longer_there(store: Store) -> None:
    store.enqueue(1)
    store.enqueue(2)
    store.claim()
    assert store.run(verbs.Devices()) == ((mac(2), 1),)


def test_pages(store: Store) -> None:
    for device in range(5):
        store.enqueue(device)
        store.clock.advance(1)
    assert store.run(verbs.Devices(2, 2)) == ((mac(2), 1), (mac(3), 1))
    assert store.run(verbs.Devices(5, 2)) == ()
    for offset, limit in ((-1, 1), (0, 0), (0, 1_001), (0, "1")):
        store.refuses(InvalidData, verbs.Devices(offset, limit))  # type: ignore[arg-type]


def test_twice_reads_again(store: Store) -> None:
    store.enqueue(1)
    with store.unchanged():
        assert store.run(verbs.Devices()) == store.run(verbs.Devices())
