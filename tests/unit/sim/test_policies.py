"""The plain queues: their order, their leases, and no more at once than there are slots."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.settings import Settings
from fairlane.sim.policies import QUEUES, PlainQueues
from fairlane.sim.workload import mac_of
from fairlane.verbs import Claim, Enqueue, Finish, Heartbeat, Start, Sweep, Verb

A, B, C = mac_of(1), mac_of(2), mac_of(3)
LEASE_MS = Settings().lease_ms


def queues(policy: str, *tasks: str) -> PlainQueues:
    """Return queues that hold tasks named by device, as `a1 a2 b1`, and a worker of two slots."""
    made = PlainQueues(QUEUES[policy], Settings())
    macs = {"a": A, "b": B, "c": C}
    made.run([(0, Heartbeat("w", ["text"], 2))])
    made.run([(0, tuple(Enqueue(macs[t[0]], "text", {}, task_id=t) for t in tasks))])
    return made


def run(made: PlainQueues, verb: Verb[Any], at_ms: int = 0) -> Any:
    return made.run([(at_ms, verb)])[0]


def served(made: PlainQueues, turns: int) -> list[str]:
    """Take one task after the other, as two slots become free."""
    order: list[str] = []
    running: list[str] = []
    for _ in range(turns):
        running += [leased.task_id for leased in run(made, Claim("text")).leased]
        order.append(running.pop(0))
        assert run(made, Finish(order[-1], 1))
    return order


@pytest.mark.parametrize(
    ("policy", "order"),
    [("fifo", ["a1", "a2", "a3", "b1", "b2", "c1"]), ("rr", ["a1", "b1", "c1", "a2", "b2", "a3"])],
)
def test_order(policy: str, order: list[str]) -> None:
    assert served(queues(policy, "a1", "a2", "a3", "b1", "b2", "c1"), 6) == order


@pytest.mark.parametrize("policy", list(QUEUES))
def test_a_claim_fills_the_slots_and_no_more(policy: str) -> None:
    made = queues(policy, "a1", "a2", "a3")
    assert len(run(made, Claim("text")).leased) == 2
    assert run(made, Claim("text")).leased == ()
    assert run(made, Claim("ocr")).leased == ()


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("fifo", [("a2", 2), ("b1", 1)]), ("rr", [("a2", 1), ("b1", 2)])],
)
def test_a_lost_task_comes_back_to_the_head_of_its_queue(
    policy: str, expected: list[tuple[str, int]]
) -> None:
    made = queues(policy, "a1", "a2", "b1")
    first, other = run(made, Claim("text")).leased
    assert run(made, Sweep(), LEASE_MS - 1).lost == ()
    run(made, Start(first.task_id, 1, "w", "run"), LEASE_MS - 1)
    run(made, Heartbeat("w", ["text"], 2, active=[(first.task_id, 1)]), LEASE_MS - 1)
    assert run(made, Sweep(), LEASE_MS).lost == (f"{other.task_id}.1",)
    assert run(made, Finish(first.task_id, 1), LEASE_MS)
    again = run(made, Claim("text"), LEASE_MS).leased
    assert [(task.task_id, task.attempt) for task in again] == expected


def test_a_silent_worker_offers_nothing() -> None:
    made = queues("fifo", "a1")
    run(made, Sweep(), LEASE_MS)
    assert run(made, Claim("text"), LEASE_MS).leased == ()
    assert run(made, Finish("a1", 1)) is False
