"""/v1/tasks/{task_id}: one task, read and cancelled."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict

from fairlane import verbs
from fairlane.client.calls import inspect_device as device_verb
from fairlane.http import answer
from fairlane.http.body import StrictRoute
from fairlane.http.caller import READERS, SENDERS, Caller, caller, forbidden
from fairlane.http.gate import Gate
from fairlane.http.openapi import TaskIdInPath, problems
from fairlane.http.sentence import sentence
from fairlane.model import TaskRecord, TaskState
from fairlane.verbs import explain as explained

router = APIRouter(route_class=StrictRoute, tags=["tasks"])


class Force(BaseModel):
    """Whether to cancel a task that runs."""

    model_config = ConfigDict(extra="forbid")
    force: bool = False


class Explanation(answer.Answer):
    """Why a task has not started; null where nobody knows.

    `place` is in its device's queue, `rank` its device's in its site, `ahead` how many tasks are
    likely served first. The start is an estimate, `p90` the later one.
    """

    task_id: str
    state: TaskState
    mac: str
    lane: str
    reason: str
    detail: str
    now: str | None
    until: str | None
    place: int | None
    rank: int | None
    ahead: int
    slots: int
    credits: int
    start_p50_seconds: float | None
    start_p90_seconds: float | None
    start_p50_at: str | None
    start_p90_at: str | None


@router.get(
    "/v1/tasks/{task_id}",
    summary=sentence(verbs.InspectTask),
    responses=problems(401, 403, 404, 422, 503),
)
async def inspect_task(request: Request, task_id: TaskIdInPath) -> answer.TaskWithTimeline:
    """Answer the record of a task, with what happened to it."""
    return answer.task_with_timeline(await _seen(request, task_id, caller(request)))


@router.get(
    "/v1/tasks/{task_id}/explain",
    summary=sentence(verbs.Explain),
    responses=problems(401, 403, 404, 422, 503),
)
async def explain(request: Request, task_id: TaskIdInPath) -> Explanation:
    """Answer why a task has not started, and when it will likely do.

    `reason` is one of `ended`, `running`, `leased`, `backoff`, `paused`, `turn`, `max_running`,
    `rate`, `no_worker`, `no_credits`, `behind`, `next`; `detail` says it in a sentence.
    """
    await _seen(request, task_id, caller(request))
    gate: Gate = request.app.state.gate
    return _explanation(await gate.run(verbs.Explain(task_id)))


@router.delete(
    "/v1/tasks/{task_id}",
    summary=sentence(verbs.Cancel),
    responses=problems(401, 403, 404, 409, 422, 503),
)
async def cancel(
    request: Request, task_id: TaskIdInPath, query: Annotated[Force, Query()]
) -> answer.Cancelled:
    """Cancel a task; a second time answers the same."""
    sender = caller(request).needs(SENDERS)
    gate: Gate = request.app.state.gate
    if sender.role == "device" or sender.site:
        await _seen(request, task_id, sender)
    await gate.run(verbs.Cancel(task_id, force=query.force))
    return answer.Cancelled(task_id=task_id, state=TaskState.CANCELLED)


def _explanation(found: explained.Explanation) -> Explanation:
    def seconds(ms: int | None) -> float | None:
        return None if ms is None else ms / 1000

    def at(ms: int | None) -> str | None:
        return None if ms is None else answer.when(found.now_ms + ms)

    return Explanation(
        task_id=found.task_id,
        state=found.state,
        mac=found.mac,
        lane=found.lane,
        reason=found.reason,
        detail=found.detail,
        now=answer.when(found.now_ms),
        until=answer.when(found.until_ms),
        place=None if found.place < 0 else found.place,
        rank=None if found.rank < 0 else found.rank,
        ahead=found.ahead,
        slots=found.slots,
        credits=found.credits,
        start_p50_seconds=seconds(found.start_p50_ms),
        start_p90_seconds=seconds(found.start_p90_ms),
        start_p50_at=at(found.start_p50_ms),
        start_p90_at=at(found.start_p90_ms),
    )


async def _seen(request: Request, task_id: str, reader: Caller) -> TaskRecord:
    """Return a task that the caller may see. Raises a 403 for another device's."""
    reader.needs((*READERS, *SENDERS))
    gate: Gate = request.app.state.gate
    record = await gate.run(verbs.InspectTask(task_id))
    reader.owns(record.mac)
    if reader.site and reader.role == "producer":
        device = await gate.run(device_verb(record.mac, gate.client.settings))
        if device.site != reader.site:
            raise forbidden(f"this caller may see the tasks of site {reader.site} only")
    return record
