"""What every program here shares: its job, the task that is run, and where a run is noted.

The rule: nothing but the standard library, since this file is imported in the environment of every
peer; and one clock. A task is `(device, submitted, run_ms)`; it notes itself when it starts, in the
process that runs it, by the monotonic clock of the machine, which the submitter has read too.
"""

from __future__ import annotations

import json
import os
import random
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

#: Tasks that are sent in one go, where a system can.
CHUNK: Final = 1_000
_MARK: Final = struct.Struct("<idd")

Task = tuple[int, float, float]


class Mark(NamedTuple):
    """A task that ran: when it was submitted and when it started, in seconds of one clock."""

    device: int
    submitted: float
    started: float


@dataclass(frozen=True)
class Job:
    """What a program is to do; devices are numbers, the heavy ones first, then the light ones.

    `each` tasks of every heavy device at once; then, when as many tasks have started as there are
    heavy devices, a task of every light device, `gap_ms` apart on average, at random.
    """

    url: str
    marks: str
    slots: int
    run_ms: float
    heavy: int = 0
    each: int = 0
    light: int = 0
    gap_ms: float = 0.0
    #: Devices in all phases of the trial, for systems that must name their queues beforehand.
    devices: int = 0

    @property
    def total(self) -> int:
        """How many tasks it submits."""
        return self.heavy * self.each + self.light


def run(device: int, submitted: float, run_ms: float) -> None:
    """Be a task: note the start, then take as long as the task takes."""
    os.write(_marks(), _MARK.pack(device, submitted, time.monotonic()))
    if run_ms:
        time.sleep(run_ms / 1000)


def read(path: Path) -> list[Mark]:
    """Return what was noted so far."""
    content = path.read_bytes() if path.exists() else b""
    whole = len(content) - len(content) % _MARK.size
    return [Mark(*fields) for fields in _MARK.iter_unpack(content[:whole])]


def count(path: Path) -> int:
    """Return how many tasks have started so far."""
    return path.stat().st_size // _MARK.size if path.exists() else 0


def ready(name: str = "") -> None:
    """Say that this worker takes tasks."""
    Path(f"{job().marks}.ready-{name or os.getpid()}").touch()


@cache
def job() -> Job:
    """Return the job that this program was given."""
    return Job(**json.loads(Path(sys.argv[2]).read_text()))


def main(
    work: Callable[[], None],
    send_many: Callable[[Sequence[Task]], None],
    send: Callable[[Task], None],
    **more: Callable[[], None],
) -> None:
    """Do what the command line says: `work`, `submit`, or another of the program's own parts."""
    parts = {"work": work, "submit": lambda: _submit(send_many, send), **more}
    parts[sys.argv[1]]()


def _submit(send_many: Callable[[Sequence[Task]], None], send: Callable[[Task], None]) -> None:
    run_ms, before = job().run_ms, count(Path(job().marks))
    # In turns, as if the devices had sent them side by side.
    flood = [device for _ in range(job().each) for device in range(job().heavy)]
    for at in range(0, len(flood), CHUNK):
        now = time.monotonic()
        send_many([(device, now, run_ms) for device in flood[at : at + CHUNK]])
    # Until each of them has had a turn the heavy ones are newcomers too, and were here first.
    while count(Path(job().marks)) - before < job().heavy:
        time.sleep(0.01)
    for device in _arrivals():
        send((device, time.monotonic(), run_ms))


def _arrivals() -> Iterator[int]:
    """Give each light device at its time; a submitter that is late does not catch up in a rush."""
    chance = random.Random(job().heavy)  # noqa: S311 - the same arrivals for every system
    for device in range(job().heavy, job().heavy + job().light):
        time.sleep(chance.expovariate(1000 / job().gap_ms) if job().gap_ms else 0)
        yield device


@cache
def _marks() -> int:
    # Opened at the first task, so after every fork; appended in one write each, so never torn.
    return os.open(job().marks, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
