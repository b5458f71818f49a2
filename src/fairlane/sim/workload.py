"""What a simulation is given: who sends which task when, and what happens to the lanes.

The rule: a workload is a value. It holds every number that a run depends on, so the same workload
gives the same result, and a policy cannot bend it. Times are ms since the simulation's begin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from fairlane.errors import InvalidInput
from fairlane.settings import Settings
from fairlane.tasktype import TaskType
from fairlane.verbs import Configure

NO_LIMIT: Final = 10**9
_WEEK_MS: Final = 7 * 24 * 3_600_000


class InvalidWorkload(InvalidInput):
    """A workload that cannot be run; the message says where, and what would be right."""


class Arrival(NamedTuple):
    """One task: when it comes, whose it is, which task type, how long it will run."""

    at_ms: int
    mac: str
    kind: str
    service_ms: int


@dataclass(frozen=True, slots=True)
class Returning:
    """A device that sends its next task only when the last one is done, `think_ms` after it."""

    mac: str
    kind: str
    service_ms: int
    first_ms: int = 0
    think_ms: int = 0
    until_ms: int = NO_LIMIT


@dataclass(frozen=True, slots=True)
class Outage:
    """A time in which a lane has no worker; what ran in it at its begin is lost."""

    lane: str
    from_ms: int
    until_ms: int


@dataclass(frozen=True)
class Workload:
    """A traffic to simulate.

    `arrivals` in order of time; `slots` by task type, each type being a lane; `groups` names the
    devices to be told apart in the report; `sites` the devices that belong to a site; `changes`
    what is configured when; `settings` shared settings of the store other than their defaults.
    At `until_ms` the simulation stops, whatever waits; None runs it to the end.
    Raises InvalidWorkload for a type without slots, or times that are not in order.
    """

    name: str
    arrivals: Sequence[Arrival]
    slots: Mapping[str, int]
    groups: Mapping[str, str]
    returning: Sequence[Returning] = ()
    outages: Sequence[Outage] = ()
    changes: Sequence[tuple[int, Configure]] = ()
    sites: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    until_ms: int | None = None

    def __post_init__(self) -> None:
        last_ms = 0
        for arrival in self.arrivals:
            if arrival.at_ms < last_ms:
                raise InvalidWorkload(f"{self.name}: arrivals are not in order of time")
            last_ms = arrival.at_ms
        kinds = {task.kind for task in self.arrivals}
        kinds |= {device.kind for device in self.returning}
        lanes = {outage.lane for outage in self.outages}
        for kind in sorted(kinds | lanes):
            if self.slots.get(kind, 0) < 1:
                raise InvalidWorkload(f"{self.name}: the lane {kind} has no slots")
        if not kinds:
            raise InvalidWorkload(f"{self.name}: it has no task")

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each device that is configured to have one."""
        return {
            change.mac: change.weight for _, change in self.changes if change.weight is not None
        }

    def shortest_ms(self, kind: str) -> int:
        """Return how long the shortest task of a type runs; 1 without any."""
        times = [task.service_ms for task in self.arrivals if task.kind == kind]
        times += [device.service_ms for device in self.returning if device.kind == kind]
        return min(times, default=1)

    @property
    def limited(self) -> frozenset[str]:
        """The devices that can have tasks that wait although it would be their turn."""
        return frozenset(
            change.mac
            for _, change in self.changes
            if change != Configure(change.mac, weight=change.weight)
        )

    def settings_for(self, policy: str) -> Settings:
        """Return the settings of a store: every task type is a lane, and nothing is refused.

        What `settings` says goes before that.
        """
        types = tuple(TaskType(kind, kind, f"simulated.{kind}") for kind in sorted(self.slots))
        shared = {
            "task_types": types,
            "policy": policy,
            "max_total_pending": NO_LIMIT,
            "max_per_mac_pending": NO_LIMIT,
            "task_ttl_ms": _WEEK_MS,
            # Records go by the server's own clock, and nobody reads them afterwards.
            "result_ttl_ms": 1_000,
            "events_maxlen": 100,
            **self.settings,
        }
        return Settings(**shared)


def mac_of(number: int) -> str:
    """Return the made-up, locally administered address with a number."""
    return ":".join(f"{part:02x}" for part in (2, 0, *number.to_bytes(4)))
