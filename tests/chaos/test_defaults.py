"""Recovery at the default settings: what the others show scaled down, in real seconds."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from fairlane import TaskType
from fairlane.model import TaskState
from fairlane.verbs import Deregister, Heartbeat
from support.eventually import eventually
from support.ledger import Judge
from support.processes import COMMAND, Program
from support.store import mac
from support.system import TEXT, System, running
from support.tally import History, now_ms

#: A worker's TTL and a sweep, and what a machine takes that is busy with other things.
LOST_WORKER_S = 45.0
LOST_LEADER_S = 30.0
PATIENCE_S = 90.0

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def system() -> Iterator[System]:
    """Give a system whose settings are the defaults; its one lane is that of the tests' handler."""
    with running(task_types=(TaskType("text", "text", TEXT),)) as system:
        yield system


def dispatcher(system: System, name: str) -> Program:
    return system.start(name, *COMMAND, "-v", "dispatcher")


@pytest.mark.fault(
    "R1", "kill -9 a worker's main process, 3 times, at the default settings",
    "its tasks start elsewhere ≤ 45 s",
)  # fmt: skip
def test_a_worker_is_killed(judge: Judge, system: System) -> None:
    """A03: within the worker's TTL and one sweep, never 100 s."""
    dispatcher(system, "dispatcher")
    last, slowest_s = system.worker("worker-0", TEXT), 0.0
    for at in range(3):
        with system.gated([mac(1), mac(2)]) as ids:
            killed, last = last, system.worker(f"worker-{at + 1}", TEXT)
            killed_ms = now_ms(system)
            killed.kill()
            system.explained(lambda: all(len(system.starts(i)) == 2 for i in ids), PATIENCE_S)
        records = system.ended(ids)
        assert [(r.state, r.attempt) for r in records] == [(TaskState.DONE, 2)] * 2
        slowest_s = max(slowest_s, History.of(system).restarted_s(ids, killed_ms))
    assert slowest_s < LOST_WORKER_S
    judge.judge(system, recovery_s=slowest_s)


@pytest.mark.fault(
    "R2", "kill -9 the dispatcher that leads, 3 times, at the default settings",
    "another one serves its devices ≤ 30 s",
)  # fmt: skip
def test_the_leader_is_killed(judge: Judge, system: System) -> None:
    system.worker("worker", TEXT)
    programs = [dispatcher(system, f"dispatcher-{at}") for at in range(4)]
    slowest_s = 0.0
    for at in range(3):
        eventually(lambda: system.redis.get(system.client.keys.name("LEADER")), 30.0)
        holder = system.redis.get(system.client.keys.name("LEADER"))
        leader = next(each for each in programs if each.pid == int(holder.split(":")[1]))
        programs.remove(leader)
        killed_ms = now_ms(system)
        leader.kill()
        (record,) = system.ended([system.do(mac(at))], PATIENCE_S)
        slowest_s = max(slowest_s, (record.started_at_ms - killed_ms) / 1000)
    assert slowest_s < LOST_LEADER_S
    judge.judge(system, recovery_s=slowest_s)


@pytest.mark.fault(
    "R3", "a published message vanishes from the broker, at the default settings",
    "it is published again ≤ 45 s",
)  # fmt: skip
def test_a_message_vanishes(judge: Judge, system: System) -> None:
    dispatcher(system, "dispatcher")
    # A worker that is only a row: somebody has slots, and nobody takes the message.
    system.client.run(Heartbeat("nobody:1:a", ["text"], 1))
    task_id = system.do(mac(1))
    eventually(lambda: system.broker.delete(TEXT), 30.0)
    gone_ms = now_ms(system)
    system.client.run(Deregister("nobody:1:a"))
    system.worker("worker", TEXT)
    (record,) = system.ended([task_id], PATIENCE_S)
    assert (record.state, record.attempt, record.failures) == (TaskState.DONE, 2, 0)
    recovery_s = (record.started_at_ms - gone_ms) / 1000
    assert recovery_s < LOST_WORKER_S
    judge.judge(system, recovery_s=recovery_s)


@pytest.mark.fault(
    "R4", "SIGSTOP the only worker, at the default settings", "it is shown lost ≤ 30 s"
)
def test_a_worker_stands_still(judge: Judge, system: System) -> None:
    """A49: its row ends with its TTL, and its slots with the next sweep."""
    dispatcher(system, "dispatcher")
    worker = system.worker("worker", TEXT)
    stopped_ms = now_ms(system)
    worker.send(signal.SIGSTOP)
    try:
        eventually(lambda: not system.workers(), PATIENCE_S)
        lost_s = (now_ms(system) - stopped_ms) / 1000
        eventually(lambda: system.lane().slots == 0, PATIENCE_S)
    finally:
        worker.send(signal.SIGCONT)
    assert lost_s < 31.0
    judge.judge(system, recovery_s=lost_s)
