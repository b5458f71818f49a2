"""Workers: what they offer, and who leads the dispatchers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from fairlane.errors import InvalidData
from fairlane.ids import checked_task_id
from fairlane.model import Worker
from fairlane.settings import Settings
from fairlane.verbs.bounds import (
    checked_attempt,
    checked_count,
    checked_flag,
    checked_limit,
)
from fairlane.verbs.turns import known_lane
from fairlane.verbs.verb import Arg, Verb, pairs, storable, text, texts

MAX_ACTIVE: Final = 1_000
MAX_SLOTS: Final = 10_000
MAX_FIELDS: Final = 64
MAX_LEAD_MS: Final = 3_600_000
_OWN: Final = frozenset({"lanes", "slots", "gpu", "active", "last_heartbeat"})


@dataclass(frozen=True)
class Heartbeat(Verb[tuple[str, ...]]):
    """Report a worker: what it offers and how loaded it is; extend the leases of what it runs.

    `worker_id` is `hostname:pid:nonce`; `slots` what it offers in its `lanes` together; `active`
    the (task_id, attempt) pairs that it runs; `report` more fields for people (cpu, memory, gpus,
    reason). Returns the tasks, as `task_id.attempt`, that it should not run any more.
    Raises UnknownLane, InvalidTaskId, InvalidData for more than 1,000 active tasks or a report that
    says what the heartbeat says itself.
    """

    worker_id: str
    lanes: Sequence[str]
    slots: int
    gpu: bool = False
    active: Sequence[tuple[str, int]] = ()
    report: Mapping[str, str] = field(default_factory=dict)
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> list[Arg]:
        """Return worker, TTL, lanes, slots, GPU, the active tasks, the report."""
        if len(self.active) > MAX_ACTIVE:
            raise InvalidData(
                f"active: {len(self.active)} tasks; a worker runs {MAX_ACTIVE} at most"
            )
        lanes = ",".join(known_lane(lane, settings) for lane in self.lanes)
        worker_id = storable(self.worker_id)
        slots, gpu = checked_count("slots", self.slots, MAX_SLOTS), checked_flag("gpu", self.gpu)
        args: list[Arg] = [worker_id, settings.lease_ms, lanes, slots, gpu]
        args.append(len(self.active))
        for task_id, attempt in self.active:
            args += (checked_task_id(task_id), checked_attempt(attempt))
        checked_count("report", len(self.report), MAX_FIELDS)
        for name, value in self.report.items():
            if name in _OWN:
                raise InvalidData(f"report: {name} is told by the heartbeat itself")
            args += (storable(name), storable(value))
        return args

    def decode(self, reply: Any) -> tuple[str, ...]:
        """Return the attempts that are not the worker's any more."""
        return texts(reply)


@dataclass(frozen=True)
class Deregister(Verb[bool]):
    """Take a worker's offer away when it stops.

    False when it was gone already.
    """

    worker_id: str
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return the worker."""
        return (storable(self.worker_id),)

    def decode(self, reply: Any) -> bool:
        """Return whether this call took it away."""
        return bool(int(reply))


@dataclass(frozen=True)
class InspectWorkers(Verb[tuple[Worker, ...]]):
    """Read the workers: what each offers, how loaded it is, and why it offers nothing."""

    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return nothing."""
        return ()

    def decode(self, reply: Any) -> tuple[Worker, ...]:
        """Return the workers whose report has not run out."""
        now_ms = int(reply[0])
        return tuple(
            _worker(text(worker_id), dict(pairs(row)), now_ms)
            for worker_id, deadline, row in reply[1]
            if int(deadline) > now_ms
        )


@dataclass(frozen=True)
class Lead(Verb[bool]):
    """Take or keep the lead among dispatchers, so that one of them does the work.

    Two dispatchers are safe, only wasteful: this lease saves work and protects nothing.
    """

    holder: str
    lease_ms: int = 10_000
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return holder and lease."""
        return (storable(self.holder), checked_limit(self.lease_ms, MAX_LEAD_MS))

    def decode(self, reply: Any) -> bool:
        """Return whether the holder leads."""
        return bool(int(reply))


def _worker(worker_id: str, row: Mapping[str, bytes], now_ms: int) -> Worker:
    report = {name: value.decode(errors="replace") for name, value in row.items()}
    last_ms = _number(report.pop("last_heartbeat", ""))
    return Worker(
        worker_id=worker_id,
        lanes=tuple(filter(None, report.pop("lanes", "").split(","))),
        slots=_number(report.pop("slots", "")),
        gpu=report.pop("gpu", "0") == "1",
        active=_number(report.pop("active", "")),
        reason=report.pop("reason", ""),
        last_heartbeat_ms=last_ms,
        age_ms=now_ms - last_ms,
        report=report,
    )


def _number(words: str) -> int:
    # A row that another program spoilt must not hide the other workers.
    return int(words) if words.isdecimal() else 0
