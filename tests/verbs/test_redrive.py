"""Give dead tasks a new series of attempts: their counts start anew, their payload is intact."""

from __future__ import annotations

from dataclasses import replace

from fairlane import TaskState, verbs
from fairlane.errors import InvalidData, InvalidTaskId, StaleAttempt, UnknownLane
from support.store import Store, mac


def test_the_counts_start_anew_and_the_payload_is_intact(store: Store) -> None:
    task_id = store.bury()
    dead = store.client.task(task_id)
    assert dead.due_at_ms == 0, "nothing is due of it any more"
    payload = dead.payload
    store.clock.advance(10 * store.settings.task_ttl_ms)
    assert store.run(verbs.Redrive([task_id])) == (True,)
    record = store.client.task(task_id)
    assert (record.state, record.failures, record.defers) == (TaskState.PENDING, 0, 0)
    assert (record.payload, record.cause, record.error) == (payload, "", "")
    assert record.created_at_ms == store.clock.now_ms
    assert (record.ended_at_ms, record.due_at_ms) == (0, 0)
    assert not store.redis.hexists(store.keys.task(task_id), "dead_at")
    assert store.run(verbs.DeadLetters()) == ()
    (leased,) = store.claim()
    assert leased.attempt == 4, "the fence goes on: an attempt of the first series is stale"
    store.refuses(StaleAttempt, verbs.Start(task_id, 3, "worker", "run"))
    store.start(leased)
    store.finish(leased)


def test_it_may_be_deferred_and_fail_as_often_as_the_first_time(store: Store) -> None:
    task_id = store.bury()
    store.run(verbs.Redrive([task_id]))
    for _ in range(store.settings.max_attempts):
        assert store.state(task_id) is not TaskState.DEAD
        (leased,) = store.claim()
        store.start(leased)
        due_ms = store.run(verbs.Fail(task_id, leased.attempt, "boom")).due_ms
        store.clock.now_ms = max(store.clock.now_ms, due_ms)
    assert store.state(task_id) is TaskState.DEAD


def test_its_defers_start_anew_too(store: Store) -> None:
    (task_id,) = store.enqueue(1)
    for _ in range(store.settings.max_defers + 1):
        (leased,) = store.claim()
        due_ms = store.run(verbs.Defer(task_id, leased.attempt)).due_ms
        store.clock.now_ms = max(store.clock.now_ms, due_ms)
    store.run(verbs.Redrive([task_id]))
    (leased,) = store.claim()
    outcome = store.run(verbs.Defer(task_id, leased.attempt))
    assert (outcome.state, outcome.defers) == (TaskState.DELAYED, 1)


def test_an_attempt_of_the_first_series_may_neither_fail_nor_defer(store: Store) -> None:
    failed, attempt = store.bury(), store.settings.max_attempts
    assert store.run(verbs.Fail(failed, attempt, "boom")).state is TaskState.DEAD, "a re-send"
    store.run(verbs.Redrive([failed]))
    store.refuses(StaleAttempt, verbs.Fail(failed, attempt, "boom"))
    (deferred,) = store.enqueue(2)
    for _ in range(store.settings.max_defers + 1):
        leased = next(task for task in store.claim(2) if task.task_id == deferred)
        due_ms = store.run(verbs.Defer(deferred, leased.attempt)).due_ms
        store.clock.now_ms = max(store.clock.now_ms, due_ms)
    store.run(verbs.Redrive([deferred]))
    store.refuses(StaleAttempt, verbs.Defer(deferred, leased.attempt))


def test_leases_that_were_lost_in_the_first_series_are_forgotten(store: Store) -> None:
    (task_id,) = store.enqueue(1, ttl_ms=24 * 3_600_000)
    for _ in range(3):
        store.claim()
        store.clock.advance(store.settings.lease_ms * 8)
        store.run(verbs.Sweep())
    for _ in range(store.settings.max_defers + 1):
        (leased,) = store.claim()
        due_ms = store.run(verbs.Defer(task_id, leased.attempt)).due_ms
        store.clock.now_ms = max(store.clock.now_ms, due_ms)
    assert store.run(verbs.Redrive([task_id])) == (True,)
    (leased,) = store.claim()
    store.clock.advance(store.settings.lease_ms * 2 // 3)
    assert store.run(verbs.Sweep()).lost == (f"{task_id}.{leased.attempt}",)


def test_it_is_charged_anew_and_belongs_where_its_device_is(store: Store) -> None:
    task_id = store.bury(1, site="lab")
    record = store.keys.task(task_id)
    assert store.redis.hget(record, "site") == "lab"
    store.run(verbs.Redrive([task_id]))
    assert store.redis.hmget(record, "site", "paid") == [None, None]


def test_false_for_what_is_no_dead_letter(store: Store) -> None:
    dead = store.bury()
    (pending,) = store.enqueue(2)
    assert store.run(verbs.Redrive([pending, dead, "unknown"])) == (False, True, False)
    assert [pending for _, pending in store.client.devices()] == [1, 1]


def test_what_cannot_be_asked(store: Store) -> None:
    store.refuses(InvalidData, verbs.Redrive([]))
    store.refuses(InvalidData, verbs.Redrive(["a"] * 26))
    store.refuses(InvalidTaskId, verbs.Redrive(["../etc"]))


def test_twice_answers_false_for_what_the_first_run_brought_back(store: Store) -> None:
    task_id = store.bury()
    assert store.run(verbs.Redrive([task_id, task_id])) == (True, False)
    with store.unchanged():
        assert store.run(verbs.Redrive([task_id])) == (False,)
    assert store.client.device(mac(1)).pending == 1


def test_a_task_whose_lane_is_gone_stays_a_dead_letter(store: Store) -> None:
    task_id = store.bury()
    ocr_only = [kind for kind in store.settings.task_types if kind.name == "ocr"]
    store.client.migrate(replace(store.settings, task_types=tuple(ocr_only)))
    store.refuses(UnknownLane, verbs.Redrive([task_id]))
