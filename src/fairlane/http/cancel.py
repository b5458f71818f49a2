"""POST /v1/tasks:cancel: many tasks cancelled, chosen by the service.

The rule: one call looks at so many entries and says where to go on. Everything that waits is
cancelled only if that is said twice, by an empty filter and by `"all": true`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal, Self

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, model_validator

from fairlane import verbs
from fairlane.http.body import StrictRoute
from fairlane.http.caller import SENDERS, Caller, caller, forbidden
from fairlane.http.dead import Done, ways
from fairlane.http.gate import Gate
from fairlane.http.openapi import TaskId, problems
from fairlane.http.search import TaskFilter, held_to
from fairlane.http.sentence import sentence
from fairlane.ids import checked_task_id
from fairlane.mac import canonical
from fairlane.model import TaskState
from fairlane.verbs.cancel import AT_ONCE, Cancelled, cancelling
from fairlane.verbs.search import FEW_LOOKED

router = APIRouter(route_class=StrictRoute, tags=["tasks"])

#: Entries that one call looks at, and ids that it takes.
SCAN: Final = 1_000
_WITHOUT_RUNNING: Final = (TaskState.PENDING, TaskState.DELAYED, TaskState.LEASED)


class OpenTasks(TaskFilter):
    """Which tasks; without a `state` what waits, with `running` also a run that then is in vain."""

    state: (
        Literal[TaskState.PENDING, TaskState.DELAYED, TaskState.LEASED, TaskState.RUNNING] | None
    ) = None
    lane: str | None = Field(None, min_length=1, max_length=200)
    task_type: str | None = Field(None, min_length=1, max_length=200)
    cause: str | None = Field(None, min_length=1, max_length=1_024)
    q: str | None = Field(None, min_length=1, max_length=200)


class ChosenTasks(BaseModel):
    """Tasks by `task_ids` or by `filter`; for all that waits say `all`; `dry_run` only counts."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra=ways([*OpenTasks.model_fields], says_all=True)
    )
    task_ids: list[TaskId] | None = Field(None, min_length=1, max_length=SCAN)
    filter: OpenTasks | None = None
    all: bool = Field(False, strict=True)
    # Told as empty: what a call answered belongs to its filter, and nobody can make one up.
    cursor: Annotated[str, Field(max_length=200, json_schema_extra={"pattern": "^$"})] = ""
    dry_run: bool = Field(False, strict=True)

    @model_validator(mode="after")
    def _chooses_one_way(self) -> Self:
        if (self.task_ids is None) == (self.filter is None):
            raise ValueError("send `task_ids` or `filter`, one of the two")
        if self.filter is None:
            if self.all or self.cursor:
                raise ValueError("`all` and `cursor` go with a `filter`")
            return self
        given = self.filter.model_dump(exclude_none=True)
        # Blanks are no words: a search would mean everything by them.
        is_everything = not any(name != "q" or words.strip() for name, words in given.items())
        if self.all and not is_everything:
            raise ValueError("`all` goes with an empty `filter`")
        if is_everything and not (self.all or self.dry_run):
            raise ValueError('the `filter` is empty, which is all that waits: add `"all": true`')
        return self


@router.post(
    "/v1/tasks:cancel",
    summary=sentence(verbs.CancelMany),
    responses=problems(401, 403, 408, 413, 415, 422, 503),
)
async def cancel_many(request: Request, chosen: ChosenTasks) -> Done:
    """Cancel what is chosen; what has begun or ended meanwhile is left alone.

    A device cancels its own tasks, a producer with a site those of a device that it names. By
    `task_ids` what runs is left alone, too.
    """
    sender = caller(request).needs(SENDERS)
    gate: Gate = request.app.state.gate
    if chosen.filter is None:
        return await _by_ids(gate, sender, chosen.task_ids or (), is_dry=chosen.dry_run)
    named = None if chosen.filter.mac is None else canonical(chosen.filter.mac)
    query = chosen.filter.query(await held_to(sender, named, gate))
    await gate.join()
    found: Cancelled = await gate.follow(
        cancelling(
            query,
            gate.client.settings,
            dry_run=chosen.dry_run,
            cursor=chosen.cursor,
            most=SCAN if sender.role == "operator" else FEW_LOOKED,
        )
    )
    return Done(
        matched=found.matched,
        done=found.done,
        dry_run=chosen.dry_run,
        next_cursor=found.cursor or None,
    )


async def _by_ids(gate: Gate, sender: Caller, ids: Sequence[str], *, is_dry: bool) -> Done:
    if sender.role == "device" or (sender.role == "producer" and sender.site):
        raise forbidden("this caller may cancel by a `filter` of its device, or one task at a time")
    # All are checked before any is touched.
    left = [*map(checked_task_id, dict.fromkeys(ids))]
    matched, done = len(left), 0
    while left and not is_dry:
        verdicts = await gate.run(verbs.CancelMany(left[:AT_ONCE], _WITHOUT_RUNNING))
        done += sum(verdicts)
        left = left[len(verdicts) :]
    return Done(matched=matched, done=done, dry_run=is_dry, next_cursor=None)
