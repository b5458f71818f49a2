"""The systems that are measured, each with its program, its processes and its environment.

The rule: a peer comes from PyPI into an environment of its own, made once under a cache folder; one
that cannot be had is named in the result, never dropped silently.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

PROGRAMS: Final = Path(__file__).parent / "programs"


class Unavailable(Exception):
    """A system that cannot be measured here, with the reason."""


@dataclass(frozen=True)
class System:
    """One system: its program, and how many processes of it serve the slots.

    `requires` empty: it runs in this very environment. `per_slot`: a process is one slot, else one
    process has them all. `any_python`: its metadata asks for a newer Python than it needs.
    """

    name: str
    program: str
    about: str
    requires: tuple[str, ...] = ()
    any_python: tuple[str, ...] = ()
    per_slot: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_fairlane(self) -> bool:
        """Whether it needs a dispatcher, and settings."""
        return self.program == "through_fairlane"

    @property
    def file(self) -> Path:
        """The program's path."""
        return PROGRAMS / f"{self.program}.py"


SYSTEMS: Final = (
    System("fairlane", "through_fairlane", "fairlane, policy fair (the default)"),
    System(
        "fairlane-aging",
        "through_fairlane",
        "fairlane, policy aging: the oldest task first",
        settings={"policy": "aging"},
    ),
    System("celery", "celery_queue", "plain Celery, one queue"),
    System("celery-queues", "celery_queue_per_device", "Celery, a queue for each device"),
    System(
        "rq",
        "rq_round_robin",
        "RQ, a queue for each device, round robin, SimpleWorker",
        requires=("rq==3.0.0",),
        per_slot=True,
    ),
    System(
        "tasktiger",
        "tasktiger_subqueues",
        "TaskTiger, a subqueue for each device, sync executor",
        requires=("tasktiger==0.26.3",),
        per_slot=True,
    ),
    System(
        "vtrr-queue",
        "vtrr_partitions",
        "vtrr-queue on Celery, a partition for each device",
        requires=("celery[redis]==5.7.0",),
        any_python=("vtrr-queue==0.1.0",),
    ),
)


def named(name: str) -> System:
    """Return a system by its name."""
    return next(system for system in SYSTEMS if system.name == name)


def python_of(system: System, cache: Path) -> Path:
    """Return the Python that runs a system, with its packages; they are installed the first time.

    Raises Unavailable, with what the installer said.
    """
    if not system.requires:
        return Path(sys.executable)
    folder = cache / system.name
    python, done = folder / "bin" / "python", folder / "installed"
    wanted = "\n".join((*system.requires, *system.any_python))
    if done.exists() and done.read_text() == wanted:
        return python
    _call(sys.executable, "-m", "venv", "--clear", str(folder))
    install = (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    _call(*install, *system.requires)
    if system.any_python:
        # Not with what they require: one of these asks for the newest of everything it is tested
        # with, and its dependencies that matter are in `requires`.
        _call(*install, "--no-deps", "--ignore-requires-python", *system.any_python)
    done.write_text(wanted)
    return python


def versions(python: Path) -> dict[str, str]:
    """Return the versions of what is installed beside a Python."""
    code = (
        "import importlib.metadata as m, json; "
        "print(json.dumps({d.metadata['Name'].lower(): d.version for d in m.distributions()}))"
    )
    found = subprocess.run([str(python), "-c", code], check=True, capture_output=True, text=True)
    versions: dict[str, str] = json.loads(found.stdout)
    return versions


def _call(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Unavailable(said[-1] if said else f"{command[0]} failed")
