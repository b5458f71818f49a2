"""End a running task as done, with its result."""

from __future__ import annotations

from fairlane import TaskState, verbs
from fairlane.errors import InvalidData, PayloadTooLarge, StaleAttempt, TaskEnded, TaskNotFound
from support.store import Store


def test_returns_true_and_keeps_the_result(store: Store) -> None:
    leased = store.running()
    store.clock.advance(250)
    assert store.finish(leased, {"found": ["a"]})
    record = store.client.task(leased.task_id)
    assert (record.state, record.result) == (TaskState.DONE, b'{"found":["a"]}')
    assert record.ended_at_ms - record.started_at_ms == 250


def test_the_record_stays_readable_for_its_retention(store: Store) -> None:
    leased = store.running()
    store.finish(leased)
    left_ms = store.redis.pttl(store.keys.task(leased.task_id))
    assert 0 < left_ms <= store.settings.result_ttl_ms


def test_a_free_place_wakes_the_dispatcher_if_somebody_waits(store: Store) -> None:
    leased = store.running()
    while store.client.wait(0.01):
        pass
    store.finish(leased)
    assert not store.client.wait(0.01)
    leased = store.running()
    store.enqueue(1)
    while store.client.wait(0.01):
        pass
    store.finish(leased)
    assert store.client.wait(0.01)


def test_task_not_found(store: Store) -> None:
    store.refuses(TaskNotFound, verbs.Finish("unknown", 1))


def test_task_ended_otherwise(store: Store) -> None:
    leased = store.running()
    store.client.cancel(leased.task_id, force=True)
    store.refuses(TaskEnded, verbs.Finish(leased.task_id, 1), "is cancelled")


def test_stale_attempt_of_a_task_that_was_not_started(store: Store) -> None:
    store.enqueue(1)
    (leased,) = store.claim()
    store.refuses(StaleAttempt, verbs.Finish(leased.task_id, 1), "is leased")


def test_a_late_finish_is_refused_and_the_second_attempts_result_stands(store: Store) -> None:
    first = store.running()
    store.clock.advance(store.settings.lease_ms)
    store.run(verbs.Sweep())
    late = verbs.Finish(first.task_id, first.attempt, {"by": 1})
    store.refuses(StaleAttempt, late)
    (second,) = store.claim()
    assert second.attempt == 2
    store.start(second)
    store.refuses(StaleAttempt, late)
    store.finish(second, {"by": 2})
    store.refuses(TaskEnded, late)
    assert store.client.task(first.task_id).result == b'{"by":2}'


def test_a_result_that_cannot_be_stored(store: Store) -> None:
    leased = store.running()
    store.refuses(InvalidData, verbs.Finish(leased.task_id, 1, {"x": float("nan")}))
    store.refuses(InvalidData, verbs.Finish(leased.task_id, 1, ["no object"]))  # type: ignore[arg-type]
    long = {"x": "x" * store.settings.max_result_bytes}
    store.refuses(PayloadTooLarge, verbs.Finish(leased.task_id, 1, long))
    store.finish(leased)


def test_twice_answers_false_and_the_first_result_stands(store: Store) -> None:
    leased = store.running()
    assert store.finish(leased, {"by": 1})
    with store.unchanged():
        assert not store.finish(leased, {"by": 2})
