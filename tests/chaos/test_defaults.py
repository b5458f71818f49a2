"""Loss at the default settings, and who takes over: what others show scaled down, in seconds."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from fairlane import TaskType
from support.eventually import eventually
from support.ledger import Judge
from support.processes import COMMAND, Program
from support.store import mac
from support.system import TEXT, System, running
from support.tally import now_ms

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
    "R6", "kill -9 the dispatcher that leads, 3 times, at the default settings",
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
    "R5", "SIGSTOP the only worker, at the default settings", "it is shown lost ≤ 30 s"
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
