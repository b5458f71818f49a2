"""Tell why a task waits, and what is served before it."""

from __future__ import annotations

import pytest

from fairlane import verbs
from fairlane.errors import InvalidTaskId, TaskNotFound
from fairlane.verbs.explain import REASONS, Explanation
from support.store import ESTIMATE_MS, LANE, Store, mac
from verbs.conftest import Open


def told(store: Store, task_id: str) -> Explanation:
    found = store.run(verbs.Explain(task_id))
    assert found.reason in REASONS
    return found


def test_behind_its_own_devices_tasks_and_those_that_are_served_sooner(store: Store) -> None:
    store.offer(1)
    store.running(9)
    flood = store.enqueue(1, 6)
    light = store.enqueue(2, 1)
    last = told(store, flood[-1])
    assert (last.reason, last.place, last.ahead, last.slots) == ("behind", 5, 6, 1)
    # Seven slots' time, less what is half done.
    assert last.start_p50_ms == pytest.approx(6.5 * ESTIMATE_MS)
    assert (last.start_p90_ms or 0) > 6.5 * ESTIMATE_MS
    # It joins where the flood began: only one task of that goes before it.
    quiet = told(store, light[0])
    assert (quiet.place, quiet.rank, quiet.ahead) == (0, 1, 1)


def test_the_order_of_service_is_what_it_says(store: Store) -> None:
    """Whoever is told that n tasks go first is served as the (n + 1)th."""
    store.offer(1)
    store.run(verbs.Configure(mac(3), weight=2))
    tasks = [
        task for device, count in ((1, 9), (2, 3), (3, 6)) for task in store.enqueue(device, count)
    ]
    expected = {task: told(store, task).ahead for task in tasks}
    order = []
    for _ in tasks:
        (leased,) = store.claim()
        store.start(leased)
        store.clock.advance(ESTIMATE_MS)
        store.finish(leased)
        order.append(leased.task_id)
    for at, task in enumerate(order):
        assert abs(expected[task] - at) <= 2, (task, at, expected[task])


def test_every_reason(store: Store) -> None:
    (task,) = store.enqueue(1)
    assert told(store, task).reason == "no_worker"
    assert told(store, task).start_p50_ms is None
    store.offer(1)
    assert (told(store, task).reason, told(store, task).start_p50_ms) == ("next", 0)
    store.run(verbs.Configure(mac(1), paused=True))
    paused = told(store, task)
    assert (paused.reason, paused.start_p50_ms) == ("paused", None)
    assert f"fairlane configure {mac(1)} --resume" in paused.detail
    store.run(verbs.Configure(mac(1), paused=False))
    (leased,) = store.claim()
    assert (told(store, task).reason, told(store, task).start_p50_ms) == ("leased", 0)
    store.start(leased)
    assert told(store, task).reason == "running"
    outcome = store.run(verbs.Fail(task, leased.attempt, "boom"))
    waits = told(store, task)
    assert (waits.reason, waits.until_ms) == ("backoff", outcome.due_ms)
    assert waits.start_p50_ms is not None
    assert waits.start_p50_ms >= outcome.due_ms - store.clock.now_ms
    store.run(verbs.Cancel(task))
    assert (told(store, task).reason, told(store, task).detail) == ("ended", "it is cancelled")


def test_no_credits_in_the_lane(store: Store) -> None:
    store.offer(1)
    for _ in range(8):
        store.enqueue(1)
    while store.run(verbs.Claim(LANE)).leased:
        pass
    (task,) = store.enqueue(2)
    found = told(store, task)
    assert (found.reason, found.credits) == ("no_credits", 0)
    assert "slots are taken" in found.detail


def test_what_holds_its_device(store: Store) -> None:
    store.offer(4)
    store.run(verbs.Configure(mac(1), max_running=1))
    store.enqueue(1, 4)
    store.claim()
    last = store.enqueue(1)[0]
    held = told(store, last)
    assert (held.reason, held.place) == ("max_running", 3)
    assert held.start_p50_ms == pytest.approx(3.5 * ESTIMATE_MS)
    store.run(verbs.Configure(mac(2), rate_per_s=2))
    store.enqueue(2, 5)
    for _ in range(2):
        store.claim()
    slow = store.enqueue(2)[0]
    found = told(store, slow)
    assert (found.reason, found.until_ms > store.clock.now_ms) == ("rate", True)
    assert found.start_p50_ms is not None
    assert found.start_p50_ms >= 1_000


def test_a_turn_and_a_backoff_of_the_whole_device(store: Store) -> None:
    store.offer(4)
    (first, second) = store.enqueue(1, 2)
    turn = store.run(verbs.ClaimDevice(LANE))
    assert turn is not None
    assert (told(store, first).reason, told(store, first).until_ms) == ("turn", turn.deadline_ms)
    store.run(verbs.Release(turn.mac, turn.lane, turn.token))
    (leased,) = store.claim()
    due_ms = store.run(verbs.Defer(leased.task_id, 1, "", "device")).due_ms
    assert (told(store, second).reason, told(store, second).until_ms) == ("backoff", due_ms)


def test_sites_share_a_lane_before_their_devices_do(store: Store) -> None:
    store.offer(1)
    for device in range(1, 7):
        store.enqueue(device, 2, site="crowd")
    mine = store.enqueue(9, 3, site="mine")
    # Of two sites each gets every other task, however many devices the other one has.
    assert told(store, mine[2]).ahead in range(3, 6)


def test_under_aging_the_oldest_goes_first(open_store: Open) -> None:
    store = open_store(policy="aging")
    store.offer(1)
    first = store.enqueue(1, 3)
    store.clock.advance(10)
    store.enqueue(2, 3)
    store.clock.advance(10)
    last = store.enqueue(3, 1)
    assert told(store, first[0]).ahead == 0
    assert told(store, last[0]).ahead == 6


def test_task_not_found(store: Store) -> None:
    store.refuses(TaskNotFound, verbs.Explain("unknown"))
    store.refuses(InvalidTaskId, verbs.Explain("un known"))


def test_twice_reads_again(store: Store) -> None:
    store.offer(1)
    (task,) = store.enqueue(1)
    with store.unchanged():
        assert store.run(verbs.Explain(task)) == store.run(verbs.Explain(task))
