"""The engine: what happens when, over plain queues whose order is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from fairlane.sim.record import NEVER, Record
from fairlane.sim.simulation import simulate
from fairlane.sim.workload import Arrival, InvalidWorkload, Outage, Returning, Workload, mac_of
from fairlane.sim.workloads import workload

A, B, C = mac_of(1), mac_of(2), mac_of(3)


def traffic(tasks: Sequence[tuple[int, str, int]], slots: int = 1) -> Workload:
    """Return a workload of tasks given as (at, mac, service)."""
    arrivals = [Arrival(at_ms, mac, "text", service_ms) for at_ms, mac, service_ms in tasks]
    return Workload("traffic", arrivals, {"text": slots}, {})


def times(record: Record) -> list[tuple[int, int]]:
    return list(zip(record.started_ms, record.ended_ms, strict=True))


def test_tasks_start_when_a_slot_is_free_and_end_after_their_time() -> None:
    record = simulate(traffic([(0, A, 10), (0, B, 30), (5, A, 10), (70, C, 5)], slots=2), "fifo")
    assert times(record) == [(0, 10), (0, 30), (10, 20), (70, 75)]
    assert record.end_ms == 75
    assert record.time_ms() == {A: 20, B: 30, C: 5}
    assert record.time_ms(5, 25) == {A: 15, B: 20, C: 0}
    assert record.waits_ms(A) == [0, 5]
    assert record.waits_ms() == [0, 0, 5, 0]


def test_lanes_do_not_share_slots() -> None:
    tasks = [Arrival(0, A, "ocr", 100), Arrival(0, A, "text", 10), Arrival(0, B, "text", 10)]
    record = simulate(Workload("two", tasks, {"ocr": 1, "text": 1}, {}), "fifo")
    assert times(record) == [(0, 100), (0, 10), (10, 20)]


def test_a_returning_device_sends_when_its_last_task_is_done() -> None:
    returning = [Returning(A, "text", 10, first_ms=5, think_ms=3, until_ms=40)]
    record = simulate(replace(traffic([(0, B, 7)]), returning=returning), "fifo")
    assert [*zip(record.arrived_ms, record.started_ms, strict=True)] == [
        (0, 0), (5, 7), (20, 20), (33, 33),
    ]  # fmt: skip


def test_it_stops_at_the_time_it_was_given() -> None:
    record = simulate(replace(traffic([(0, A, 10)] * 5), until_ms=25), "fifo")
    assert times(record) == [(0, 10), (10, 20), (20, NEVER), (NEVER, NEVER), (NEVER, NEVER)]
    assert (record.done, record.end_ms, record.time_ms()) == (2, 25, {A: 25})


def test_after_an_outage_everything_is_done_in_order() -> None:
    minute = 60_000
    tasks = [(at * 1_000, mac_of(1 + at % 3), 1_500) for at in range(600)]
    outage = Outage("text", 2 * minute + 250, 22 * minute)
    record = simulate(replace(traffic(tasks, slots=2), outages=[outage]), "fifo")
    assert (record.lost, record.done, record.dead) == (2, 600, 0)
    lost = [task for task in range(600) if record.ended_ms[task] - record.started_ms[task] > 1_500]
    assert len(lost) == 2
    assert all(record.ended_ms[task] >= 22 * minute for task in lost)
    others = [record.started_ms[task] for task in range(600) if task not in lost]
    assert others == sorted(others)
    assert not [at for at in others if 2 * minute + 250 <= at < 22 * minute]


@pytest.mark.parametrize("policy", ["fifo", "rr"])
def test_how_much_goes_in_one_round_trip_changes_nothing(policy: str) -> None:
    made = workload("flood", devices=40, tasks=400, slots=3)
    whole = simulate(made, policy)
    # A task of a millisecond makes every window a millisecond long; it comes when all is over.
    late = Arrival(10**6, mac_of(1), "text", 1)
    narrow = simulate(replace(made, arrivals=[*made.arrivals, late]), policy)
    assert times(narrow)[:-1] == times(whole)


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    simulate(traffic([(0, A, 10)] * 5), "fifo", lambda done, of: told.append((done, of)))
    assert told[-1] == (5, 5)
    assert told == sorted(told)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: traffic([(1, A, 1), (0, A, 1)]), "not in order of time"),
        (lambda: traffic([]), "has no task"),
        (lambda: Workload("w", [Arrival(0, A, "ocr", 1)], {"text": 1}, {}), "ocr has no slots"),
        (lambda: workload("floods"), "'floods' is unknown; `fairlane simulate --list` has all"),
        (lambda: workload("flood", devices=1), "fairness is between two at least"),
        (lambda: workload("flood", devices=10, tasks=5), "5 are too few for 10 devices; send 20"),
        (lambda: workload("flood", load=0.5), "load: flood is no trace; leave --load out"),
        (lambda: workload("nasa-ipsc-1993", tasks=5), "is a trace, whose size is given"),
        (lambda: simulate(traffic([(0, A, 1)]), "lottery"), "use fair, aging, fifo, rr"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_told(made: object, said: str) -> None:
    assert callable(made)
    with pytest.raises(InvalidWorkload, match=said):
        made()
