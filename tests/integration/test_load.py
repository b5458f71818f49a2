"""How loaded a host is: measured or not known, never made up; and a valve that does not flap."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from fairlane.services.load import Load, LoadMeter, Valve, gpus
from support.eventually import eventually


@pytest.mark.parametrize("others_only", [True, False])
def test_cpu_is_not_known_until_it_was_measured_over_a_time(others_only: bool) -> None:
    """A43: the first reading is none, never 0."""
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


#: What a host with one GPU answers.
DRIVER: dict[str, Any] = {
    "nvmlInit": None,
    "nvmlDeviceGetCount": 1,
    "nvmlDeviceGetHandleByIndex": "handle",
    "nvmlDeviceGetMemoryInfo": SimpleNamespace(used=1, total=4),
    "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=30),
    "nvmlShutdown": None,
}
ERRORS = [getattr(pynvml, name) for name in dir(pynvml) if name.startswith("NVMLError_")]


def driver(patch: pytest.MonkeyPatch, wrong: str, error: type[Exception] | None) -> None:
    """Let the library answer as a driver does; one call fails. Nobody has every broken driver."""

    def call(name: str) -> Any:
        if name == wrong and error is not None:
            raise error
        return DRIVER[name]

    for name in DRIVER:
        patch.setattr(pynvml, name, lambda *_, name=name: call(name))


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
@pytest.mark.parametrize("wrong", list(DRIVER))
def test_no_error_of_a_driver_is_one_of_ours(
    monkeypatch: pytest.MonkeyPatch, wrong: str, error: type[Exception]
) -> None:
    """A44: no driver, not supported, MIG: what is not known is null."""
    driver(monkeypatch, "", None)
    (whole,) = gpus() or ()
    assert (whole.utilisation, whole.memory) == (30.0, 25.0)
    driver(monkeypatch, wrong, error)
    seen = gpus()
    if wrong == "nvmlShutdown":
        assert seen == (whole,)
    elif wrong == "nvmlDeviceGetUtilizationRates":
        assert [(gpu.utilisation, gpu.memory) for gpu in seen or ()] == [(None, 25.0)]
    else:
        assert seen is None


def test_the_valve_shuts_over_one_mark_and_opens_below_the_lower_one() -> None:
    valve = Valve(75, 65)
    told = [bool(valve.reason(Load(cpu, 10.0, None))) for cpu in (70.0, 76.0, 70.0, 66.0, 65.0)]
    assert told == [False, True, True, True, False]
    assert valve.reason(Load(None, 80.0, None)) == "memory at 80 %; offers again at 65 % or less"
    assert valve.reason(Load(None, None, None)) == ""
