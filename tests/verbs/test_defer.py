"""Put a leased or running task back to wait, with backoff; past max_defers it is dead."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import pytest

from fairlane import TaskState, formulas, verbs
from fairlane.errors import InvalidData, StaleAttempt, TaskEnded, TaskNotFound
from fairlane.model import Leased, Outcome
from support.store import LANE, Store, mac
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


@pytest.mark.parametrize("percent", [10, 50])
@scopes
def test_500_devices_that_defer_at_once_come_back_spread(
    open_store: Open, scope: Scope, percent: int
) -> None:
    store = open_store(defer_jitter_percent=percent)
    for device in range(500):
        store.client.enqueue(mac(device), LANE, {}, task_id=f"t{device}")
    leased = store.claim(500)
    outcomes = store.client.run_many([defer(task, scope) for task in leased])
    waits = sorted(outcome.due_ms - store.clock.now_ms for outcome in outcomes)
    most = 300 * percent
    assert waits[0] >= 30_000, "never before its due time"
    assert waits[-1] <= 30_000 + most
    tenths = Counter((wait - 30_000) * 10 // (most + 1) for wait in waits)
    assert set(tenths) == set(range(10))
    assert max(tenths.values()) < 100, "a fifth of them at most in any tenth of the time"
    assert len(set(waits)) > 300


def test_the_spread_of_a_task_is_the_same_each_time(open_store: Open) -> None:
    store = open_store()
    dues = []
    for _ in range(2):
        store.redis.flushall()
        store.redis.set(store.keys.clock, "virtual")
        store.client.enqueue(mac(1), LANE, {}, task_id="one")
        store.client.enqueue(mac(1), LANE, {}, task_id="two")
        dues.append([store.run(defer(task)).due_ms for task in store.claim(2)])
    assert dues[0] == dues[1]
    assert dues[0][0] != dues[0][1]


@scopes
def test_no_spread_is_exact(open_store: Open, scope: Scope) -> None:
    store = open_store(defer_jitter_percent=0)
    for device in range(50):
        store.enqueue(device)
    outcomes = [store.client.run(defer(task, scope)) for task in store.claim(50)]
    assert {outcome.due_ms - store.clock.now_ms for outcome in outcomes} == {30_000}


def test_a_failed_attempt_is_spread_too(store: Store) -> None:
    for device in range(20):
        store.enqueue(device)
    waits = set()
    for leased in store.claim(20):
        store.start(leased)
        outcome = store.run(verbs.Fail(leased.task_id, 1, "error"))
        waits.add(outcome.due_ms - store.clock.now_ms)
    assert 5_000 <= min(waits) < max(waits) <= 5_500
    assert len(waits) > 10


@scopes
def test_a_deferral_is_told_and_counted_with_its_reason(store: Store, scope: Scope) -> None:
    leased = store.running()
    store.run(defer(leased, scope))
    assert store.client.task(leased.task_id).error == "no room"
    told = store.client.events()[-1]
    assert told.event == ("delayed" if scope == "task" else "deferred")
    assert (told.mac, told.lane, told.tasks) == (mac(1), LANE, (leased.task_id,))
    assert store.redis.hget(store.keys.name("TOTALS"), f"deferred:{LANE}") == "1"
