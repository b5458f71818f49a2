"""Read a task: its state, times, attempts, result or cause, and its place in the queue."""

from __future__ import annotations

import pytest

from fairlane import TaskState, verbs
from fairlane.errors import InvalidTaskId, TaskNotFound
from support.store import LANE, Store, mac
from verbs.conftest import Open


def test_returns_the_whole_record_of_a_life(store: Store) -> None:
    (task_id,) = store.enqueue(1)
    created = store.clock.now_ms
    claimed = store.clock.advance(10)
    (leased,) = store.claim()
    started = store.clock.advance(10)
    store.start(leased)
    ended = store.clock.advance(10)
    store.finish(leased, {"found": 1})
    record = store.run(verbs.InspectTask(task_id))
    assert (record.task_id, record.state, record.mac) == (task_id, TaskState.DONE, mac(1))
    assert (record.task_type, record.lane, record.attempt, record.place) == (LANE, LANE, 1, -1)
    times = (record.created_at_ms, record.claimed_at_ms, record.started_at_ms, record.ended_at_ms)
    assert times == (created, claimed, started, ended)
    assert (record.worker, record.payload, record.result) == ("worker", b'{"n":0}', b'{"found":1}')


@pytest.mark.parametrize(("order", "places"), [("fifo", [0, 1, 2]), ("lifo", [2, 1, 0])])
def test_places_count_from_the_end_served_next(
    open_store: Open, order: str, places: list[int]
) -> None:
    store = open_store(order=order)
    tasks = store.enqueue(1, 3)
    assert [store.client.task(task).place for task in tasks] == places


def test_task_not_found(store: Store) -> None:
    store.refuses(TaskNotFound, verbs.InspectTask("unknown"))
    store.refuses(InvalidTaskId, verbs.InspectTask("un known"))


def test_twice_reads_again(store: Store) -> None:
    (task_id,) = store.enqueue(1)
    with store.unchanged():
        assert store.client.task(task_id) == store.client.task(task_id)
