"""Processes: who runs beside whom, and whether they were started alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from fairlane.errors import InvalidData
from fairlane.process import Process, Processes
from fairlane.settings import Settings
from fairlane.verbs.bounds import checked_count, checked_flag
from fairlane.verbs.verb import Arg, Verb, pairs, storable, text

MAX_FIELDS: Final = 32
_OWN: Final = "announced_at"


@dataclass(frozen=True)
class Announce(Verb[bool]):
    """Announce a process and what it was started with; refuse a new one that disagrees.

    `agreed` are values that all living processes must have alike, as far as they name them;
    `report` is for people (role, version, digest). What was announced is void `lease_ms` later.
    False when it was announced already. Raises ProcessesDisagree, and InvalidData for more than 32
    values or one that the verb tells itself.
    """

    process_id: str
    is_new: bool = False
    agreed: Mapping[str, str] = field(default_factory=dict)
    report: Mapping[str, str] = field(default_factory=dict)
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> list[Arg]:
        """Return process, TTL, whether it is new, and the values."""
        checked_count("values", len(self.agreed) + len(self.report), MAX_FIELDS)
        args: list[Arg] = [storable(self.process_id), settings.lease_ms]
        args += [checked_flag("is_new", self.is_new), len(self.agreed)]
        for name, value in (*self.agreed.items(), *self.report.items()):
            if name == _OWN:
                raise InvalidData(f"report: {name} is told by the verb itself")
            args += (storable(name), storable(value))
        return args

    def decode(self, reply: Any) -> bool:
        """Return whether it is new to the store."""
        return bool(int(reply))


@dataclass(frozen=True)
class Withdraw(Verb[bool]):
    """Take a process out of those announced when it stops.

    False when it was gone already.
    """

    process_id: str
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return the process."""
        return (storable(self.process_id),)

    def decode(self, reply: Any) -> bool:
        """Return whether this call took it out."""
        return bool(int(reply))


@dataclass(frozen=True)
class InspectProcesses(Verb[Processes]):
    """Read the announced processes: role, release, settings; and which dispatcher leads."""

    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return nothing."""
        return ()

    def decode(self, reply: Any) -> Processes:
        """Return the processes that live, and the leader or ''."""
        now_ms = int(reply[0])
        living = tuple(
            _process(text(process_id), dict(pairs(row)), now_ms)
            for process_id, deadline, row in reply[2]
            if int(deadline) > now_ms
        )
        return Processes(text(reply[1]), living)


def _process(process_id: str, row: Mapping[str, bytes], now_ms: int) -> Process:
    said = {name: value.decode(errors="replace") for name, value in row.items()}
    at = said.pop(_OWN, "")
    return Process(
        process_id=process_id,
        role=said.pop("role", ""),
        version=said.pop("version", ""),
        digest=said.pop("digest", ""),
        age_ms=now_ms - int(at) if at.isdecimal() else 0,
        report=said,
    )
