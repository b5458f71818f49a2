"""One trial: a fresh server, a system's workers on it, a submitter, and what the tasks noted.

The rule: every trial is alike. It begins with an empty Valkey on a port of the loopback, whose
append-only file is synced each second as in a system that keeps its data; the workers have run some
tasks before the clock counts; every task must have run, or the trial fails.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import psutil
import redis

import marks
from fairlane import Settings, watchdog
from fairlane.embedded import Embedded
from fairlane.settings import other_variables
from marks import Job, Mark
from systems import System

#: Called with how many tasks of the trial have run.
Tell = Callable[[int], None]

_NO_LIMIT: Final = 10**9
_START_S: Final = 60.0
_STALLED_S: Final = 60.0
_STOP_S: Final = 10.0
_WARM_MS: Final = 20.0


class Failed(Exception):
    """A trial that did not come to its end, with what its programs said."""


@dataclass(frozen=True)
class Trial:
    """What came out: the tasks that ran, and the CPU seconds of each part of the system."""

    marks: list[Mark]
    cpu_s: Mapping[str, float]
    seconds: float

    @property
    def tasks_per_s(self) -> float:
        """Return how many tasks started a second, from the first to the last."""
        started = [mark.started for mark in self.marks]
        return (len(started) - 1) / (max(started) - min(started))


@dataclass
class Program:
    """A running program, under a watchdog that ends it with this one."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def cpu_s(self) -> float:
        """Return the CPU time of the program and its children, past ones too."""
        total = 0.0
        with contextlib.suppress(psutil.Error):
            for each in psutil.Process(self.process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    times = each.cpu_times()
                    total += times.user + times.system
                    total += times.children_user + times.children_system
        return total


def run(
    system: System,
    python: Path,
    job: Job,
    *,
    known: int = 0,
    settings: Mapping[str, Any] | None = None,
    tell: Tell = lambda _: None,
) -> Trial:
    """Run one job through a system. Raises Failed with the end of the programs' logs.

    `known` devices have tasks in a lane that nobody serves; `settings` are fairlane's.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fairlane-bench-")))
        url, server = stack.enter_context(_server(folder))
        job = replace(job, url=url, devices=job.heavy + job.light)
        environ = _environ(system, url, folder, settings or {})
        stage = _Stage(folder, python, system, environ, job)
        stack.callback(stage.stop)
        if known:
            stage.finish("make_known", replace(job, marks=str(folder / "known")), str(known))
        stage.start_workers()
        warm = replace(
            job, marks=stage.job.marks, heavy=1, each=4 * job.slots, light=0, run_ms=_WARM_MS
        )
        stage.finish("submit", warm)
        stage.wait_for(warm.total, lambda _: None)
        before, began = stage.cpu_s(server), time.monotonic()
        submitter = stage.start("submit", replace(job, marks=stage.job.marks))
        stage.wait_for(warm.total + job.total, lambda done: tell(done - warm.total))
        after, ended = stage.cpu_s(server), time.monotonic()
        submitter.process.wait(_STOP_S)
        ran = marks.read(stage.marks)[warm.total :]
        cpu_s = {part: after[part] - before.get(part, 0.0) for part in after}
        return Trial(ran, cpu_s, ended - began)


class _Stage:
    """The programs of one trial."""

    def __init__(
        self, folder: Path, python: Path, system: System, environ: Mapping[str, str], job: Job
    ) -> None:
        self.marks = folder / "marks"
        self.job = replace(job, marks=str(self.marks))
        self._folder = folder
        self._python = python
        self._system = system
        self._environ = environ
        self._programs: list[Program] = []

    def start_workers(self) -> None:
        """Start what serves the slots, and wait until all of it says that it is ready."""
        count = self.job.slots if self._system.per_slot else 1
        for _ in range(count):
            self.start("work", self.job)
        if self._system.is_fairlane:
            self._launch("dispatcher", [sys.executable, "-m", "fairlane", "dispatcher"])
        self._wait(lambda: len(list(self._folder.glob("marks.ready-*"))) >= count, _START_S)

    def start(self, part: str, job: Job, *more: str) -> Program:
        """Start a part of the system's program."""
        file = self._folder / f"job-{len(self._programs)}.json"
        file.write_text(json.dumps(asdict(job)))
        return self._launch(
            part, [str(self._python), str(self._system.file), part, str(file), *more]
        )

    def finish(self, part: str, job: Job, *more: str) -> None:
        """Run a part of the program to its end."""
        program = self.start(part, job, *more)
        if program.process.wait(10 * _STALLED_S) != 0:
            raise Failed(f"{self._system.name}: {part} failed\n{self._said()}")
        self._programs.remove(program)

    def wait_for(self, total: int, tell: Tell) -> None:
        """Wait until so many tasks have started; a system that stands still has failed."""
        seen, since = -1, time.monotonic()
        while (done := marks.count(self.marks)) < total:
            if done != seen:
                seen, since = done, time.monotonic()
                tell(done)
            ended = [each.name for each in self._programs if each.process.poll()]
            if ended or time.monotonic() - since > _STALLED_S:
                why = f" ({', '.join(ended)} failed)" if ended else ""
                raise Failed(
                    f"{self._system.name}: {done} of {total} tasks ran{why}\n{self._said()}"
                )
            time.sleep(0.05)
        tell(total)

    def cpu_s(self, server: int) -> dict[str, float]:
        """Return the CPU seconds so far, by part."""
        times = psutil.Process(server).cpu_times()
        total = {"server": times.user + times.system}
        for program in self._programs:
            if program.name != "submit":
                total[program.name] = total.get(program.name, 0.0) + program.cpu_s()
        return total

    def stop(self) -> None:
        """End all programs: asked first, and killed if that does not help."""
        for program in self._programs:
            program.process.terminate()
        ends_at = time.monotonic() + _STOP_S
        for program in self._programs:
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.process.wait(max(0.1, ends_at - time.monotonic()))
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.process.pid, signal.SIGKILL)
            program.process.wait()

    def _launch(self, name: str, command: list[str]) -> Program:
        log = self._folder / f"{name}-{len(self._programs)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", watchdog.__file__, *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environ,
                cwd=self._folder,
                start_new_session=True,
            )
        program = Program(name, process, log)
        self._programs.append(program)
        return program

    def _wait(self, is_so: Callable[[], bool], timeout_s: float) -> None:
        ends_at = time.monotonic() + timeout_s
        while not is_so():
            if time.monotonic() > ends_at:
                raise Failed(f"{self._system.name}: its workers did not start\n{self._said()}")
            time.sleep(0.05)

    def _said(self) -> str:
        return "\n".join(
            f"{program.log.name}: {program.log.read_text()[-2_000:]}" for program in self._programs
        )


@contextmanager
def _server(folder: Path) -> Iterator[tuple[str, int]]:
    """Give a fresh server's URL and its process id."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {"port": str(port), "bind": "127.0.0.1"}
    url = f"redis://127.0.0.1:{port}"
    with Embedded(folder / "store", extra=options), redis.Redis.from_url(url) as client:
        yield url, int(client.info("server")["process_id"])


def _environ(system: System, url: str, folder: Path, settings: Mapping[str, Any]) -> dict[str, str]:
    quiet = {"PYTHONWARNINGS": "ignore:You're running the worker with superuser privileges"}
    environ = {**other_variables(), **quiet}
    if system.requires:
        environ.pop("PYTHONPATH", None)
    if not system.is_fairlane:
        return environ
    values: dict[str, Any] = {
        "store_url": f"{url}/0",
        "broker_url": f"{url}/1",
        "data_dir": folder / "data",
        "pause_percent": 100,
        "resume_percent": 100,
        # Whatever is limited: a flood is what is measured, not its refusal.
        **{
            name: _NO_LIMIT
            for name in map(attrgetter("name"), fields(Settings))
            if name.startswith("max_") and name.endswith("_pending")
        },
        **system.settings,
        **settings,
    }
    return {**environ, **Settings(**values).environ()}
