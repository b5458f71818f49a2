"""What is measured: cases, each one system under one workload.

The rule: one description of the workload for all systems of a part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from marks import Job
from systems import SYSTEMS

#: What `make bench` calls (b), (c), and beside them the wait on an idle system.
PARTS: Final = ("throughput", "fairness", "latency")


@dataclass(frozen=True)
class Size:
    """How much of everything; the defaults are what the document asks for."""

    slots: int = 8
    #: throughput
    tasks: int = 6_000
    #: fairness: `heavy` devices send `each` tasks at once, then `light` devices one each
    heavy: int = 50
    each: int = 200
    light: int = 200
    gap_ms: float = 20.0
    run_ms: float = 5.0
    many_heavy: int = 5_000
    many_each: int = 4
    known: int = 100_000
    #: latency
    alone: int = 200
    alone_gap_ms: float = 50.0

    @classmethod
    def quick(cls) -> Self:
        """Return a size that shows in seconds that everything works."""
        return cls(slots=2, tasks=60, heavy=3, each=10, light=5, gap_ms=5.0, many_heavy=15,
                   many_each=2, known=50, alone=5, alone_gap_ms=5.0)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A system under a workload; `many` heavy devices, or devices that the store merely knows."""

    name: str
    part: str
    system: str
    about: str
    many: bool = False
    known: bool = False

    def job(self, size: Size) -> Job:
        """Return the workload, without where it is to run."""
        if self.part == "throughput":
            return Job("", "", size.slots, 0.0, heavy=size.heavy, each=size.tasks // size.heavy)
        if self.part == "latency":
            return Job("", "", size.slots, 0.0, light=size.alone, gap_ms=size.alone_gap_ms)
        heavy, each = size.heavy, size.each
        if self.many:
            heavy, each = size.many_heavy, size.many_each
        return Job("", "", size.slots, size.run_ms, heavy=heavy, each=each, light=size.light,
                   gap_ms=size.gap_ms)  # fmt: skip


CASES: Final = (
    Case("throughput-celery", "throughput", "celery", "plain Celery, tasks that do nothing"),
    Case("throughput-fairlane", "throughput", "fairlane", "fairlane, tasks that do nothing"),
    *(Case(each.name, "fairness", each.name, each.about) for each in SYSTEMS),
    Case("fairlane-5000", "fairness", "fairlane", "fairlane, 5,000 heavy devices", many=True),
    Case("fairlane-known", "fairness", "fairlane", "fairlane, 100,000 devices known", known=True),
    Case("latency-celery", "latency", "celery", "plain Celery, nothing else to do"),
    Case("latency-fairlane", "latency", "fairlane", "fairlane, nothing else to do"),
)


def of_part(part: str) -> list[Case]:
    """Return the cases of a part."""
    return [case for case in CASES if case.part == part]
