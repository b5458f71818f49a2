"""What the protocol speaks of, as frozen values, and the life of a task as data.

The rule: values here do no I/O and know no key. Times are milliseconds of the store's clock
(`*_ms`). `TRANSITIONS` is the state machine: the Lua prelude and `docs/lifecycle.md` carry the
same table, and a test holds the three together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha1
from types import MappingProxyType
from typing import Any, Final

import msgspec

from fairlane.levels import Histogram as Histogram
from fairlane.levels import Lane as Lane
from fairlane.levels import Share as Share


class TaskState(StrEnum):
    """Where a task is; a task is in exactly one state at any time."""

    PENDING = "pending"
    LEASED = "leased"
    RUNNING = "running"
    DELAYED = "delayed"
    DONE = "done"
    FAILED = "failed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    DEAD = "dead"


_S = TaskState

TRANSITIONS: Final[Mapping[TaskState, frozenset[TaskState]]] = MappingProxyType(
    {
        _S.PENDING: frozenset({_S.LEASED, _S.EXPIRED, _S.CANCELLED, _S.DEAD}),
        _S.LEASED: frozenset(
            {_S.RUNNING, _S.PENDING, _S.DELAYED, _S.EXPIRED, _S.CANCELLED, _S.DEAD}
        ),
        _S.RUNNING: frozenset(
            {_S.DONE, _S.FAILED, _S.PENDING, _S.DELAYED, _S.EXPIRED, _S.CANCELLED, _S.DEAD}
        ),
        _S.DELAYED: frozenset({_S.PENDING, _S.EXPIRED, _S.CANCELLED, _S.DEAD}),
        _S.DONE: frozenset(),
        _S.FAILED: frozenset(),
        _S.EXPIRED: frozenset(),
        _S.CANCELLED: frozenset(),
        # A redrive starts a new series of attempts.
        _S.DEAD: frozenset({_S.PENDING}),
    }
)

TERMINAL: Final = frozenset({_S.DONE, _S.FAILED, _S.EXPIRED, _S.CANCELLED, _S.DEAD})


@dataclass(frozen=True, slots=True)
class Task:
    """A task as its handler sees it; `data` is equal to what was enqueued."""

    task_id: str
    task_type: str
    mac: str
    created_at_ms: int
    attempt: int
    data: Mapping[str, Any]


# The two verdicts are made once a task: a Struct takes a quarter of a dataclass's time.
class Receipt(msgspec.Struct, frozen=True, gc=False):
    """A task is stored; `known` when an earlier call had stored it, and then `state` is current.

    `pending` is what the device had waiting, this task included (0 for a known task). `state` is
    None when an idempotency key outlived the record of its task, which has ended.
    """

    task_id: str
    mac: str
    created_at_ms: int
    pending: int
    state: TaskState | None = TaskState.PENDING
    known: bool = False


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """Admission said no and nothing was stored; an expected outcome, not an error.

    `reason` is device_full, site_full, global_full, store_full or idempotency_full; `pending` and
    `limit` are what was compared: tasks, percent of the store's memory, or keys.
    """

    task_id: str
    mac: str
    reason: str
    pending: int
    limit: int
    retry_after_ms: int


@dataclass(frozen=True, slots=True)
class Leased:
    """The right to run one attempt of a task; `payload` is there only if it was asked for."""

    task_id: str
    attempt: int
    task_type: str
    mac: str
    payload: bytes = b""


@dataclass(frozen=True, slots=True)
class Claimed:
    """What a claim brought: leased tasks, tasks that had expired, and the next due time (or 0).

    `now_ms` is the store's clock at the claim.
    """

    leased: tuple[Leased, ...]
    expired: tuple[str, ...]
    next_due_ms: int
    now_ms: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Turn:
    """An open two-step turn: the lock on a device, with the fencing token that proves it."""

    mac: str
    lane: str
    token: str
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class TurnStatus:
    """A renewed turn: until when, how large its batch may be, whether another device starves."""

    deadline_ms: int
    batch: int
    other_starved: bool


@dataclass(frozen=True, slots=True)
class Released:
    """An ended turn: what the device has left in the lane, and whether another device starves."""

    remaining: int
    other_starved: bool


@dataclass(frozen=True, slots=True)
class Started:
    """A running task, its lease's deadline, and the trace context that came with it, if any."""

    task: Task
    lease_until_ms: int
    traceparent: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where a failed or deferred attempt left its task: `due_ms` is 0 unless it waits."""

    state: TaskState
    due_ms: int
    defers: int = 0


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep took back: `lost` are `task_id.attempt`, `workers` the ids of silent workers.

    `backoffs` counts the devices that may go again, after a backoff or for a new token;
    `receipts` counts idempotency keys whose time is over.
    """

    lost: tuple[str, ...]
    dead: tuple[str, ...]
    backoffs: int
    delays: int
    turns: int
    workers: tuple[str, ...]
    receipts: int = 0


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A task's record as an operator reads it; times are 0 and texts empty until they happen.

    `place` counts from the end served next, 0 first; -1 when the task is not queued.
    """

    task_id: str
    state: TaskState
    task_type: str
    mac: str
    lane: str
    created_at_ms: int
    expires_at_ms: int
    attempt: int
    failures: int
    defers: int
    place: int
    payload: bytes
    claimed_at_ms: int = 0
    started_at_ms: int = 0
    ended_at_ms: int = 0
    due_at_ms: int = 0
    worker: str = ""
    cause: str = ""
    error: str = ""
    result: bytes = b""


@dataclass(frozen=True, slots=True)
class DeviceLane:
    """A device in one lane.

    `rank` is its place in the service order, -1 when it is not in the schedule, and then
    `held_by` says why: `nothing queued`, `paused`, `backoff` (until `until_ms`), `turn`,
    `max_running` or `rate` (a token at `until_ms`).
    `tag` is its start tag under `fair`.
    """

    lane: str
    queued: int
    pending: int
    leased: int
    oldest_ms: int
    served_at_ms: int
    rank: int
    tag: int
    held_by: str
    until_ms: int


@dataclass(frozen=True, slots=True)
class DeviceLimits:
    """What was configured of a device; 0 is no limit, and an empty site none of its own."""

    weight: float = 1.0
    paused: bool = False
    min_running: int = 0
    max_running: int = 0
    rate_per_s: float = 0.0
    site: str = ""

    @property
    def version(self) -> str:
        """What tells these settings from others; `configure.lua` makes the same of its own."""
        texts = (f"{self.weight:.6g}", f"{self.paused:d}", self.min_running, self.max_running,
                 f"{self.rate_per_s:.6g}", self.site or "-")  # fmt: skip
        return sha1(" ".join(map(str, texts)).encode(), usedforsecurity=False).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Device:
    """A device: its load, its settings and its place, lane by lane.

    `score` is the document's S(d, t), `waited_ms` its W(d, t), exact at `now_ms`.
    """

    mac: str
    now_ms: int
    pending: int
    oldest_ms: int
    waited_ms: int
    score: float
    leased: int
    site: str
    limits: DeviceLimits
    lanes: tuple[DeviceLane, ...]


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker's last report; loads are percent, None when they are not known."""

    worker_id: str
    lanes: tuple[str, ...]
    slots: int
    gpu: bool
    active: int
    reason: str
    last_heartbeat_ms: int
    age_ms: int
    report: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Watermark:
    """The system's level at `timestamp` (RFC 3339, UTC)."""

    total_pending: int
    mac_count: int
    active_workers: int
    overloaded_macs: int
    delayed: int
    leased: int
    dead_letters: int
    drained_per_hour: int
    timestamp: str


@dataclass(frozen=True, slots=True)
class Fullness:
    """How full the store's memory is; `is_full` when it takes no task in, `has_changed` if new."""

    is_full: bool
    percent: int
    has_changed: bool


@dataclass(frozen=True, slots=True)
class Overload:
    """The document's overload formula and what it compared."""

    overloaded: bool
    global_pending: int
    overloaded_devices: int


@dataclass(frozen=True, slots=True)
class Seen:
    """What a process last saw of the store's epoch; `lost` is what the store had lost until then.

    `lost` is empty, `empty` (the store came back with nothing) or `older` (as a copy of an
    earlier moment).
    """

    epoch_id: str = ""
    sweeps: int = 0
    at_ms: int = 0
    lost: str = ""


@dataclass(frozen=True, slots=True)
class Epoch:
    """A stretch of time in which the store lost nothing.

    `lost` is `empty` or `older` when the store came back so at `lost_at_ms`, and until somebody
    takes note of it (`Acknowledge`); else it is empty.
    """

    epoch_id: str
    sweeps: int
    began_at_ms: int
    lost: str
    lost_at_ms: int
    acknowledged_at_ms: int


@dataclass(frozen=True, slots=True)
class Totals:
    """What is in the system now, and how everything that was ever accepted ended."""

    counts: Mapping[str, int]
    pending: int
    leased: int
    delayed: int
    dead_letters: int
    #: Names of counts that another program spoiled: they are left out, and begin anew.
    spoiled: tuple[str, ...] = ()

    def lost(self) -> int:
        """Return accepted tasks that are neither in the system nor ended: 0, or a bug."""
        ended = sum(
            self.counts.get(state, 0) for state in ("done", "failed", "expired", "cancelled")
        )
        dead = self.counts.get("dead", 0) - self.counts.get("redriven", 0)
        return self.counts.get("accepted", 0) - ended - dead - self.pending - self.leased


@dataclass(frozen=True, slots=True)
class Event:
    """An entry of the event stream; `tasks` are ids, or `task_id.attempt` of a claim or start."""

    event_id: str
    event: str
    at_ms: int
    mac: str
    lane: str
    tasks: tuple[str, ...]
    detail: str
