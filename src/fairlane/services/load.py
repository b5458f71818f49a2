"""How loaded this host is, as far as it concerns a worker on it.

The rule: a number is measured or it is None, never a made-up 0. CPU is by default the load that is
not fairlane's own tasks on this host: slots already bound these, and two OCR tasks on two cores
must not shut the host's lanes. A container's limits count before the host's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

_CGROUP: Final = Path("/sys/fs/cgroup")
#: Weight of the newest sample in the moving average.
_NEWEST: Final = 0.5
#: Over less than this the load is noise: CPU time is counted in hundredths of a second.
_SHORTEST_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU's utilisation and memory, percent; a partitioned GPU (MIG) tells no utilisation."""

    name: str
    utilisation: float | None
    memory: float


@dataclass(frozen=True, slots=True)
class Load:
    """A sample, percent; None is not known. `gpus` is None without a driver that answers."""

    cpu: float | None
    memory: float | None
    gpus: tuple[Gpu, ...] | None

    def worst(self) -> tuple[str, float]:
        """Return what is most loaded, and how much; GPU utilisation does not count, memory does."""
        known = [("cpu", self.cpu), ("memory", self.memory)]
        known += [(f"memory of {gpu.name}", gpu.memory) for gpu in self.gpus or ()]
        return max(
            ((name, value) for name, value in known if value is not None),
            key=lambda pair: pair[1],
            default=("nothing", 0.0),
        )


class LoadMeter:
    """Samples the host. CPU is None until two samples half a second apart have been taken."""

    def __init__(self, *, others_only: bool) -> None:
        self._others_only = others_only
        self._seen: tuple[float, float, float] | None = None
        self._cpu: float | None = None

    def sample(self, workers: Iterable[int] = ()) -> Load:
        """Return the load now; CPU as a moving average over the samples.

        `workers` are the process ids of fairlane's workers on this host.
        """
        self._measure_cpu(workers)
        cpu = None if self._cpu is None else round(self._cpu, 1)
        return Load(cpu, _memory_percent(), gpus())

    def _measure_cpu(self, workers: Iterable[int]) -> None:
        times = psutil.cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        busy = sum(times) - idle - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        now = (busy, idle, _seconds_of(workers) if self._others_only else 0.0)
        if self._seen is not None:
            busy_s, idle_s, own_s = (a - b for a, b in zip(now, self._seen, strict=True))
            if busy_s + idle_s < _SHORTEST_S * _cpus():
                return
            share = max(0.0, busy_s - max(0.0, own_s)) / (busy_s + idle_s)
            percent = min(100.0, 100 * share * _cpus() / _quota_cpus())
            before = percent if self._cpu is None else self._cpu
            self._cpu = _NEWEST * percent + (1 - _NEWEST) * before
        self._seen = now


class Valve:
    """Shuts over one mark and opens below a lower one, so that an offer does not flap."""

    def __init__(self, pause_percent: float, resume_percent: float) -> None:
        self._pause, self._resume = pause_percent, resume_percent
        self._shut = False

    def reason(self, load: Load) -> str:
        """Return why the host should take nothing now, or nothing."""
        name, percent = load.worst()
        self._shut = percent > (self._resume if self._shut else self._pause)
        if not self._shut:
            return ""
        return f"{name} at {percent:.0f} %; offers again at {self._resume:.0f} % or less"


def gpus() -> tuple[Gpu, ...] | None:
    """Return the NVIDIA GPUs, or None when the driver, the library or an answer is missing."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        found = []
        for at in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(at)
            memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
            used = 100 * int(memory.used) / max(1, int(memory.total))
            found.append(Gpu(f"gpu{at}", _utilisation(pynvml, handle), round(used, 1)))
        return tuple(found) or None
    except pynvml.NVMLError:
        return None
    finally:
        # A GPU that is lost meanwhile fails here too; what was read stands.
        with suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _utilisation(pynvml: Any, handle: Any) -> float | None:
    try:
        return float(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)
    except pynvml.NVMLError:
        return None


def _seconds_of(workers: Iterable[int]) -> float:
    """Return the CPU seconds of workers and their children, those that have ended included."""
    total = 0.0
    for pid in workers:
        try:
            worker = psutil.Process(pid)
            times = worker.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
            for child in worker.children(recursive=True):
                times = child.cpu_times()
                total += times.user + times.system
        except psutil.Error:
            # It ended, or it lives in another container.
            continue
    return total


def _cpus() -> int:
    return os.cpu_count() or 1


def _quota_cpus() -> float:
    """Return how many CPUs the container may use; without a limit, the host's."""
    try:
        quota, period = (_CGROUP / "cpu.max").read_text().split()
        return _cpus() if quota == "max" else max(0.1, min(_cpus(), int(quota) / int(period)))
    except (OSError, ValueError):
        return _cpus()


def _memory_percent() -> float | None:
    """Return memory in use: the container's if it has a limit, else the host's."""
    try:
        limit = int((_CGROUP / "memory.max").read_text())
        used = int((_CGROUP / "memory.current").read_text())
        cached = _cgroup_stat("inactive_file")
        return round(100 * max(0, used - cached) / max(1, limit), 1)
    except (OSError, ValueError):
        pass
    try:
        return float(psutil.virtual_memory().percent)
    except (OSError, psutil.Error):
        return None


def _cgroup_stat(name: str) -> int:
    for line in (_CGROUP / "memory.stat").read_text().splitlines():
        field, _, value = line.partition(" ")
        if field == name:
            return int(value)
    return 0
