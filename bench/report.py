"""What came out, as data and as Markdown.

The rule: medians over the rounds; a ratio is taken within a round first. The machine is told by its
cores and versions, never by its name.
"""

from __future__ import annotations

import datetime
import os
import platform
import statistics
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import systems
from cases import PARTS, Case, Size
from fairlane.embedded import server_program
from marks import Job
from trial import Trial

_BESIDE: Final = {"throughput": "throughput-celery", "fairness": "celery", "latency": ""}
_VERSIONS: Final = ("celery", "kombu", "redis", "fairlane")


@dataclass(frozen=True)
class Outcome:
    """One case run once: rates, waits of the light devices, CPU per task of each part; or why not.

    Waits are milliseconds from the submission to the start, CPU is microseconds a task.
    """

    case: Case
    ran: int = 0
    tasks_per_s: float = 0.0
    wait_ms: Mapping[str, float] = field(default_factory=dict)
    cpu_us: Mapping[str, float] = field(default_factory=dict)
    error: str = ""

    @classmethod
    def of(cls, case: Case, job: Job, trial: Trial) -> Self:
        """Return what a trial came to."""
        waits = sorted(
            (mark.started - mark.submitted) * 1000
            for mark in trial.marks
            if mark.device >= job.heavy
        )
        wait_ms = {}
        if waits:
            wait_ms = {"p50": _at(waits, 0.5), "p99": _at(waits, 0.99), "max": waits[-1]}
        cpu_us = {part: spent / len(trial.marks) * 1e6 for part, spent in trial.cpu_s.items()}
        return cls(case, len(trial.marks), trial.tasks_per_s, wait_ms, cpu_us)

    def line(self) -> str:
        """Return one line for who watches."""
        if self.error:
            return f"{self.case.name}: {self.error}"
        waits = ", ".join(f"{name} {wait:,.1f}" for name, wait in self.wait_ms.items())
        return f"{self.case.name}: {self.tasks_per_s:,.0f} tasks/s{waits and f'; ms {waits}'}"


@dataclass(frozen=True)
class Row:
    """A case over all rounds: medians; `ratio` is its rate to plain Celery's of the same round."""

    case: str
    about: str
    rounds: int
    ran: int = 0
    tasks_per_s: float = 0.0
    ratio: float | None = None
    wait_ms: Mapping[str, float] = field(default_factory=dict)
    cpu_us: Mapping[str, float] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True)
class Report:
    """The whole result."""

    date: str
    command: str
    machine: Mapping[str, Any]
    size: Mapping[str, Any]
    parts: Mapping[str, Sequence[Row]]

    @classmethod
    def of(
        cls, outcomes: Sequence[Outcome], size: Size, arguments: Sequence[str], cache: Path
    ) -> Self:
        """Return the report of all outcomes, in the order of the rounds."""
        by_case: dict[str, list[Outcome]] = {}
        for outcome in outcomes:
            by_case.setdefault(outcome.case.name, []).append(outcome)
        parts = {
            part: [_row(part, ran, by_case) for ran in by_case.values() if ran[0].case.part == part]
            for part in PARTS
        }
        return cls(
            datetime.datetime.now(tz=datetime.UTC).date().isoformat(),  # noqa: TID251 - for people
            " ".join(("python bench/bench.py", *arguments)),
            _machine(outcomes, cache),
            asdict(size),
            {part: rows for part, rows in parts.items() if rows},
        )

    def markdown(self) -> str:
        """Return the report as it stands in docs/benchmarks.md."""
        told = ", ".join(f"{name} {value}" for name, value in self.machine.items())
        lines = [f"On {self.date}: {told}; `{self.command}`", ""]
        if self.size == asdict(Size.quick()):
            lines += ["**quick: not for comparison**", ""]
        for part, rows in self.parts.items():
            waits = part != "throughput"
            cores = part != "latency"
            heads = ["", "tasks/s", "to plain Celery"] if cores else [""]
            heads += ["wait p50, ms", "p99", "max"] if waits else []
            heads += ["CPU a task, µs"] if cores else []
            lines += [f"**{part}**", "", _line(heads), _line(["---"] * len(heads))]
            lines += [_line(_cells(row, waits=waits, cores=cores)) for row in rows]
            lines.append("")
        return "\n".join(lines)


def _row(part: str, ran: Sequence[Outcome], by_case: Mapping[str, Sequence[Outcome]]) -> Row:
    case, good = ran[0].case, [outcome for outcome in ran if not outcome.error]
    if len(good) < len(ran):
        error = next(outcome.error for outcome in ran if outcome.error)
        return Row(case.name, case.about, len(ran), error=error)
    pairs = zip(ran, by_case.get(_BESIDE[part], ()), strict=False)
    ratios = [mine.tasks_per_s / beside.tasks_per_s for mine, beside in pairs if not beside.error]
    return Row(
        case.name,
        case.about,
        len(ran),
        ran[0].ran,
        statistics.median(outcome.tasks_per_s for outcome in ran),
        statistics.median(ratios) if ratios else None,
        _medians(ran, lambda outcome: outcome.wait_ms),
        _medians(ran, lambda outcome: outcome.cpu_us),
    )


def _medians(
    ran: Sequence[Outcome], of: Callable[[Outcome], Mapping[str, float]]
) -> dict[str, float]:
    return {name: statistics.median(of(outcome)[name] for outcome in ran) for name in of(ran[0])}


def _cells(row: Row, *, waits: bool, cores: bool) -> Iterator[str]:
    yield row.about
    if row.error:
        yield f"not measured: {row.error.splitlines()[0]}"
        return
    if cores:
        yield f"{row.tasks_per_s:,.0f}"
        yield "" if row.ratio is None else f"{row.ratio:.2f}"
    if waits:
        yield from (f"{row.wait_ms[name]:,.1f}" for name in ("p50", "p99", "max"))
    if cores:
        yield ", ".join(f"{part} {spent:,.0f}" for part, spent in row.cpu_us.items())


def _line(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def _at(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _machine(outcomes: Sequence[Outcome], cache: Path) -> dict[str, Any]:
    server = [str(server_program()), "--version"]
    said = subprocess.run(server, check=True, capture_output=True, text=True).stdout
    told: dict[str, Any] = {
        "cores": os.cpu_count(),
        "Python": platform.python_version(),
        "Valkey": said.partition("v=")[2].split()[0],
    }
    here = systems.versions(systems.python_of(systems.named("celery"), cache))
    told |= {name: here[name] for name in _VERSIONS if name in here}
    for name in dict.fromkeys(outcome.case.system for outcome in outcomes if not outcome.error):
        system = systems.named(name)
        if system.requires:
            there = systems.versions(systems.python_of(system, cache))
            told |= {peer: there[peer] for peer in (name,) if peer in there}
    return told
