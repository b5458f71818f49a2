"""Cancel those of many tasks that are in one of the states that are named."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane import TaskState, verbs
from fairlane.errors import InvalidData, InvalidMac, InvalidTaskId, TaskEnded
from fairlane.verbs import cancel as room
from fairlane.verbs.cancel import OPEN, Cancelled, cancelling
from fairlane.verbs.search import TaskQuery
from support.store import Store, mac
from verbs.conftest import Open


def cancelled(store: Store, *, dry_run: bool = False, most: int = 10**9, **query: Any) -> Cancelled:
    """Cancel what a query means, page by page, every step checked."""
    asked = TaskQuery(**query)
    matched = done = 0
    cursor = ""
    for _ in range(200):
        steps = cancelling(asked, store.client.settings, dry_run=dry_run, cursor=cursor, most=most)
        try:
            step = next(steps)
            while True:
                step = steps.send(store.run(step))
        except StopIteration as end:
            page: Cancelled = end.value
        matched, done, cursor = matched + page.matched, done + page.done, page.cursor
        if not cursor:
            return Cancelled(matched, done)
    raise AssertionError("it has no end")


def test_only_those_in_a_state_that_is_named(store: Store) -> None:
    running = store.running(1)
    store.enqueue(2, task_id="delayed")
    (late,) = store.claim()
    store.run(verbs.Defer("delayed", late.attempt))
    store.enqueue(3, task_id="leased")
    store.claim()
    store.enqueue(4, task_id="pending")
    ids = [running.task_id, "leased", "delayed", "pending", "unknown"]
    assert store.run(verbs.CancelMany(ids)) == (False, False, True, True, False)
    assert store.run(verbs.CancelMany(ids, OPEN)) == (True, True, False, False, False)
    store.refuses(TaskEnded, verbs.Finish(running.task_id, running.attempt))


@pytest.mark.parametrize("order", ["fifo", "lifo"])
def test_anywhere_in_a_queue_and_the_rest_stays_in_order(open_store: Open, order: str) -> None:
    store = open_store(order=order)
    tasks = store.enqueue(1, 7)
    assert store.run(verbs.CancelMany([tasks[3], tasks[0], tasks[6], tasks[5]])) == (True,) * 4
    left = [tasks[1], tasks[2], tasks[4]]
    expected = left if order == "fifo" else left[::-1]
    assert [task.task_id for task in store.claim(5)] == expected


def test_a_search_through_long_queues_ends_early(store: Store) -> None:
    tasks = store.enqueue(1, 9)
    middle = tasks[2:7]
    assert store.run(verbs.CancelMany(middle, look=17)) == (True, True)
    assert store.run(verbs.CancelMany(middle, look=0)) == (False, False)
    assert store.run(verbs.CancelMany(middle[2:], look=0)) == (True,)
    assert store.run(verbs.CancelMany([tasks[0], tasks[1], tasks[8]], look=0)) == (True,) * 3


def test_all_that_waits_of_a_device(store: Store) -> None:
    begun = store.running(1)
    store.enqueue(1)
    (delayed,) = store.claim()
    store.run(verbs.Defer(delayed.task_id, delayed.attempt))
    store.enqueue(1, 5)
    store.enqueue(2, 3)
    with store.unchanged():
        assert cancelled(store, dry_run=True, mac=mac(1)) == Cancelled(6, 0)
    assert cancelled(store, mac="0200.0000.0001") == Cancelled(6, 6)
    assert [store.client.device(mac(number)).pending for number in (1, 2)] == [0, 3]
    assert store.state(begun.task_id) is TaskState.RUNNING
    assert cancelled(store, mac=mac(1)) == Cancelled(0, 0)


@pytest.mark.parametrize("most", [1, 2, 3, 1_000])
@pytest.mark.parametrize("look", [1, 2, 200])
def test_every_one_that_matches_and_no_other(
    store: Store, monkeypatch: pytest.MonkeyPatch, look: int, most: int
) -> None:
    monkeypatch.setattr(room, "LOOK", look)
    monkeypatch.setattr(room, "AT_ONCE", 2)
    for at in range(9):
        store.enqueue(at % 2, task_id=f"{'ab'[at % 3 == 0]}{at}")
        store.clock.advance(at % 3)
    chosen = {f"b{at}" for at in (0, 3, 6)}
    of_one = {task for task in chosen if int(task[1:]) % 2 == 0}
    assert cancelled(store, most=most, mac=mac(0), words="b") == Cancelled(2, 2)
    ended = {task for task in chosen if store.state(task) is TaskState.CANCELLED}
    assert ended == of_one
    assert cancelled(store, most=most, words="b") == Cancelled(1, 1)
    assert store.run(verbs.Overload()).global_pending == 6
    assert cancelled(store, most=most) == Cancelled(6, 6)


def test_by_lane_type_state_time_and_a_whole_id(store: Store) -> None:
    store.enqueue(1, task_id="old")
    store.clock.advance(1_000)
    new_ms = store.clock.now_ms
    store.enqueue(1, task_id="new")
    store.enqueue(1, task_id="new2")
    store.client.enqueue(mac(1), "ocr", {}, task_id="image")
    assert cancelled(store, lane="ocr") == Cancelled(1, 1)
    assert cancelled(store, lane="none") == Cancelled(0, 0)
    assert cancelled(store, task_type="ocr") == Cancelled(0, 0)
    assert cancelled(store, state=TaskState.DELAYED) == Cancelled(0, 0)
    assert cancelled(store, created_before_ms=new_ms) == Cancelled(1, 1)
    assert store.state("old") is TaskState.CANCELLED
    assert cancelled(store, words="new") == Cancelled(1, 1), "a whole id means that task alone"
    assert store.state("new2") is TaskState.PENDING


def test_what_runs_only_when_its_state_is_named(store: Store) -> None:
    leased = store.running()
    assert cancelled(store) == Cancelled(0, 0)
    assert cancelled(store, state=TaskState.RUNNING) == Cancelled(1, 1)
    store.refuses(TaskEnded, verbs.Finish(leased.task_id, leased.attempt))


def test_what_has_begun_meanwhile_is_left_alone(store: Store) -> None:
    store.enqueue(1, 2)
    steps = cancelling(TaskQuery(mac=mac(1)), store.client.settings)
    step = steps.send(None)
    while not isinstance(step, verbs.CancelMany):
        step = steps.send(store.run(step))
    (leased,) = store.claim()
    assert sum(store.run(step)) == 1
    assert store.state(leased.task_id) is TaskState.LEASED


def test_what_is_no_record_is_left_alone(store: Store) -> None:
    store.is_spoilt = True
    (kept,) = store.enqueue(1)
    store.redis.set(store.keys.task("string"), "foreign")
    store.redis.hset(store.keys.task("nobody"), mapping={"state": "pending"})
    assert store.run(verbs.CancelMany(["string", "nobody", kept])) == (False, False, True)


def test_what_cannot_be_asked(store: Store) -> None:
    store.refuses(InvalidData, verbs.CancelMany([]))
    store.refuses(InvalidData, verbs.CancelMany(["a"] * 101))
    store.refuses(InvalidTaskId, verbs.CancelMany(["../etc"]))
    for state in (TaskState.DONE, TaskState.DEAD):
        store.refuses(InvalidData, verbs.CancelMany(["a"], [state]))
        with pytest.raises(InvalidData, match="state"):
            cancelled(store, state=state)
    with pytest.raises(InvalidMac):
        cancelled(store, mac="zz")
    with pytest.raises(InvalidData, match="cursor"):
        list(cancelling(TaskQuery(), store.client.settings, cursor="x"))


def test_twice_answers_false_for_what_the_first_run_cancelled(store: Store) -> None:
    ids = store.enqueue(1, 3)
    assert store.run(verbs.CancelMany([*ids[:2], ids[0]])) == (True, True, False)
    with store.unchanged():
        assert store.run(verbs.CancelMany(ids[:2])) == (False, False)


@pytest.mark.parametrize("most", [100, 10**9])
def test_what_another_cancelled_meanwhile_hides_nothing(open_store: Open, most: int) -> None:
    """Where it goes on in a queue counts from its end, also after a reply that was lost."""
    store = open_store(max_per_mac_pending=1_000)
    store.enqueue(1, 230)
    asked, cursor, done, pages = TaskQuery(mac=mac(1)), "", 0, 0
    while True:
        steps = cancelling(asked, store.client.settings, cursor=cursor, most=most)
        try:
            step: Any = next(steps)
            while True:
                reply = store.client.run(step)
                if isinstance(step, verbs.CancelMany) and done < 3:
                    done += 1
                    reply = store.client.run(step)
                step = steps.send(reply)
        except StopIteration as end:
            cursor, pages = end.value.cursor, pages + 1
        if not cursor:
            break
    assert (store.client.device(mac(1)).pending, done) == (0, 3)
    assert pages < 10


@pytest.mark.parametrize("most", [100, 10**9])
def test_what_cannot_be_cancelled_is_passed(open_store: Open, most: int) -> None:
    """A flawed record stays where it is: the walk ends all the same, and counts it."""
    store = open_store(max_per_mac_pending=1_000)
    store.is_spoilt = True
    spoilt = store.enqueue(1, 120)
    store.enqueue(1, 110)
    for task_id in spoilt:
        store.redis.hset(store.keys.task(task_id), "created_at", "text")
    found = cancelled(store, most=most, mac=mac(1))
    assert found.done == 110
    assert found.matched >= 110
    assert store.client.device(mac(1)).pending == 120
