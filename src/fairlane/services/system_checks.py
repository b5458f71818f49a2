"""The checks of the processes around a store: who runs, and whether they were started alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from fairlane import handlers
from fairlane.probe import Probe
from fairlane.process import Process
from fairlane.services.check import Check, Verdict, counted
from fairlane.settings import Settings


def _consumers(found: Probe) -> Iterator[Check]:
    """Whether each lane has a worker: one that serves it, and one that offers slots in it."""
    for lane in found.lanes:
        serving = [worker for worker in found.workers if lane.name in worker.lanes]
        waits = f"; pending: {lane.pending:,}" if lane.pending else ""
        name = f"consumers of {lane.name}"
        offered = sum(worker.slots for worker in serving)
        if not serving and not _queues_are_served(found, lane.name):
            said = f"no consumer for lane {lane.name}{waits}"
            yield Check(name, Verdict.FAIL, said, _start_one(found.settings, lane.name))
        elif serving and not offered:
            why = "; ".join(sorted({worker.reason for worker in serving} - {""}))
            said = f"{counted(len(serving), 'worker')}, no slots: {why or 'no reason given'}{waits}"
            step = "see `fairlane workers`, or start more"
            if "offers again" in why:
                step = (
                    "lighten the machine, start workers elsewhere, or let them work all the same: "
                )
                step += "FAIRLANE_PAUSE_PERCENT=100 FAIRLANE_RESUME_PERCENT=100"
            yield Check(name, Verdict.WARN, said, step)
        else:
            yield Check(
                name, Verdict.OK, f"{counted(len(serving), 'worker')}, {counted(offered, 'slot')}"
            )


def _start_one(settings: Settings, lane: str) -> str:
    """Return how to start a worker of a lane; one whose handlers are yours must be told of them."""
    kinds = (kind.name for kind in settings.task_types if kind.lane == lane)
    lacking = [name for name in kinds if not handlers.serves(name)]
    queues = _queues(settings, lane)
    if not lacking:
        return f"start one: `fairlane worker --queues {queues}`"
    return (
        f"start one: `fairlane worker --handlers MODULE --queues {queues}`, MODULE being yours "
        f"with the handler of {', '.join(lacking)}"
    )


def _dispatcher(found: Probe) -> Iterator[Check]:
    """Whether somebody hands out tasks; in the two-step flow that is Beat, with a worker."""
    leader, settings = found.processes.leader, found.settings
    if settings.flow == "turns":
        reported = (worker.report.get("queues", "").split(",") for worker in found.workers)
        served = any("sensitive.dispatch" in queues for queues in reported)
        if served:
            yield Check("dispatcher", Verdict.OK, "a worker serves sensitive.dispatch")
        else:
            said = "no worker serves sensitive.dispatch: nothing is handed out"
            step = "start one: `fairlane worker --queues sensitive.dispatch --pool solo`"
            yield Check("dispatcher", Verdict.FAIL, said, step)
    elif leader:
        yield Check("dispatcher", Verdict.OK, f"{leader} leads")
    else:
        said = "no dispatcher leads: tasks are handed out by Beat at most"
        yield Check("dispatcher", Verdict.FAIL, said, "start one: `fairlane dispatcher`")


def _beat(found: Probe) -> Iterator[Check]:
    beats = [process for process in found.processes.living if process.role == "beat"]
    if beats:
        yield Check("beat", Verdict.OK, f"{len(beats)} alive: {_listed(beats)}")
    elif found.settings.flow == "turns":
        said = "no Beat: nothing is handed out"
        yield Check("beat", Verdict.FAIL, said, "start one: `fairlane beat`")
    else:
        said = "no Beat: the safety net under the dispatcher is missing, no more"
        yield Check("beat", Verdict.WARN, said, "start one: `fairlane beat`")


def _processes(found: Probe) -> Iterator[Check]:
    """Whether the processes that run were started alike."""
    living = found.processes.living
    roles = Counter(process.role for process in living)
    said = ", ".join(counted(count, role) for role, count in sorted(roles.items()))
    rows: list[tuple[str, Process, str]] = [
        pair
        for process in living
        for pair in (
            ("version", process, process.version),
            ("settings", process, process.digest),
            *((name, process, value) for name, value in process.report.items()),
        )
    ]
    odds = [
        f"{name}: {', '.join(f'{value} ({_listed(whose)})' for value, whose in values.items())}"
        for name in dict.fromkeys(row[0] for row in rows)
        if len(values := _by_value(rows, name)) > 1
    ]
    if odds:
        step = "start them alike; a rolling deploy ends this by itself"
        yield Check("processes", Verdict.WARN, f"{said}, which disagree on {'; '.join(odds)}", step)
    elif living:
        yield Check("processes", Verdict.OK, f"{said}, started alike")
    else:
        yield Check("processes", Verdict.OK, "none runs")


def _by_value(rows: Sequence[tuple[str, Process, str]], name: str) -> dict[str, list[Process]]:
    values: dict[str, list[Process]] = {}
    for field, process, value in rows:
        if field == name:
            values.setdefault(value or "none", []).append(process)
    return values


def _listed(processes: Sequence[Process]) -> str:
    """Return the first few of some processes, by what they are called."""
    names = [f"{process.role} {process.process_id.rpartition(':')[0]}" for process in processes]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _queues_are_served(found: Probe, lane: str) -> bool:
    """Whether workers serve the lane's queues between them: in the two-step flow that will do."""
    if found.settings.flow != "turns":
        return False
    served = {
        queue for worker in found.workers for queue in worker.report.get("queues", "").split(",")
    }
    return set(_queues(found.settings, lane).split(",")) <= served


def _queues(settings: Settings, lane: str) -> str:
    kinds = (kind for kind in settings.task_types if kind.lane == lane)
    return ",".join(dict.fromkeys(kind.queue for kind in kinds))


SYSTEM_CHECKS: Final[Sequence[Callable[[Probe], Iterator[Check]]]] = (
    _consumers,
    _dispatcher,
    _beat,
    _processes,
)
