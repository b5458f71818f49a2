"""Delete dead letters for good."""

from __future__ import annotations

from fairlane import verbs
from fairlane.errors import InvalidData, InvalidTaskId, TaskNotFound
from support.store import Store


def test_returns_per_id_whether_it_is_gone_now(store: Store) -> None:
    dead = store.bury()
    kept = store.bury(3)
    (pending,) = store.enqueue(2)
    assert store.run(verbs.Drop([dead, pending, "unknown"])) == (True, False, False)
    store.refuses(TaskNotFound, verbs.InspectTask(dead))
    assert [letter.task_id for letter in store.run(verbs.DeadLetters())] == [kept]
    assert store.run(verbs.InspectTotals()).counts["dead_dropped"] == 1


def test_what_cannot_be_asked(store: Store) -> None:
    store.refuses(InvalidData, verbs.Drop([]))
    store.refuses(InvalidData, verbs.Drop(["a"] * 26))
    store.refuses(InvalidTaskId, verbs.Drop([" "]))


def test_twice_answers_false_for_what_the_first_run_deleted(store: Store) -> None:
    dead = store.bury()
    store.run(verbs.Drop([dead]))
    with store.unchanged():
        assert store.run(verbs.Drop([dead])) == (False,)
