"""List dead letters, newest first."""

from __future__ import annotations

from fairlane import verbs
from fairlane.errors import InvalidData, TaskNotFound
from support.store import Store
from verbs.conftest import Open


def test_returns_whole_records_newest_first(store: Store) -> None:
    first, second = store.bury(1), store.bury(2)
    letters = store.run(verbs.DeadLetters())
    assert [letter.task_id for letter in letters] == [second, first]
    assert letters[1] == store.client.task(first)


def test_pages(store: Store) -> None:
    buried = [store.bury(device) for device in range(3)]
    assert [letter.task_id for letter in store.run(verbs.DeadLetters(1, 1))] == [buried[1]]
    assert store.run(verbs.DeadLetters(3)) == ()
    for offset, limit in ((-1, 1), (0, 0), (0, 1_001), (1.0, 1)):
        store.refuses(InvalidData, verbs.DeadLetters(offset, limit))  # type: ignore[arg-type]


def test_the_oldest_makes_room_with_its_record_and_is_counted(open_store: Open) -> None:
    store = open_store(dead_letter_cap=2)
    oldest, *kept = [store.bury(device) for device in range(3)]
    assert [letter.task_id for letter in store.run(verbs.DeadLetters())] == kept[::-1]
    store.refuses(TaskNotFound, verbs.InspectTask(oldest))
    totals = store.run(verbs.InspectTotals())
    assert (totals.counts["dead"], totals.counts["dead_dropped"], totals.lost()) == (3, 1, 0)


def test_twice_reads_again(store: Store) -> None:
    store.bury()
    with store.unchanged():
        assert store.run(verbs.DeadLetters()) == store.run(verbs.DeadLetters())
