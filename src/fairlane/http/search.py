"""GET /v1/tasks: tasks searched for.

The rule: a search is bounded, and says so. It answers what it has found by then, how many entries
it looked at, and where to go on.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from fairlane import verbs
from fairlane.client.calls import inspect_device as device_verb
from fairlane.http import answer
from fairlane.http.body import StrictRoute
from fairlane.http.caller import READERS, SENDERS, Caller, caller, forbidden
from fairlane.http.dead import Moment
from fairlane.http.gate import Gate, within_limit
from fairlane.http.openapi import Mac, problems
from fairlane.http.sentence import sentence
from fairlane.mac import canonical
from fairlane.model import TaskRecord, TaskState
from fairlane.verbs.search import FEW_LOOKED, MOST_LOOKED, TaskPage, TaskQuery, search

router = APIRouter(route_class=StrictRoute, tags=["tasks"])

#: Of an error, in a list; the task's own page has all of it.
_SHOWN = 300


class TaskFilter(BaseModel):
    """Which tasks; what is not named does not matter."""

    model_config = ConfigDict(extra="forbid")
    state: TaskState | None = None
    mac: Mac | None = None
    lane: str | None = Field(None, max_length=200)
    task_type: str | None = Field(None, max_length=200)
    cause: str | None = Field(None, max_length=1_024)
    created_after: Moment | None = None
    created_before: Moment | None = None
    q: str | None = Field(None, max_length=200)

    def query(self, mac: str | None) -> TaskQuery:
        """Return the query, for the device that the caller is held to, if any."""
        after, before = self.created_after, self.created_before
        return TaskQuery(
            state=None if self.state is None else TaskState(self.state),
            mac=mac or "",
            task_type=self.task_type or "",
            cause=self.cause or "",
            created_after_ms=0 if after is None else max(0, int(after.timestamp() * 1000)),
            created_before_ms=0 if before is None else max(1, int(before.timestamp() * 1000)),
            words=self.q or "",
            lane=self.lane or "",
        )


class Search(TaskFilter):
    """Which tasks, how many, and from where on; what is not named does not matter."""

    limit: int = Field(50, ge=1, le=200)
    # Told as empty: what a search answered belongs to this search, and nobody can make one up.
    cursor: Annotated[str, Field(max_length=200, json_schema_extra={"pattern": "^$"})] = ""


class FoundTask(answer.Answer):
    """A task in a list: its record but for `data` and `result`; of `error` the end."""

    task_id: str
    state: TaskState
    task_type: str
    mac: str
    lane: str
    created_at: str | None
    expires_at: str | None
    attempt: int
    failures: int
    defers: int
    claimed_at: str | None
    started_at: str | None
    ended_at: str | None
    due_at: str | None
    worker: str
    cause: str
    error: str


class FoundTasks(answer.Answer):
    """What a search has found: `finished` when there is no more, else go on with `next_cursor`.

    `looked` entries were looked at by this call. Of tasks that have ended, those are found that the
    event stream still tells of, back to `ended_since`; null when that was not looked at.
    """

    tasks: list[FoundTask]
    looked: int
    finished: bool
    next_cursor: str | None
    ended_since: str | None


@router.get("/v1/tasks", summary=sentence(verbs.FindTasks), responses=problems(401, 403, 422, 503))
async def find_tasks(request: Request, asked: Annotated[Search, Query()]) -> FoundTasks:
    """Answer tasks: what runs, then what waits, what has ended, and the dead letters.

    `q` is the beginning of an id, a device in any notation, or a part of a type, cause or error.
    A device sees its own tasks, a producer with a site those of a device that it names.
    """
    gate: Gate = request.app.state.gate
    async with within_limit():
        reader = caller(request)
        named = None if asked.mac is None else canonical(asked.mac)
        mac = await held_to(reader, named, gate)
        page = await _found(gate, asked, mac, MOST_LOOKED if reader.role in READERS else FEW_LOOKED)
    return FoundTasks(
        tasks=[*map(_told, page.tasks)],
        looked=page.looked,
        finished=not page.cursor,
        next_cursor=page.cursor or None,
        ended_since=answer.when(page.ended_since_ms),
    )


async def _found(gate: Gate, asked: Search, mac: str | None, most: int) -> TaskPage:
    await gate.join()
    return await gate.follow(
        search(
            asked.query(mac),
            gate.client.settings,
            cursor=asked.cursor,
            limit=asked.limit,
            most=most,
        )
    )


async def held_to(reader: Caller, mac: str | None, gate: Gate) -> str | None:
    """Return the device whose tasks the caller may see. Raises a 403 for another one."""
    reader.needs((*READERS, *SENDERS))
    if reader.role == "device":
        reader.owns(mac or reader.mac)
        return reader.mac
    if reader.site and reader.role == "producer":
        if mac is None:
            raise forbidden(f"this caller may see the tasks of site {reader.site}: name a device")
        device = await gate.run(device_verb(mac, gate.client.settings))
        if device.site != reader.site:
            raise forbidden(f"this caller may see the tasks of site {reader.site} only")
    return mac


def _told(record: TaskRecord) -> FoundTask:
    return FoundTask(
        task_id=record.task_id,
        state=record.state,
        task_type=record.task_type,
        mac=record.mac,
        lane=record.lane,
        created_at=answer.when(record.created_at_ms),
        expires_at=answer.when(record.expires_at_ms),
        attempt=record.attempt,
        failures=record.failures,
        defers=record.defers,
        claimed_at=answer.when(record.claimed_at_ms),
        started_at=answer.when(record.started_at_ms),
        ended_at=answer.when(record.ended_at_ms),
        due_at=answer.when(record.due_at_ms),
        worker=record.worker,
        cause=record.cause,
        error=record.error[-_SHOWN:],
    )
