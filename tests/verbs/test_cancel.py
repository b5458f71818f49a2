"""Cancel a task that has not ended; one that runs only with `force`."""

from __future__ import annotations

import pytest

from fairlane import TaskState, verbs
from fairlane.errors import StaleAttempt, TaskEnded, TaskNotFound, TaskRunning
from support.store import LANE, Store, mac
from verbs.conftest import Open


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("order", ["fifo", "lifo"])
def test_a_pending_task_anywhere_in_its_queue(open_store: Open, place: int, order: str) -> None:
    store = open_store(order=order)
    tasks = []
    for _ in range(3):
        tasks += store.enqueue(1)
        store.clock.advance(1_000)
    assert store.client.cancel(tasks[place])
    assert store.state(tasks[place]) is TaskState.CANCELLED
    assert store.client.device(mac(1)).pending == 2
    del tasks[place]
    expected = tasks if order == "fifo" else tasks[::-1]
    assert [task.task_id for task in store.claim(5)] == expected


def test_the_last_task_takes_its_device_out_of_the_schedule(store: Store) -> None:
    (task_id,) = store.enqueue(1)
    store.client.cancel(task_id)
    assert store.client.devices() == ()
    assert store.claim() == ()


def test_a_leased_task_which_then_cannot_start(store: Store) -> None:
    store.enqueue(1)
    (leased,) = store.claim()
    assert store.client.cancel(leased.task_id)
    store.refuses(TaskEnded, verbs.Start(leased.task_id, 1, "worker", "run"), "is cancelled")


def test_a_delayed_task(store: Store) -> None:
    leased = store.running()
    store.clock.now_ms = store.run(verbs.Defer(leased.task_id, 1)).due_ms - 1
    assert store.client.cancel(leased.task_id)
    store.clock.advance(1)
    assert store.claim() == ()


def test_task_running_unless_force_and_then_its_result_is_refused(store: Store) -> None:
    leased = store.running()
    store.refuses(TaskRunning, verbs.Cancel(leased.task_id))
    assert store.client.cancel(leased.task_id, force=True)
    store.refuses(TaskEnded, verbs.Finish(leased.task_id, 1))
    heartbeat = verbs.Heartbeat("host:1:a", ["text"], 1, active=[(leased.task_id, 1)])
    assert store.run(heartbeat) == (f"{leased.task_id}.1",)


def test_task_not_found(store: Store) -> None:
    store.refuses(TaskNotFound, verbs.Cancel("unknown"))


@pytest.mark.parametrize("force", [False, True])
def test_task_ended(store: Store, force: bool) -> None:
    done = store.running()
    store.finish(done)
    dead = store.bury(2)
    (expired,) = store.enqueue(3, ttl_ms=1)
    store.clock.advance(2)
    store.run(verbs.Purge())
    for task_id in (done.task_id, dead, expired):
        store.refuses(TaskEnded, verbs.Cancel(task_id, force))


def test_cancelled_while_it_waits_for_its_first_start_costs_its_device_nothing(
    store: Store,
) -> None:
    store.enqueue(1, 3)
    store.enqueue(2, 3)
    (leased,) = store.claim()
    store.client.cancel(leased.task_id)
    assert store.served(2) == [mac(1), mac(2)]


def test_twice_answers_false_and_changes_nothing(store: Store) -> None:
    (task_id, _) = store.enqueue(1, 2)
    assert store.client.cancel(task_id)
    with store.unchanged():
        assert not store.client.cancel(task_id)
    store.clock.advance(1_000)
    with store.unchanged():
        assert not store.client.cancel(task_id, force=True)


def test_a_stale_attempt_cannot_bring_it_back(store: Store) -> None:
    leased = store.running()
    store.clock.advance(store.settings.lease_ms)
    store.run(verbs.Sweep())
    store.refuses(StaleAttempt, verbs.Finish(leased.task_id, 1))
    assert store.client.cancel(leased.task_id)
    assert store.claim() == ()


def test_a_device_that_a_cancel_finds_with_a_token_is_called_for(store: Store) -> None:
    """It waited for a token; the cancel lets it in before the next claim or sweep does."""
    _, second, _ = store.enqueue(1, 3)
    store.run(verbs.Configure(mac(1), rate_per_s=1))
    store.offer(4, LANE)
    assert len(store.claim(2)) == 1
    store.clock.advance(1_000)
    store.redis.delete(store.keys.name("DOORBELL"))
    assert store.run(verbs.Cancel(second))
    assert store.redis.llen(store.keys.name("DOORBELL")) == 1
