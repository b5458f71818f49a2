"""Waits that are too long to sit through, on a virtual clock and the real functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from fairlane import verbs
from fairlane.model import TaskState
from support.ledger import Judge
from support.servers import Server
from support.store import LANE, Store

MINUTE_MS = 60_000


@pytest.fixture
def store() -> Iterator[Store]:
    server = Server.start("valkey9")
    store = Store(server.url)
    yield store
    store.close()
    server.stop()


@pytest.mark.smoke
@pytest.mark.fault(
    "V1", "all workers of a lane are gone for 20 minutes (virtual clock), then one is back",
    "every task waits untouched and is done then; none is dead, deferred or expired",
)  # fmt: skip
def test_all_workers_of_a_lane_are_gone_for_twenty_minutes(store: Store, judge: Judge) -> None:
    """I14: no capacity alone never kills a task."""
    store.offer(2)
    ids = [task_id for device in range(1, 11) for task_id in store.enqueue(device, 5)]
    running = store.claim(2)
    for leased in running:
        store.start(leased)
    store.clock.advance(store.settings.lease_ms)
    store.run(verbs.Sweep())
    for _ in range(20 * 4):
        store.clock.advance(MINUTE_MS // 4)
        store.run(verbs.Sweep())
        store.run(verbs.Purge())
        assert not store.claim(0), "nobody can take anything"
    assert Counter(map(store.state, ids)) == {TaskState.PENDING: 50}
    records = [store.client.task(task_id) for task_id in ids]
    assert sorted(record.failures for record in records)[-3:] == [0, 1, 1]
    assert {record.defers for record in records} == {0}
    back_ms = store.clock.now_ms
    store.offer(50, worker_id="host:2:b")
    woken = store.claim(0)
    assert len(woken) == 50, "the first heartbeat with slots wakes all that can go"
    for each in woken:
        store.start(each)
        store.finish(each)
    assert Counter(map(store.state, ids)) == {TaskState.DONE: 50}
    judge.note("accepted = done", "50")
    judge.note("from the first heartbeat to the starts", f"{store.clock.now_ms - back_ms} ms")


@pytest.mark.fault(
    "V2", "500 devices defer in one second (virtual clock)", "they come back spread over 3 s"
)
def test_five_hundred_devices_defer_at_once(store: Store, judge: Judge) -> None:
    """A30: a backoff is spread by up to a tenth."""
    run, due = store.client.run, []
    for device in range(1, 501):
        store.enqueue(device)
    for leased in run(verbs.Claim(LANE, 500)).leased:
        run(verbs.Start(leased.task_id, leased.attempt, "worker", "run"))
        due.append(run(verbs.Defer(leased.task_id, leased.attempt, "busy", "device")).due_ms)
    store.check()
    assert len(due) == 500
    base_ms = store.settings.defer_backoff_base_ms
    spread = Counter((due_ms - store.clock.now_ms - base_ms) // 300 for due_ms in due)
    assert set(spread) == set(range(10)), "every tenth of the spread has some"
    assert max(spread.values()) < 100, spread
    judge.note("at most in any 0.3 s", f"{max(spread.values())} of 500")


@pytest.mark.fault(
    "V3", "an endless flood of one device, two tasks for each that runs (virtual clock)",
    "the oldest task still comes first (fifo)",
)  # fmt: skip
def test_the_oldest_task_comes_first_in_an_endless_flood(store: Store, judge: Judge) -> None:
    """A31."""
    sent, started = store.enqueue(1), []
    for _ in range(50):
        sent += store.enqueue(1, 2)
        store.clock.advance(1_000)
        (leased,) = store.claim(1)
        store.start(leased)
        store.finish(leased)
        started.append(leased.task_id)
    assert started == sent[:50]
    judge.note("started, oldest first", "50 of 101")
