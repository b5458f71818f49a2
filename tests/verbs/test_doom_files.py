"""Choose files that no task needs any more, so that they are deleted."""

from __future__ import annotations

import pytest

from fairlane import verbs
from fairlane.errors import FileNotKnown, InvalidData
from support.store import LANE, Store, mac

NAME = "a" * 64
DAY_MS = 24 * 3_600_000


def _task(store: Store, **options: object) -> str:
    store.run(verbs.KeepFile(NAME))
    verb = verbs.Enqueue(mac(1), LANE, {"file": NAME}, file=NAME, ttl_ms=DAY_MS, **options)  # type: ignore[arg-type]
    store.run(verb)
    return verb.task_id


def _due(store: Store) -> tuple[str, ...]:
    """Let the longest wait pass, and return what is chosen."""
    store.clock.advance(store.settings.file_ttl_ms)
    return store.run(verbs.DoomFiles())


def test_nothing_that_a_live_task_needs_is_chosen(store: Store) -> None:
    """In each state of a task that has not ended, dead included: it may be redriven."""
    task_id = _task(store)
    assert _due(store) == (), "pending"
    (leased,) = store.claim()
    assert store.run(verbs.DoomFiles()) == (), "leased"
    store.start(leased)
    store.clock.advance(1)
    store.run(verbs.Defer(task_id, leased.attempt, "not now"))
    assert _due(store) == (), "delayed or pending again"
    for _ in range(store.settings.max_attempts):
        store.run(verbs.Sweep())
        (leased,) = store.claim()
        store.start(leased)
        assert _due(store) == (), "running"
        outcome = store.run(verbs.Fail(task_id, leased.attempt, "boom", "Traceback: boom"))
        store.clock.now_ms = max(store.clock.now_ms, outcome.due_ms)
    assert store.state(task_id) == "dead"
    assert _due(store) == (), "dead"
    store.run(verbs.Drop([task_id]))
    assert _due(store) == (NAME,)


@pytest.mark.parametrize("end", ["done", "failed", "cancelled", "expired"])
def test_after_the_last_task_that_named_it_has_ended(store: Store, end: str) -> None:
    first, last = _task(store), _task(store)
    store.run(verbs.Cancel(first))
    assert _due(store) == ()
    if end == "cancelled":
        store.run(verbs.Cancel(last))
    elif end == "expired":
        store.clock.advance(DAY_MS)
        assert store.run(verbs.Purge()) == (last,)
    else:
        (leased,) = store.claim()
        store.start(leased)
        if end == "done":
            store.finish(leased)
        else:
            store.run(verbs.Fail(last, leased.attempt, "no", "", final=True))
    assert store.state(last) == end
    assert _due(store) == (NAME,)
    assert not [name for name in store.redis.keys("*") if ":file" in name]


def test_a_task_that_names_it_in_the_last_moment_keeps_it(store: Store) -> None:
    store.run(verbs.KeepFile(NAME))
    store.clock.advance(store.settings.file_ttl_ms)
    verb = verbs.Enqueue(mac(1), LANE, {"file": NAME}, file=NAME)
    store.run(verb)
    assert store.run(verbs.DoomFiles()) == ()


def test_a_task_that_comes_too_late_is_refused(store: Store) -> None:
    store.run(verbs.KeepFile(NAME))
    assert _due(store) == (NAME,)
    store.refuses(FileNotKnown, verbs.Enqueue(mac(1), LANE, {"file": NAME}, file=NAME))


def test_a_known_task_is_known_also_without_its_file(store: Store) -> None:
    """A re-send gets its receipt, though the task has ended and its file is gone."""
    verb = verbs.Enqueue(mac(1), LANE, {"file": NAME}, file=NAME, idempotency_key="k")
    store.run(verbs.KeepFile(NAME))
    store.run(verb)
    store.run(verbs.Cancel(verb.task_id))
    assert _due(store) == (NAME,)
    again = verbs.Enqueue(mac(1), LANE, {"file": NAME}, file=NAME, idempotency_key="k")
    for resent in (verb, again):
        receipt = store.run(resent)
        assert getattr(receipt, "task_id", None) == verb.task_id


def test_many_ended_tasks_are_looked_through_in_several_goes(store: Store) -> None:
    ids = [_task(store) for _ in range(150)]
    for task_id in ids:
        store.client.run(verbs.Cancel(task_id))
    assert _due(store) == ()
    assert store.redis.zcard(store.keys.name("FILE") + NAME) == 50
    assert _due(store) == (NAME,)


def test_one_that_is_needed_is_not_in_the_way(store: Store) -> None:
    _task(store)
    other = "b" * 64
    store.clock.advance(1)
    store.run(verbs.KeepFile(other))
    store.clock.advance(store.settings.file_ttl_ms)
    assert [store.run(verbs.DoomFiles(1)) for _ in range(2)] == [(), (other,)]


def test_what_was_left_half_way_is_chosen_again(store: Store) -> None:
    store.run(verbs.KeepFile(NAME))
    assert _due(store) == (NAME,)
    assert store.run(verbs.DoomFiles()) == ()
    store.clock.advance(600_000)
    assert store.run(verbs.DoomFiles()) == (NAME,)


def test_what_cannot_be_asked(store: Store) -> None:
    for limit in (0, 101, True):
        store.refuses(InvalidData, verbs.DoomFiles(limit))


def test_twice_chooses_the_next_ones(store: Store) -> None:
    for digit in "abc":
        store.run(verbs.KeepFile(digit * 64))
    store.clock.advance(store.settings.file_ttl_ms)
    assert [len(store.run(verbs.DoomFiles(2))) for _ in range(3)] == [2, 1, 0]
