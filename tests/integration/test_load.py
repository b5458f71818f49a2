"""How loaded a host is: measured or not known, never made up; and a valve that does not flap."""

from __future__ import annotations

import pytest

from fairlane.services.load import Load, LoadMeter, Valve, gpus
from support.eventually import eventually


@pytest.mark.parametrize("others_only", [True, False])
def test_cpu_is_not_known_until_it_was_measured_over_a_time(others_only: bool) -> None:
    meter = LoadMeter(others_only=others_only)
    assert [meter.sample().cpu for _ in range(5)] == [None] * 5
    eventually(lambda: meter.sample().cpu is not None)
    assert 0 <= (meter.sample().cpu or 0) <= 100


def test_memory_is_known_at_once() -> None:
    memory = LoadMeter(others_only=True).sample().memory
    assert memory is not None
    assert 0 < memory < 100


def test_without_a_driver_that_answers_there_is_no_gpu() -> None:
    seen = gpus()
    assert seen is None or all(0 <= gpu.memory <= 100 for gpu in seen)


def test_the_valve_shuts_over_one_mark_and_opens_below_the_lower_one() -> None:
    valve = Valve(75, 65)
    told = [bool(valve.reason(Load(cpu, 10.0, None))) for cpu in (70.0, 76.0, 70.0, 66.0, 65.0)]
    assert told == [False, True, True, True, False]
    assert valve.reason(Load(None, 80.0, None)) == "memory at 80 %; offers again at 65 % or less"
    assert valve.reason(Load(None, None, None)) == ""
