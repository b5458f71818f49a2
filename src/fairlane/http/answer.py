"""What routes answer, as pydantic models.

The rule: a model here is a value of `fairlane.model` as HTTP tells it: times are RFC 3339 in UTC or
null, durations are seconds, and nothing else changes its name. The OpenAPI is made from these.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import msgspec
from pydantic import BaseModel, ConfigDict

from fairlane import model
from fairlane.errors import CorruptReply
from fairlane.model import TaskState
from fairlane.timeline import timeline

_LAST_MS: Final = 253_402_300_799_999


class Answer(BaseModel):
    """Anything a route answers."""

    model_config = ConfigDict(frozen=True)


class Task(Answer):
    """A task's record; `place` counts from the end served next, null when it is not queued."""

    task_id: str
    state: TaskState
    task_type: str
    mac: str
    lane: str
    data: dict[str, Any]
    created_at: str | None
    expires_at: str | None
    attempt: int
    failures: int
    defers: int
    place: int | None
    claimed_at: str | None
    started_at: str | None
    ended_at: str | None
    due_at: str | None
    worker: str
    cause: str
    error: str
    result: dict[str, Any] | None


class Happening(Answer):
    """Something that happened to a task; `due` is to come."""

    event: str
    at: str | None
    attempt: int
    worker: str
    detail: str


class TaskWithTimeline(Task):
    """A task's record, and what happened to it in order of time."""

    timeline: list[Happening]


class Cancelled(Answer):
    """A task is cancelled, by this call or an earlier one."""

    task_id: str
    state: TaskState


class DeviceLane(Answer):
    """A device in one lane; `rank` null and `held_by` why, when it is not in the schedule."""

    lane: str
    queued: int
    pending: int
    leased: int
    oldest_at: str | None
    served_at: str | None
    rank: int | None
    tag: int
    held_by: str
    until: str | None


class DeviceLimits(Answer):
    """What was configured of a device; 0 is no limit, an empty site none of its own."""

    weight: float
    paused: bool
    min_running: int
    max_running: int
    rate_per_s: float
    site: str


class Device(Answer):
    """A device: its load, its limits and its place, lane by lane; `score` is S(d, t) at `now`."""

    mac: str
    now: str | None
    pending: int
    oldest_at: str | None
    waited_seconds: float
    score: float
    leased: int
    site: str
    limits: DeviceLimits
    lanes: list[DeviceLane]


class Devices(Answer):
    """A page of devices; ask again with `next_cursor` until it is null."""

    devices: list[Device]
    next_cursor: str | None


class Lane(Answer):
    """A lane: `scheduled` devices can go now, `credits` tasks can be taken."""

    name: str
    next_mac: str
    pending: int
    scheduled: int
    leased: int
    slots: int
    credits: int
    backoffs: int
    throttled: int
    sites: int


class Lanes(Answer):
    """Every lane."""

    lanes: list[Lane]


class Worker(Answer):
    """A worker's last report; `reason` why it offers nothing."""

    worker_id: str
    lanes: list[str]
    slots: int
    gpu: bool
    active: int
    reason: str
    last_heartbeat: str | None
    age_seconds: float
    report: dict[str, str]


class Workers(Answer):
    """The workers whose report has not run out."""

    workers: list[Worker]


class Watermark(Answer):
    """The system's level when it was last published."""

    total_pending: int
    mac_count: int
    active_workers: int
    overloaded_macs: int
    delayed: int
    leased: int
    dead_letters: int
    drained_per_hour: int
    timestamp: str


# Those who send at once are told the same moment.
@lru_cache(maxsize=256)
def when(ms: int) -> str | None:
    """Return a time of the store's clock as RFC 3339, or None for what has not happened."""
    if not 0 < ms <= _LAST_MS:
        return None
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def task(record: model.TaskRecord) -> Task:
    """Return a task's record. Raises CorruptReply for bytes that are no JSON."""
    return Task(
        task_id=record.task_id,
        state=record.state,
        task_type=record.task_type,
        mac=record.mac,
        lane=record.lane,
        data=_object(record.payload) or {},
        created_at=when(record.created_at_ms),
        expires_at=when(record.expires_at_ms),
        attempt=record.attempt,
        failures=record.failures,
        defers=record.defers,
        place=None if record.place < 0 else record.place,
        claimed_at=when(record.claimed_at_ms),
        started_at=when(record.started_at_ms),
        ended_at=when(record.ended_at_ms),
        due_at=when(record.due_at_ms),
        worker=record.worker,
        cause=record.cause,
        error=record.error,
        result=_object(record.result),
    )


def task_with_timeline(record: model.TaskRecord) -> TaskWithTimeline:
    """Return a task's record with its timeline. Raises CorruptReply for bytes that are no JSON."""
    told = [
        Happening(
            event=each.event,
            at=when(each.at_ms),
            attempt=each.attempt,
            worker=each.worker,
            detail=each.detail,
        )
        for each in timeline(record)
    ]
    return TaskWithTimeline(**task(record).model_dump(), timeline=told)


def limits(found: model.DeviceLimits) -> DeviceLimits:
    """Return a device's limits."""
    return DeviceLimits(
        weight=found.weight,
        paused=found.paused,
        min_running=found.min_running,
        max_running=found.max_running,
        rate_per_s=found.rate_per_s,
        site=found.site,
    )


def device(found: model.Device) -> Device:
    """Return a device."""
    return Device(
        mac=found.mac,
        now=when(found.now_ms),
        pending=found.pending,
        oldest_at=when(found.oldest_ms),
        waited_seconds=found.waited_ms / 1000,
        score=found.score,
        leased=found.leased,
        site=found.site,
        limits=limits(found.limits),
        lanes=[_device_lane(lane) for lane in found.lanes],
    )


def lane(found: model.Lane) -> Lane:
    """Return a lane."""
    return Lane(
        name=found.name,
        next_mac=found.next_mac,
        pending=found.pending,
        scheduled=found.scheduled,
        leased=found.leased,
        slots=found.slots,
        credits=found.credits,
        backoffs=found.backoffs,
        throttled=found.throttled,
        sites=found.sites,
    )


def worker(found: model.Worker) -> Worker:
    """Return a worker."""
    return Worker(
        worker_id=found.worker_id,
        lanes=list(found.lanes),
        slots=found.slots,
        gpu=found.gpu,
        active=found.active,
        reason=found.reason,
        last_heartbeat=when(found.last_heartbeat_ms),
        age_seconds=found.age_ms / 1000,
        report=dict(found.report),
    )


def _device_lane(found: model.DeviceLane) -> DeviceLane:
    return DeviceLane(
        lane=found.lane,
        queued=found.queued,
        pending=found.pending,
        leased=found.leased,
        oldest_at=when(found.oldest_ms),
        served_at=when(found.served_at_ms),
        rank=None if found.rank < 0 else found.rank,
        tag=found.tag,
        held_by=found.held_by,
        until=when(found.until_ms),
    )


def _object(encoded: bytes) -> dict[str, Any] | None:
    if not encoded:
        return None
    try:
        return msgspec.json.decode(encoded, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise CorruptReply(f"a record holds bytes that are no JSON object: {error}") from error
