"""Find tasks in one of the places where they are, newest first."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fairlane import verbs
from fairlane.errors import InvalidData, InvalidMac, UnknownLane
from fairlane.model import TaskState
from fairlane.verbs import search as room
from fairlane.verbs.search import TaskPage, TaskQuery, search
from support.store import LANE, Store, mac


def found(store: Store, cursor: str = "", limit: int = 50, **query: object) -> TaskPage:
    """Run a search to its answer, step by step."""
    asked = TaskQuery(**query)  # type: ignore[arg-type]
    steps = search(asked, store.client.settings, cursor=cursor, limit=limit)
    step = next(steps)
    try:
        while True:
            step = steps.send(store.run(step))
    except StopIteration as end:
        page: TaskPage = end.value
        return page


def ids(store: Store, **query: object) -> list[str]:
    return [task.task_id for task in found(store, **query).tasks]  # type: ignore[arg-type]


def pages(store: Store, limit: int, **query: object) -> list[str]:
    """Return all that a search finds, page by page."""
    seen: list[str] = []
    cursor = ""
    for _ in range(100):
        page = found(store, cursor=cursor, limit=limit, **query)
        seen += [task.task_id for task in page.tasks]
        cursor = page.cursor
        if not cursor:
            return seen
    raise AssertionError("the search has no end")


@pytest.fixture
def many(store: Store) -> Sequence[str]:
    """Store a task in every state; their ids are their states."""
    for at, state in enumerate(("done", "failed", "dead", "delayed", "running", "leased")):
        store.clock.advance(1_000)
        store.enqueue(at, task_id=state)
        (leased,) = store.claim()
        if state != "leased":
            store.start(leased)
        if state == "done":
            store.finish(leased, {"secret": 1})
        elif state == "failed":
            store.run(verbs.Fail(state, 1, "handler", "No Width", final=True))
        elif state == "delayed":
            store.run(verbs.Fail(state, 1, "TimeoutError", "slow"))
        elif state == "dead":
            store.run(verbs.Fail(state, 1, "boom", "x"))
            for attempt in (2, 3):
                store.clock.now_ms = store.client.task(state).due_at_ms
                (leased,) = store.claim()
                store.start(leased)
                store.run(verbs.Fail(state, attempt, "boom", "Traceback: Boom"))
    store.clock.advance(1_000)
    store.enqueue(7, task_id="cancelled")
    store.run(verbs.Cancel("cancelled"))
    store.enqueue(8, task_id="pending")
    return [state.value for state in TaskState if state is not TaskState.EXPIRED]


def test_every_task_is_found_by_its_state(store: Store, many: Sequence[str]) -> None:
    for state in many:
        assert ids(store, state=TaskState(state)) == [state]
    assert sorted(ids(store)) == sorted(many)
    store.clock.advance(store.settings.task_ttl_ms + 1)
    store.run(verbs.Purge())
    assert set(ids(store, state=TaskState.EXPIRED)) == {"pending", "delayed"}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"mac": mac(2)}, ["dead"]),
        ({"mac": mac(8)}, ["pending"]),
        ({"mac": mac(3)}, ["delayed"]),
        ({"words": "0200.0000.0004"}, ["running"]),
        ({"words": "02:00:00:00:00:05"}, ["leased"]),
        ({"words": "pend"}, ["pending"]),
        ({"words": "PEND"}, ["pending"]),
        ({"words": "no width"}, ["failed"]),
        ({"words": "boom"}, ["dead"]),
        ({"words": "TimeoutError"}, ["delayed"]),
        ({"cause": "boom"}, ["dead"]),
        ({"task_type": "ocr"}, []),
        ({"words": "nothing-of-it"}, []),
        ({"words": "ending"}, []),
    ],
)
def test_by_device_type_cause_and_words(
    store: Store, many: Sequence[str], query: dict[str, str], expected: list[str]
) -> None:
    assert ids(store, **query) == expected


def test_an_id_is_found_at_once_and_alone(store: Store, many: Sequence[str]) -> None:
    store.enqueue(9, task_id="pending2")
    page = found(store, words="pending")
    assert ([task.task_id for task in page.tasks], page.looked, page.cursor) == (["pending"], 1, "")
    assert sorted(ids(store, words="pendin")) == ["pending", "pending2"]
    assert ids(store, words="pending", state=TaskState.DONE) == []


def test_by_time(store: Store) -> None:
    at_ms = []
    for name in "abc":
        store.enqueue(1, task_id=name)
        at_ms.append(store.clock.now_ms)
        store.clock.advance(1_000)
    assert ids(store, created_after_ms=at_ms[1]) == ["c", "b"]
    assert ids(store, created_before_ms=at_ms[1]) == ["a"]
    assert ids(store, created_after_ms=at_ms[1], created_before_ms=at_ms[2]) == ["b"]


@pytest.mark.parametrize("look", [1, 2, 400])
@pytest.mark.parametrize("limit", [1, 3, 200])
def test_pages_hold_each_task_once_newest_first(
    store: Store, monkeypatch: pytest.MonkeyPatch, look: int, limit: int
) -> None:
    monkeypatch.setattr(room, "MOST_LOOKED", look)
    stored = []
    for at in range(9):
        # Three at a time, and of several devices: what stands in one score, and in several queues.
        stored += store.enqueue(at % 2, task_id=f"t{at}")
        store.clock.advance(at % 3)
    assert sorted(pages(store, limit)) == sorted(stored)
    own = [task for task in reversed(stored) if int(task[1:]) % 2 == 0]
    assert pages(store, limit, mac=mac(0)) == own
    for leased in store.claim(9):
        store.start(leased)
        store.finish(leased)
    assert sorted(pages(store, limit, state=TaskState.DONE)) == sorted(stored)


def test_a_step_is_bounded_and_goes_on_where_it_stopped(store: Store) -> None:
    stored = store.enqueue(1, 5)
    first = store.run(verbs.FindTasks("deadlines", look=2))
    assert (len(first.tasks), first.looked) == (2, 2)
    # Whoever it stopped at may be gone by then.
    store.run(verbs.Cancel(first.tasks[-1].task_id))
    rest = store.run(verbs.FindTasks("deadlines", position=first.position))
    seen = {task.task_id for task in (*first.tasks, *rest.tasks)}
    assert (seen, rest.position) == ({*stored}, "")


def test_no_payload_and_no_result_is_told(store: Store, many: Sequence[str]) -> None:
    assert all((task.payload, task.result) == (b"", b"") for task in found(store).tasks)


def test_what_is_no_record_is_passed_over(store: Store) -> None:
    store.is_spoilt = True
    (kept,) = store.enqueue(1)
    store.redis.zadd(store.keys.name("DEADLINES"), {"nobody": 9e12, "string": 9e12})
    store.redis.set(store.keys.task("string"), "foreign")
    assert ids(store) == [kept]


def test_what_cannot_be_asked(store: Store) -> None:
    store.refuses(InvalidData, verbs.FindTasks("nowhere"))
    store.refuses(InvalidData, verbs.FindTasks("dead", position="x"))
    store.refuses(InvalidData, verbs.FindTasks("dead", look=0))
    store.refuses(UnknownLane, verbs.FindTasks("inflight", lane="none"))
    store.refuses(InvalidMac, verbs.FindTasks("queue", lane=LANE))
    for cursor in ("x", "99~", "0"):
        with pytest.raises(InvalidData, match="cursor"):
            found(store, cursor=cursor)


def test_twice_reads_again(store: Store, many: Sequence[str]) -> None:
    with store.unchanged():
        assert found(store) == found(store)


def test_a_capital_that_is_no_ascii_is_found_as_it_stands(store: Store) -> None:
    leased = store.running()
    store.run(verbs.Fail(leased.task_id, leased.attempt, "boom", "Ärger im GERÄT", final=True))
    for words in ("Ärger", "gerÄt", "ÄRGER"):
        found = store.run(verbs.FindTasks("id", TaskQuery(words=words), position=leased.task_id))
        assert [task.task_id for task in found.tasks] == [leased.task_id], words
