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

router = APIRouter(route_class=StrictRoute, tags=["tasks"])


class Force(BaseModel):
    """Whether to cancel a task that runs."""

    model_config = ConfigDict(extra="forbid")
    force: bool = False


@router.get(
    "/v1/tasks/{task_id}",
    summary=sentence(verbs.InspectTask),
    responses=problems(401, 403, 404, 422, 503),
)
async def inspect_task(request: Request, task_id: TaskIdInPath) -> answer.TaskWithTimeline:
    """Answer the record of a task, with what happened to it."""
    return answer.task_with_timeline(await _seen(request, task_id, caller(request)))


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
