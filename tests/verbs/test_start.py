"""Begin to run a leased task; only its current attempt may, once."""

from __future__ import annotations

import pytest

from fairlane import Task, TaskState, verbs
from fairlane.errors import InvalidTaskId, StaleAttempt, TaskEnded, TaskNotFound
from fairlane.model import Started
from support.store import LANE, Store, mac


def test_returns_the_task_with_its_data_and_the_leases_end(store: Store) -> None:
    data = {"mac": "x", "task_id": 7, "created_at": None, "__proto__": {"a": [1.0, "中"]}}
    task_id = store.client.enqueue(mac(1), LANE, data).task_id
    created = store.clock.now_ms
    now = store.clock.advance(1_500)
    (leased,) = store.claim()
    task = Task(task_id, LANE, mac(1), created, 1, data)
    assert store.start(leased) == Started(task, now + store.settings.lease_ms)
    record = store.client.task(task_id)
    assert (record.state, record.started_at_ms, record.worker) == (TaskState.RUNNING, now, "worker")


@pytest.mark.parametrize("size", [1, 256 * 1024 - 1, 256 * 1024])
def test_the_bytes_at_the_handler_are_those_accepted(store: Store, size: int) -> None:
    assert store.settings.max_payload_bytes == 256 * 1024
    data = {"": "x" * max(0, size - len('{"":""}'))} if size > 1 else {}
    store.client.enqueue(mac(1), LANE, data)
    (leased,) = store.claim(with_payload=True)
    assert len(leased.payload) == max(2, size)
    assert store.start(leased).task.data == data


def test_task_not_found(store: Store) -> None:
    store.refuses(TaskNotFound, verbs.Start("unknown", 1, "worker", "run"))
    store.refuses(InvalidTaskId, verbs.Start("../etc", 1, "worker", "run"))


def test_task_ended(store: Store) -> None:
    leased = store.running()
    store.finish(leased)
    store.refuses(TaskEnded, verbs.Start(leased.task_id, 1, "worker", "run"), "is done")
    dead = store.bury(2)
    store.refuses(TaskEnded, verbs.Start(dead, 3, "worker", "run"), "is dead")


def test_stale_attempt_of_an_older_lease(store: Store) -> None:
    store.enqueue(1)
    (first,) = store.claim()
    store.clock.advance(store.settings.lease_ms)
    store.run(verbs.Sweep())
    store.refuses(StaleAttempt, verbs.Start(first.task_id, 1, "worker", "run"), "is pending")
    (second,) = store.claim()
    store.refuses(StaleAttempt, verbs.Start(first.task_id, 1, "worker", "run"), "current one, 2")
    store.refuses(StaleAttempt, verbs.Start(first.task_id, 3, "worker", "run"))
    store.start(second)


def test_stale_attempt_that_another_run_has_started(store: Store) -> None:
    leased = store.running()
    other = verbs.Start(leased.task_id, leased.attempt, "worker", "another run")
    store.refuses(StaleAttempt, other, "is running")


def test_a_task_past_its_ttl_may_start_once_it_is_leased(store: Store) -> None:
    store.enqueue(1, ttl_ms=1_000)
    (leased,) = store.claim()
    store.clock.advance(2_000)
    assert store.start(leased).task.task_id == leased.task_id


def test_twice_the_same_run_gets_the_same_answer(store: Store) -> None:
    leased = store.running()
    with store.unchanged():
        assert store.start(leased).task == store.start(leased).task


def test_a_start_has_a_whole_lease_of_its_own(store: Store) -> None:
    store.enqueue(1)
    (leased,) = store.claim()
    # The last millisecond of what an unstarted task has.
    inflight = store.keys.lane("INFLIGHT", LANE)
    until = int(store.redis.zscore(inflight, leased.task_id))
    store.clock.advance(until - store.clock.now_ms - 1)
    store.start(leased)
    store.clock.advance(store.settings.lease_ms - 1)
    assert store.run(verbs.Sweep()).lost == ()
    store.clock.advance(1)
    assert store.run(verbs.Sweep()).lost == (f"{leased.task_id}.1",)


def test_a_start_forgives_the_leases_that_were_lost_before_it(store: Store) -> None:
    inflight = store.keys.lane("INFLIGHT", LANE)

    def leased_for() -> int:
        (leased,) = store.claim()
        return int(store.redis.zscore(inflight, leased.task_id)) - store.clock.now_ms

    store.enqueue(1)
    first = leased_for()
    store.clock.advance(first)
    store.run(verbs.Sweep())
    assert leased_for() == 2 * first
    store.clock.advance(2 * first)
    store.run(verbs.Sweep())
    (leased,) = store.claim()
    store.start(leased)
    store.clock.advance(store.settings.lease_ms)
    store.run(verbs.Sweep())
    assert leased_for() == first


def test_a_start_is_told_with_its_attempt_and_worker(store: Store) -> None:
    leased = store.running()
    last = store.client.events()[-1]
    assert (last.event, last.tasks) == ("started", (f"{leased.task_id}.{leased.attempt}",))
    assert (last.mac, last.lane, last.detail) == (mac(1), LANE, "worker")


def test_the_trace_context_comes_along(store: Store) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    store.run(verbs.Enqueue(mac(1), LANE, {}, traceparent=trace))
    (leased,) = store.claim()
    assert store.start(leased).traceparent == trace
