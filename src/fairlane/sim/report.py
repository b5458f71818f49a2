"""What a simulation comes to: waits, shares of time, Jain's index, the queue's length.

The rule: a report is made from a record and its workload alone, and holds no wall-clock time, so
the same seed gives the same bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from fairlane.sim.record import DROPPED, NEVER, Record
from fairlane.sim.workload import Workload

#: Into so many parts of equal length a run is cut for what is told over time.
PARTS: Final = 60
#: The per mille at which a distribution of waits is told.
QUANTILES: Final = (*range(0, 990, 10), 990, 995, 999, 1000)
OTHERS: Final = "others"


@dataclass(frozen=True, slots=True)
class Group:
    """The devices of a group: how long their tasks waited (ms), how much of the time they got.

    `share` is their part of all time that the slots worked; `waits_ms` stand at QUANTILES.
    """

    group: str
    devices: int
    tasks: int
    done: int
    wait_p50_ms: int | None
    wait_p99_ms: int | None
    wait_max_ms: int | None
    share: float
    waits_ms: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """One run of a workload under a policy.

    `jain` compares what each device got while it was backlogged with its weighted part of what all
    such devices got; 1 is perfectly fair, 1/n is one of n taking all, None if never two competed.
    A device that is ever paused or limited is left out of it.
    The series have PARTS values, each for `part_ms`: the share of time of each group, Jain's index
    among the devices that were backlogged throughout the part, the longest queue in it.
    """

    policy: str
    tasks: int
    done: int
    refused: int
    expired: int
    dead: int
    lost_runs: int
    unfinished: int
    seconds: float
    utilisation: float
    jain: float | None
    queue_max: int
    groups: tuple[Group, ...]
    part_ms: float
    share_over_time: Mapping[str, tuple[float, ...]]
    jain_over_time: tuple[float | None, ...]
    queue_over_time: tuple[int, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return asdict(self)


def measure(workload: Workload, policy: str, record: Record) -> Report:
    """Return what a run comes to."""
    parts = _Parts(record)
    busy_ms = sum(parts.busy_ms.values())
    all_slots_ms = sum(workload.slots.values()) * record.end_ms
    competition = _Competition(workload, record, parts)
    queue = _queue(record, parts)
    ended = record.done + record.refused + record.expired + record.dead
    return Report(
        policy=policy,
        tasks=len(record),
        done=record.done,
        refused=record.refused,
        expired=record.expired,
        dead=record.dead,
        lost_runs=record.lost,
        unfinished=len(record) - ended,
        seconds=record.end_ms / 1000,
        utilisation=_ratio(busy_ms, all_slots_ms),
        jain=competition.overall(),
        queue_max=max(queue, default=0),
        groups=tuple(_groups(workload, record, busy_ms)),
        part_ms=parts.length_ms,
        share_over_time=_shares(workload, record, parts),
        jain_over_time=competition.over_time(),
        queue_over_time=tuple(queue),
    )


def jain(values: Sequence[float]) -> float | None:
    """Return Jain's fairness index, (Σx)² / (n Σx²); None below two values."""
    squares = sum(value * value for value in values)
    if len(values) < 2 or squares == 0:
        return None
    return round(sum(values) ** 2 / (len(values) * squares), 6)


class _Parts:
    """The run in parts of equal length, and how long each device was served in each."""

    def __init__(self, record: Record) -> None:
        self.length_ms = max(record.end_ms, 1) / PARTS
        self.busy_ms: dict[tuple[int, int], float] = defaultdict(float)
        rows = zip(record.busy_device, record.busy_from_ms, record.busy_until_ms, strict=True)
        for device, begin_ms, end_ms in rows:
            first = self.at(begin_ms)
            last = self.at(end_ms)
            if first == last:
                self.busy_ms[device, first] += end_ms - begin_ms
                continue
            for part in range(first, last + 1):
                within_ms = min(end_ms, self.ends(part)) - max(begin_ms, self.ends(part - 1))
                self.busy_ms[device, part] += max(0.0, within_ms)

    def at(self, time_ms: int) -> int:
        """Return the part that holds a time."""
        return min(PARTS - 1, int(time_ms / self.length_ms))

    def ends(self, part: int) -> float:
        """Return when a part ends."""
        return (part + 1) * self.length_ms


class _Competition:
    """Who was backlogged throughout which part, and got how much of it."""

    def __init__(self, workload: Workload, record: Record, parts: _Parts) -> None:
        weights = workload.weights
        self._weights = [weights.get(mac, 1.0) for mac in record.macs]
        self._parts = parts
        self._rivals: list[list[int]] = [[] for _ in range(PARTS)]
        limited = workload.limited
        for device, from_ms, until_ms in _backlogs(record):
            if record.macs[device] in limited:
                continue
            first = -int(-from_ms // parts.length_ms)
            for part in range(first, int(until_ms / parts.length_ms)):
                self._rivals[part].append(device)

    def over_time(self) -> tuple[float | None, ...]:
        """Return Jain's index of each part, of the time by weight."""
        return tuple(
            jain([self._parts.busy_ms.get((device, part), 0.0) / self._weights[device]
                  for device in rivals])
            for part, rivals in enumerate(self._rivals)
        )  # fmt: skip

    def overall(self) -> float | None:
        """Return Jain's index of what each device got beside its fair part, over the whole run."""
        got: dict[int, float] = defaultdict(float)
        due: dict[int, float] = defaultdict(float)
        for part, rivals in enumerate(self._rivals):
            if len(rivals) < 2:
                continue
            times = [self._parts.busy_ms.get((device, part), 0.0) for device in rivals]
            by_weight = sum(times) / sum(self._weights[device] for device in rivals)
            for device, time_ms in zip(rivals, times, strict=True):
                got[device] += time_ms
                due[device] += by_weight * self._weights[device]
        return jain([got[device] / due[device] for device in got if due[device] > 0])


def _backlogs(record: Record) -> Iterator[tuple[int, int, int]]:
    """Return when each device had a task waiting, without a gap: (device, from, until)."""
    tasks = sorted(
        (record.device[task], record.arrived_ms[task], _left_ms(record, task))
        for task in range(len(record))
        if record.started_ms[task] != DROPPED
    )
    device, from_ms, until_ms = -1, 0, 0
    for whose, arrived_ms, left_ms in tasks:
        if whose == device and arrived_ms <= until_ms:
            until_ms = max(until_ms, left_ms)
            continue
        if until_ms > from_ms:
            yield device, from_ms, until_ms
        device, from_ms, until_ms = whose, arrived_ms, left_ms
    if until_ms > from_ms:
        yield device, from_ms, until_ms


def _left_ms(record: Record, task: int) -> int:
    started_ms = record.started_ms[task]
    return record.end_ms if started_ms == NEVER else started_ms


def _queue(record: Record, parts: _Parts) -> list[int]:
    """Return the longest queue in each part."""
    kept = [task for task in range(len(record)) if record.started_ms[task] != DROPPED]
    came = [(record.arrived_ms[task], 1) for task in kept]
    left = [(record.started_ms[task], -1) for task in kept if record.started_ms[task] != NEVER]
    longest = [0] * PARTS
    length = last = 0
    moves = sorted(came + left)
    for at, (time_ms, change) in enumerate(moves):
        part = parts.at(time_ms)
        for passed in range(last + 1, part + 1):
            longest[passed] = length
        last = part
        length += change
        if at + 1 == len(moves) or moves[at + 1][0] > time_ms:
            longest[part] = max(longest[part], length)
    for passed in range(last + 1, PARTS):
        longest[passed] = length
    return longest


def _shares(workload: Workload, record: Record, parts: _Parts) -> Mapping[str, tuple[float, ...]]:
    names = [workload.groups.get(mac, OTHERS) for mac in record.macs]
    totals = [0.0] * PARTS
    times: dict[str, list[float]] = {name: [0.0] * PARTS for name in _order(workload, names)}
    for (device, part), time_ms in parts.busy_ms.items():
        times[names[device]][part] += time_ms
        totals[part] += time_ms
    return {
        name: tuple(_ratio(time, total) for time, total in zip(row, totals, strict=True))
        for name, row in times.items()
    }


def _groups(workload: Workload, record: Record, busy_ms: float) -> Iterator[Group]:
    names = [workload.groups.get(mac, OTHERS) for mac in record.macs]
    waits: dict[str, list[int]] = defaultdict(list)
    tasks: dict[str, int] = defaultdict(int)
    done: dict[str, int] = defaultdict(int)
    for task, device in enumerate(record.device):
        name, started_ms = names[device], record.started_ms[task]
        tasks[name] += 1
        done[name] += record.ended_ms[task] != NEVER
        if started_ms >= 0:
            waits[name].append(started_ms - record.arrived_ms[task])
    served: dict[str, int] = defaultdict(int)
    for mac, time_ms in record.time_ms().items():
        served[workload.groups.get(mac, OTHERS)] += time_ms
    for name in _order(workload, names):
        ordered = sorted(waits[name])
        yield Group(
            group=name,
            devices=names.count(name),
            tasks=tasks[name],
            done=done[name],
            wait_p50_ms=percentile(ordered, 500),
            wait_p99_ms=percentile(ordered, 990),
            wait_max_ms=percentile(ordered, 1000),
            share=_ratio(served[name], busy_ms),
            waits_ms=tuple(at for mille in QUANTILES
                           if (at := percentile(ordered, mille)) is not None),
        )  # fmt: skip


def percentile(ordered: Sequence[int], mille: int) -> int | None:
    """Return the value that so many per mille do not exceed; None of no values."""
    if not ordered:
        return None
    return ordered[max(0, -(-len(ordered) * mille // 1000) - 1)]


def _order(workload: Workload, names: Sequence[str]) -> list[str]:
    """Return the groups that have devices, in the workload's order."""
    there = set(names)
    return [name for name in dict.fromkeys((*workload.groups.values(), OTHERS)) if name in there]


def _ratio(one: float, other: float) -> float:
    return round(one / other, 6) if other else 0.0
