"""Record that a running task's attempt failed: it is retried, failed or dead."""

from __future__ import annotations

from fairlane import TaskState, formulas, verbs
from fairlane.errors import StaleAttempt, TaskEnded, TaskNotFound
from fairlane.model import Leased, Outcome
from support.store import Store
from verbs.conftest import Open


def fail(leased: Leased, **options: object) -> verbs.Fail:
    return verbs.Fail(leased.task_id, leased.attempt, "error", "Traceback", **options)  # type: ignore[arg-type]


def test_a_failed_attempt_is_tried_again_after_a_backoff_that_doubles(open_store: Open) -> None:
    store = open_store(
        max_attempts=6,
        retry_backoff_base_ms=5_000,
        defer_backoff_max_ms=30_000,
        defer_jitter_percent=0,
    )
    (task_id,) = store.enqueue(1)
    waits = []
    for attempt in range(1, 6):
        (leased,) = store.claim()
        assert leased.attempt == attempt
        store.start(leased)
        outcome = store.run(fail(leased))
        assert outcome.state is TaskState.DELAYED
        waits.append(outcome.due_ms - store.clock.now_ms)
        store.clock.now_ms = outcome.due_ms - 1
        assert store.claim() == ()
        store.clock.advance(1)
    assert waits == [formulas.backoff_ms(n, base_ms=5_000, max_ms=30_000) for n in range(1, 6)]
    assert waits == [5_000, 10_000, 20_000, 30_000, 30_000]
    assert store.client.task(task_id).failures == 5


def test_past_max_attempts_it_is_dead_with_its_cause_error_and_payload(store: Store) -> None:
    task_id = store.bury()
    (letter,) = store.run(verbs.DeadLetters())
    assert (letter.task_id, letter.state, letter.failures) == (task_id, TaskState.DEAD, 3)
    assert (letter.cause, letter.error, letter.payload) == ("boom", "Traceback: boom", b'{"n":0}')
    assert store.claim() == ()


def test_final_ends_it_as_failed(store: Store) -> None:
    leased = store.running()
    assert store.run(fail(leased, final=True)) == Outcome(TaskState.FAILED, 0)
    record = store.client.task(leased.task_id)
    assert (record.cause, record.error, record.failures) == ("error", "Traceback", 1)


def test_a_long_error_keeps_its_end(store: Store) -> None:
    leased = store.running()
    error = "x" * 20_000 + "\ud800 the cause"
    store.run(verbs.Fail(leased.task_id, 1, "error", error, final=True))
    kept = store.client.task(leased.task_id).error
    assert kept.endswith("x? the cause")
    assert len(kept) == 16_384


def test_the_devices_other_tasks_go_on(store: Store) -> None:
    failed = store.running()
    store.run(fail(failed))
    other = store.running()
    assert other.task_id != failed.task_id
    assert store.client.device(failed.mac).pending == 1


def test_task_not_found(store: Store) -> None:
    store.refuses(TaskNotFound, verbs.Fail("unknown", 1, "error"))


def test_task_ended_otherwise(store: Store) -> None:
    leased = store.running()
    store.finish(leased)
    store.refuses(TaskEnded, fail(leased), "is done")


def test_stale_attempt(store: Store) -> None:
    store.enqueue(1)
    (leased,) = store.claim()
    store.refuses(StaleAttempt, fail(leased), "is leased")
    store.start(leased)
    store.clock.advance(store.settings.lease_ms)
    store.run(verbs.Sweep())
    store.refuses(StaleAttempt, fail(leased), "is pending")
    store.claim()
    store.refuses(StaleAttempt, fail(leased), "current one, 2")


def test_twice_answers_the_state_of_the_first_run(store: Store) -> None:
    leased = store.running()
    first = store.run(fail(leased))
    store.clock.advance(1_000)
    with store.unchanged():
        assert store.run(fail(leased)) == first
    final = store.running(2)
    assert store.run(fail(final, final=True)).state is TaskState.FAILED
    with store.unchanged():
        assert store.run(fail(final, final=True)).state is TaskState.FAILED


def test_a_task_that_is_tried_again_tells_why_it_waits(store: Store) -> None:
    leased = store.running()
    store.run(fail(leased))
    record = store.client.task(leased.task_id)
    assert (record.cause, record.error) == ("error", "Traceback")


def test_twice_for_good_answers_the_same_of_a_task_that_was_deferred(store: Store) -> None:
    (task_id,) = store.enqueue(1)
    (leased,) = store.claim()
    store.clock.now_ms = store.run(verbs.Defer(task_id, leased.attempt)).due_ms
    (leased,) = store.claim()
    store.start(leased)
    verb = verbs.Fail(task_id, leased.attempt, "error", final=True)
    first = store.run(verb)
    assert first.due_ms == 0
    with store.unchanged():
        assert store.run(verb) == first
