"""The workloads that come along: their size, their groups, and that a seed decides them."""

from __future__ import annotations

import pytest

from fairlane.sim.report import measure
from fairlane.sim.simulation import simulate
from fairlane.sim.traces import TRACES
from fairlane.sim.workloads import KNOWN, names, workload


@pytest.mark.parametrize("name", list(KNOWN))
def test_a_seed_decides_everything(name: str) -> None:
    assert workload(name, seed=7) == workload(name, seed=7)
    assert workload(name).name == name


def test_another_seed_is_another_traffic() -> None:
    assert workload("flood", seed=1) != workload("flood", seed=2)


@pytest.mark.parametrize("name", list(KNOWN))
def test_it_has_the_size_that_was_asked_for(name: str) -> None:
    made = workload(name, devices=60, tasks=1_200, slots=3)
    assert set(made.slots.values()) == {3}
    macs = {arrival.mac for arrival in made.arrivals} | {each.mac for each in made.returning}
    assert len(macs) == 60
    assert macs == set(made.groups)


@pytest.mark.parametrize("name", list(TRACES))
def test_a_trace_is_whole_and_loads_its_slots(name: str) -> None:
    made = workload(name)
    report = measure(made, "rr", simulate(made, "rr"))
    assert (report.tasks, len(report.groups)) == ({"servegen-mixed": 40_711}.get(name, 18_066), 2)
    assert report.done == report.tasks
    devices = sum(group.devices for group in report.groups)
    assert devices == {"servegen-mixed": 37, "nasa-ipsc-1993": 69}[name]


def test_every_workload_says_what_it_shows_in_two_languages() -> None:
    for english, chinese in names().values():
        assert english.isascii()
        assert any("\u4e00" <= letter <= "\u9fff" for letter in chinese)
