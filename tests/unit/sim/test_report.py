"""What a run comes to, from records small enough to be worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from fairlane.sim.record import Record
from fairlane.sim.report import PARTS, Report, jain, measure, percentile
from fairlane.sim.workload import Arrival, Workload, mac_of
from fairlane.verbs import Configure

A, B, C = mac_of(1), mac_of(2), mac_of(3)
GROUPS = {A: "one", B: "two"}


def reported(
    tasks: Sequence[tuple[str, int, int, int]], end_ms: int, weights: dict[str, float] | None = None
) -> Report:
    """Return the report of tasks given as (mac, arrived, started, ended)."""
    record = Record(["text"])
    for mac, arrived_ms, started_ms, ended_ms in tasks:
        task = record.arrive(Arrival(arrived_ms, mac, "text", max(1, ended_ms - started_ms)))
        if started_ms >= 0:
            record.start(task, started_ms)
            record.end(task, started_ms, ended_ms)
    record.end_ms = end_ms
    changes = [(0, Configure(mac, weight=weight)) for mac, weight in (weights or {}).items()]
    arrivals = [Arrival(0, A, "text", 1)]
    return measure(Workload("w", arrivals, {"text": 2}, GROUPS, changes=changes), "fair", record)


def test_waits_shares_and_counts_are_told_by_group() -> None:
    report = reported([(A, 0, 0, 600), (A, 0, 600, 900), (B, 100, 400, 700), (C, 5, -1, 0)], 1_200)
    one, two, others = report.groups
    assert (one.group, one.devices, one.tasks, one.done) == ("one", 1, 2, 2)
    assert (one.wait_p50_ms, one.wait_p99_ms, one.wait_max_ms) == (0, 600, 600)
    assert (one.share, two.share, others.share) == (0.75, 0.25, 0.0)
    assert (two.wait_p50_ms, others.group, others.wait_max_ms) == (300, "others", None)
    assert (report.tasks, report.done, report.unfinished) == (4, 3, 1)
    assert report.utilisation == 0.5
    assert report.seconds == 1.2


def test_the_queue_is_what_has_come_and_not_begun() -> None:
    report = reported([(A, 0, 0, 100), (A, 0, 100, 200), (B, 0, 300, 400), (B, 500, 500, 600)], 600)
    assert report.queue_max == 2
    assert report.queue_over_time == (2,) * 10 + (2,) + (1,) * 19 + (1,) + (0,) * 29


def test_shares_over_time_are_cut_at_the_parts() -> None:
    report = reported([(A, 0, 0, 450), (B, 0, 450, 600)], 600)
    assert report.part_ms == 10
    assert report.share_over_time == {
        "one": (1.0,) * 45 + (0.0,) * 15, "two": (0.0,) * 45 + (1.0,) * 15,
    }  # fmt: skip


def test_fairness_is_among_devices_that_are_backlogged_and_by_weight() -> None:
    step = 6_000 // PARTS
    # Both are backlogged throughout; A gets three of four steps.
    tasks = [(mac, 0, at * step, (at + 1) * step)
             for at in range(PARTS) for mac in ([B] if at % 4 == 3 else [A])]  # fmt: skip
    backlog = [(A, 0, -1, 0), (B, 0, -1, 0)]
    assert reported(tasks + backlog, 6_000).jain == pytest.approx(16 / 20)
    assert reported(tasks + backlog, 6_000, {A: 3.0}).jain == 1.0
    # Without a backlog, nobody was denied anything.
    assert reported(tasks, 6_000).jain is not None
    assert reported(tasks[:1], 6_000).jain is None


def test_jains_index() -> None:
    assert jain([5.0, 5.0, 5.0]) == 1.0
    assert jain([1.0, 0.0, 0.0, 0.0]) == 0.25
    assert jain([1.0]) is None
    assert jain([0.0, 0.0]) is None


def test_percentiles_are_values_that_were_measured() -> None:
    assert percentile([], 500) is None
    assert percentile([7], 990) == 7
    hundred = [*range(1, 101)]
    assert [percentile(hundred, mille) for mille in (0, 500, 990, 1000)] == [1, 50, 99, 100]


def test_a_report_is_plain_data() -> None:
    report = reported([(A, 0, 0, 600)], 600)
    assert json.loads(json.dumps(report.as_dict()))["groups"][0]["group"] == "one"
