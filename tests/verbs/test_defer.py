"""Put a leased or running task back to wait, with backoff; past max_defers it is dead."""

from __future__ import annotations

from typing import Literal

import pytest

from fairlane import TaskState, formulas, verbs
from fairlane.errors import InvalidData, StaleAttempt, TaskEnded, TaskNotFound
from fairlane.model import Leased, Outcome
from support.store import Store, mac
from verbs.conftest import Open

Scope = Literal["task", "device"]
scopes = pytest.mark.parametrize("scope", ["task", "device"])


def defer(leased: Leased, scope: Scope = "task") -> verbs.Defer:
    return verbs.Defer(leased.task_id, leased.attempt, "no room", scope)


@scopes
def test_the_backoff_doubles_up_to_its_cap(open_store: Open, scope: Scope) -> None:
    store = open_store(max_defers=7, defer_jitter_percent=0)
    (task_id,) = store.enqueue(1, ttl_ms=24 * 3_600_000)
    waits = []
    for defers in range(1, 8):
        (leased,) = store.claim()
        outcome = store.run(defer(leased, scope))
        assert outcome.defers == defers
        waits.append(outcome.due_ms - store.clock.now_ms)
        store.clock.now_ms = outcome.due_ms - 1
        assert store.claim() == ()
        store.clock.advance(1)
    assert waits == [30_000, 60_000, 120_000, 240_000, 480_000, 600_000, 600_000]
    assert waits == [formulas.backoff_ms(n) for n in range(1, 8)]
    assert store.client.task(task_id).failures == 0


@scopes
def test_dead_after_five_defers_with_its_whole_payload(store: Store, scope: Scope) -> None:
    (task_id,) = store.enqueue(1)
    for _ in range(5):
        (leased,) = store.claim()
        store.clock.now_ms = store.run(defer(leased, scope)).due_ms
    (leased,) = store.claim()
    assert store.run(defer(leased, scope)) == Outcome(TaskState.DEAD, 0, 6)
    (letter,) = store.run(verbs.DeadLetters())
    assert (letter.task_id, letter.payload, letter.defers) == (task_id, b'{"n":0}', 6)
    assert (letter.cause, letter.error) == ("defer_limit", "no room")


def test_scope_task_lets_the_devices_other_tasks_go_on(store: Store) -> None:
    first, second = store.enqueue(1, 2)
    (leased,) = store.claim()
    outcome = store.run(defer(leased))
    assert outcome.state is TaskState.DELAYED
    assert [task.task_id for task in store.claim()] == [second]
    record = store.client.task(first)
    assert (record.due_at_ms, record.error) == (outcome.due_ms, "no room")


def test_scope_device_makes_the_whole_device_wait(store: Store) -> None:
    first, second = store.enqueue(1, 2)
    store.enqueue(2)
    (leased,) = store.claim()
    outcome = store.run(defer(leased, "device"))
    assert outcome.state is TaskState.PENDING
    assert [task.mac for task in store.claim(5)] == [mac(2)]
    lane = next(lane for lane in store.client.device(mac(1)).lanes if lane.queued)
    assert (lane.held_by, lane.until_ms, lane.rank) == ("backoff", outcome.due_ms, -1)
    store.enqueue(1)
    assert store.claim(5) == (), "a new task does not end a backoff"
    store.clock.now_ms = outcome.due_ms
    assert [task.task_id for task in store.claim(2)] == [second, first]


def test_two_lanes_of_a_device_back_off_apart(store: Store) -> None:
    store.enqueue(1, task_type="ocr")
    store.enqueue(1, task_type="text")
    (leased,) = store.claim(lane="ocr")
    store.run(defer(leased, "device"))
    assert store.claim(lane="ocr") == ()
    assert len(store.claim(lane="text")) == 1


def test_a_deferred_task_expires_at_its_first_ttl(store: Store) -> None:
    leased = store.running(ttl_ms=40_000)
    store.run(defer(leased))
    store.clock.advance(40_001)
    assert store.run(verbs.Purge()) == (leased.task_id,)


def test_task_not_found(store: Store) -> None:
    store.refuses(TaskNotFound, verbs.Defer("unknown", 1))


def test_task_ended(store: Store) -> None:
    leased = store.running()
    store.finish(leased)
    store.refuses(TaskEnded, defer(leased), "is done")


def test_stale_attempt(store: Store) -> None:
    leased = store.running()
    store.refuses(StaleAttempt, verbs.Defer(leased.task_id, 2))
    store.clock.advance(store.settings.lease_ms)
    store.run(verbs.Sweep())
    store.refuses(StaleAttempt, defer(leased), "is pending")


def test_another_scope(store: Store) -> None:
    leased = store.running()
    store.refuses(InvalidData, verbs.Defer(leased.task_id, 1, "", "lane"))  # type: ignore[arg-type]


@scopes
def test_twice_answers_the_state_of_the_first_run(store: Store, scope: Scope) -> None:
    leased = store.running()
    first = store.run(defer(leased, scope))
    store.clock.advance(1_000)
    with store.unchanged():
        assert store.run(defer(leased, scope)) == first
