"""What happened in a simulation, as columns.

The rule: a record tells, it does not judge; every figure of a report is made from it and the
workload alone. A task is its number, in order of arrival.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final

from fairlane.sim.workload import Arrival

NEVER: Final = -1
DROPPED: Final = -2


class Record:
    """The tasks of one run: whose they were, when they came, began and ended.

    A time is NEVER as long as that has not happened; a task that was refused, or expired before it
    began, counts as DROPPED.

    `busy` are the times in which a slot ran a task, also those of runs that were lost.
    """

    def __init__(self, kinds: Sequence[str]) -> None:
        self.kinds = tuple(kinds)
        self.macs: list[str] = []
        self.device = array("l")
        self.kind = array("b")
        self.service_ms = array("q")
        self.arrived_ms = array("q")
        self.started_ms = array("q")
        self.ended_ms = array("q")
        self.busy_device = array("l")
        self.busy_from_ms = array("q")
        self.busy_until_ms = array("q")
        self.refused = self.expired = self.dead = self.lost = 0
        self.end_ms = 0
        self._numbers: dict[str, int] = {}
        self._kind_numbers = {kind: at for at, kind in enumerate(self.kinds)}

    def __len__(self) -> int:
        return len(self.device)

    def mac_of(self, task: int) -> str:
        """Return whose a task is."""
        return self.macs[self.device[task]]

    def kind_of(self, task: int) -> str:
        """Return a task's type, which is its lane."""
        return self.kinds[self.kind[task]]

    def arrive(self, arrival: Arrival) -> int:
        """Note a task and return its number."""
        number = self._numbers.get(arrival.mac)
        if number is None:
            number = self._numbers[arrival.mac] = len(self.macs)
            self.macs.append(arrival.mac)
        self.device.append(number)
        self.kind.append(self._kind_numbers[arrival.kind])
        self.service_ms.append(arrival.service_ms)
        self.arrived_ms.append(arrival.at_ms)
        self.started_ms.append(NEVER)
        self.ended_ms.append(NEVER)
        return len(self.device) - 1

    def start(self, task: int, at_ms: int) -> None:
        """Note when a task began first."""
        if self.started_ms[task] == NEVER:
            self.started_ms[task] = at_ms

    def refuse(self, task: int) -> None:
        """Note that a task was not taken."""
        self.refused += 1
        self.started_ms[task] = DROPPED

    def expire(self, task: int) -> None:
        """Note that a task has ended because it waited too long."""
        self.expired += 1
        if self.started_ms[task] == NEVER:
            self.started_ms[task] = DROPPED

    def run(self, task: int, from_ms: int, until_ms: int) -> None:
        """Note a time in which a slot ran the task."""
        self.busy_device.append(self.device[task])
        self.busy_from_ms.append(from_ms)
        self.busy_until_ms.append(until_ms)

    def end(self, task: int, from_ms: int, at_ms: int) -> None:
        """Note that the task, which ran since `from_ms`, is done."""
        self.ended_ms[task] = at_ms
        self.run(task, from_ms, at_ms)

    @property
    def done(self) -> int:
        """How many tasks have ended well."""
        return sum(1 for at_ms in self.ended_ms if at_ms != NEVER)

    def waits_ms(self, *macs: str) -> list[int]:
        """Return how long the started tasks of these devices, or of all, waited."""
        wanted = {self._numbers[mac] for mac in macs if mac in self._numbers}
        return [
            started_ms - arrived_ms
            for device, arrived_ms, started_ms in zip(
                self.device, self.arrived_ms, self.started_ms, strict=True
            )
            if started_ms >= 0 and (not macs or device in wanted)
        ]

    def time_ms(self, from_ms: int = 0, until_ms: int | None = None) -> dict[str, int]:
        """Return how long the slots worked for each device, by MAC, within a time."""
        end_ms = self.end_ms if until_ms is None else until_ms
        totals = [0] * len(self.macs)
        for device, begin, end in zip(
            self.busy_device, self.busy_from_ms, self.busy_until_ms, strict=True
        ):
            within_ms = min(end, end_ms) - max(begin, from_ms)
            if within_ms > 0:
                totals[device] += within_ms
        return dict(zip(self.macs, totals, strict=True))
