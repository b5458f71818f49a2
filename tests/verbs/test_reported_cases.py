"""What users of such systems report, each a small input and the right outcome."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from fairlane import TaskState, verbs
from fairlane.errors import (
    FairlaneError,
    InvalidData,
    StaleAttempt,
    TaskEnded,
    TaskNotFound,
    TaskRunning,
    TurnLost,
)
from fairlane.payload import decode
from fairlane.services.janitor import Janitor
from support.eventually import eventually
from support.store import LANE, START_MS, Store, mac, receipt_of
from verbs.conftest import Open


def test_a_redriven_task_starts_anew(store: Store) -> None:
    """A10: attempts and defers start anew, and the payload is intact."""
    data = {"id": 130775545883395173, "a": [], "f": 1.0, "text": "中文 \u0000"}
    task_id = store.client.enqueue(mac(1), LANE, data).task_id
    for _ in range(2):
        (leased,) = store.claim()
        store.clock.now_ms = store.run(verbs.Defer(task_id, leased.attempt)).due_ms
    for _ in range(store.settings.max_attempts):
        (leased,) = store.claim()
        store.start(leased)
        outcome = store.run(verbs.Fail(task_id, leased.attempt, "boom"))
        store.clock.now_ms = max(store.clock.now_ms, outcome.due_ms)
    dead = store.client.task(task_id)
    assert (dead.state, dead.failures, dead.defers) == (TaskState.DEAD, 3, 2)
    assert store.run(verbs.Redrive([task_id])) == (True,)
    anew = store.client.task(task_id)
    assert (anew.state, anew.failures, anew.defers) == (TaskState.PENDING, 0, 0)
    assert decode(anew.payload) == data
    (leased,) = store.claim()
    assert store.start(leased).task.data == data
    store.finish(leased)
    assert store.state(task_id) is TaskState.DONE


def test_whoever_lost_its_turn_can_neither_renew_nor_release_it(store: Store) -> None:
    """A28: a lease expires, B takes over, A renews and releases: both refused, B intact."""
    store.enqueue(1, 3)
    first = store.run(verbs.ClaimDevice(LANE))
    assert first is not None
    store.clock.now_ms = first.deadline_ms
    store.run(verbs.Sweep())
    second = store.run(verbs.ClaimDevice(LANE))
    assert second is not None
    assert second.mac == first.mac
    stale: tuple[verbs.Verb[Any], ...] = (
        verbs.Renew(first.mac, LANE, first.token),
        verbs.Pop(first.mac, LANE, first.token),
        verbs.Release(first.mac, LANE, first.token),
    )
    for verb in stale:
        store.refuses(TurnLost, verb)
    assert store.run(verbs.Renew(second.mac, LANE, second.token)).batch > 0
    assert len(store.run(verbs.Pop(second.mac, LANE, second.token)).leased) == 1
    assert store.run(verbs.Release(second.mac, LANE, second.token)).remaining == 2


def test_whoever_lost_its_lease_cannot_end_the_task(store: Store) -> None:
    """A28: the same for a task: A's lease expires, B runs it, A's end is refused."""
    first = store.running()
    store.clock.advance(store.settings.lease_ms)
    store.run(verbs.Sweep())
    (second,) = store.claim()
    store.start(second, "another run")
    for verb in (
        verbs.Finish(first.task_id, first.attempt, {"by": "A"}),
        verbs.Fail(first.task_id, first.attempt, "boom"),
        verbs.Defer(first.task_id, first.attempt),
    ):
        store.refuses(StaleAttempt, verb)
    store.offer(1, active=[(first.task_id, first.attempt)])
    assert store.finish(second, {"by": "B"})
    assert decode(store.client.task(first.task_id).result) == {"by": "B"}


@pytest.mark.parametrize(
    "created_at",
    ["2020-01-01T00:00:00", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00+08:00", 0, 253402300799],
)
def test_a_sender_has_no_say_in_a_tasks_age(store: Store, created_at: object) -> None:
    """A33: `created_at` in the data stays there; as an argument there is none."""
    data = {"created_at": created_at, "state": "done", "expires_at": 1}
    receipt = store.client.enqueue(mac(1), LANE, data)
    record = store.client.task(receipt.task_id)
    assert (record.created_at_ms, record.state) == (START_MS, TaskState.PENDING)
    assert record.expires_at_ms == START_MS + store.settings.task_ttl_ms
    assert decode(record.payload) == data
    assert store.client.device(mac(1)).oldest_ms == START_MS
    item = {"mac": mac(1), "task_type": LANE, "data": {}, "created_at": created_at}
    with store.unchanged(), pytest.raises(InvalidData):
        store.client.enqueue_many([item])
    with pytest.raises(TypeError):
        verbs.Enqueue(mac(1), LANE, {}, created_at=created_at)  # type: ignore[call-arg]


def test_a_cancelled_task_never_runs(store: Store) -> None:
    """A34: counters - 1 once; cancel twice, same answer; unknown: not found; running: refused."""
    task_id, other = store.enqueue(1, 2)
    assert store.client.cancel(task_id)
    assert store.client.device(mac(1)).pending == 1
    with store.unchanged():
        assert not store.client.cancel(task_id)
    store.refuses(TaskNotFound, verbs.Cancel("unknown"))
    (leased,) = store.claim(5)
    assert leased.task_id == other
    store.refuses(TaskEnded, verbs.Start(task_id, 1, "worker", "run"))
    store.start(leased)
    store.refuses(TaskRunning, verbs.Cancel(other))
    assert store.client.cancel(other, force=True)
    store.refuses(TaskEnded, verbs.Finish(other, leased.attempt))
    assert store.run(verbs.InspectTotals()).counts["cancelled"] == 2


def test_a_task_that_nobody_ran_in_time_is_expired(store: Store) -> None:
    """A35: TTL 2 s and no workers: state `expired`, counted, never "not found"."""
    task_id = store.client.enqueue(mac(1), LANE, {}, ttl_ms=2_000).task_id
    janitor = Janitor(store.client)
    store.clock.advance(2_001)
    janitor.step()
    store.check()
    assert store.state(task_id) is TaskState.EXPIRED
    assert store.run(verbs.InspectTotals()).counts["expired"] == 1
    assert store.client.devices() == ()
    assert store.claim() == ()


DEVICES = 10_000


@pytest.mark.timeout(400)
def test_ten_thousand_devices_leave_nothing_behind(open_store: Open) -> None:
    """A42: 10,000 one-task devices: after they are done the number of keys is what it was."""
    store = open_store(max_total_pending=3 * DEVICES, result_ttl_ms=1, idempotency_ttl_ms=60_000)
    run_many = store.client.run_many

    def serve() -> int:
        leased = store.client.run(verbs.Claim(LANE, 1_000)).leased
        ids = [(task.task_id, task.attempt) for task in leased]
        ends = run_many([verbs.Start(*which, "worker", "run") for which in ids])
        ends += run_many([verbs.Finish(*which) for which in ids])
        assert not [end for end in ends if isinstance(end, FairlaneError)]
        return len(leased)

    def names() -> set[str]:
        return set(store.redis.keys("*"))

    store.enqueue(0)
    assert serve() == 1
    Janitor(store.client).step()  # the history and the watermark are of the system
    eventually(lambda: not [name for name in names() if ":task:" in name])
    before = names()
    for first in range(0, DEVICES, 1_000):
        items: list[dict[str, Any]] = [
            {"mac": mac(at), "task_type": LANE, "data": {}, "site": "lab" if at % 2 else None}
            for at in range(first, first + 1_000)
        ]
        items[0]["idempotency_key"] = str(first)
        assert all(not receipt_of(each).known for each in store.client.enqueue_many(items))
    assert len(names()) > 3 * DEVICES
    served = 0
    for _ in range(2 * DEVICES):
        took = serve()
        served += took
        if not took:
            break
    assert served == DEVICES
    store.clock.advance(60_000)
    Janitor(store.client).step()
    eventually(lambda: names() <= before, 60.0)
    store.check()


def test_two_workers_of_one_hostname_and_pid_are_two(store: Store) -> None:
    """A46: two rows; the dead one's task is recovered, the living one's is left alone."""
    one, other = store.running(1), store.running(2)
    living = [(other.task_id, other.attempt)]
    store.offer(1, worker_id="host:7:dead", active=[(one.task_id, one.attempt)])
    store.offer(1, worker_id="host:7:living", active=living)
    rows = {row.worker_id for row in store.run(verbs.InspectWorkers())}
    assert rows == {"host:7:dead", "host:7:living"}
    store.clock.advance(store.settings.lease_ms - 1)
    store.offer(1, worker_id="host:7:living", active=living)
    store.clock.advance(1)
    swept = store.run(verbs.Sweep())
    assert swept.lost == (f"{one.task_id}.1",)
    assert swept.workers == ("host:7:dead",)
    (row,) = store.run(verbs.InspectWorkers())
    assert row.worker_id == "host:7:living"
    assert [task.task_id for task in store.claim()] == [one.task_id]
    assert store.finish(other)


def test_an_id_that_nobody_gave_is_a_uuid_of_version_7(store: Store) -> None:
    sent = [store.client.enqueue(mac(1), LANE, {}).task_id]
    sent += [receipt_of(each).task_id for each in store.client.enqueue_many([(mac(1), LANE, {})])]
    assert [uuid.UUID(each).version for each in sent] == [7, 7]
    assert store.client.enqueue(mac(1), LANE, {}, task_id="mine").task_id == "mine"
