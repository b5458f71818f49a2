"""/v1/dead-letters: listed, brought back, deleted.

The rule: one call looks at `SCAN` letters at most and says where to go on, whatever it was asked
for. To bring back everything has to be said (`"filter": {}`), not to be left out; to drop it, said
twice (`"all": true`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, Self

from fastapi import APIRouter, Query, Request
from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

from fairlane import verbs
from fairlane.http import answer
from fairlane.http.body import StrictRoute
from fairlane.http.caller import OPERATORS, READERS, caller
from fairlane.http.cursor import cursor_of, offset_of
from fairlane.http.gate import Gate
from fairlane.http.openapi import Cursor, Mac, TaskId, problems
from fairlane.http.sentence import sentence
from fairlane.ids import checked_task_id
from fairlane.mac import canonical
from fairlane.model import TaskRecord
from fairlane.verbs.dead import MOST_DEAD

router = APIRouter(route_class=StrictRoute, tags=["dead letters"])

#: Letters that one call looks at.
SCAN: Final = 1_000
#: Each comes with its whole payload, so a page of them is small.
_AT_ONCE: Final = 100
_RFC3339: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def _rfc3339(value: Any) -> Any:
    """Return a time's text. Raises ValueError for a number, which could be of any unit."""
    if not isinstance(value, str) or _RFC3339.fullmatch(value) is None:
        raise ValueError("write it as in 2026-01-31T12:00:00Z")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_rfc3339)]


class Filter(BaseModel):
    """Which dead letters; what is not named does not matter."""

    model_config = ConfigDict(extra="forbid")
    mac: Mac | None = None
    task_type: str | None = Field(None, max_length=200)
    cause: str | None = Field(None, max_length=1_024)
    after: Moment | None = None
    before: Moment | None = None

    def test(self) -> Callable[[TaskRecord], bool]:
        """Return what tells whether a record is meant. Raises InvalidMac."""
        mac = None if self.mac is None else canonical(self.mac)
        after_ms = None if self.after is None else self.after.timestamp() * 1000
        before_ms = None if self.before is None else self.before.timestamp() * 1000

        def is_meant(record: TaskRecord) -> bool:
            return (
                mac in (None, record.mac)
                and self.task_type in (None, record.task_type)
                and self.cause in (None, record.cause)
                and (after_ms is None or record.ended_at_ms >= after_ms)
                and (before_ms is None or record.ended_at_ms < before_ms)
            )

        return is_meant


class Page(Filter):
    """Which dead letters, how many, and from where on."""

    limit: int = Field(50, ge=1, le=200)
    cursor: Cursor = ""


class FilterFrom(Filter):
    """Which dead letters, and from where on."""

    cursor: Cursor = ""


def ways(names: Sequence[str], *, says_all: bool) -> dict[str, Any]:
    """Return, as a schema, the ways to choose, by ids or by a filter of these names.

    With `says_all` an empty filter needs `all`.
    """
    some = [{"required": [name], "properties": {name: {"type": "string"}}} for name in names]
    none = {"properties": {name: {"type": "null"} for name in names}}
    no_ids, unsaid = {"task_ids": {"type": "null"}}, {"all": {"const": False}}
    by_ids = {**unsaid, "task_ids": {"type": "array"}, "filter": {"type": "null"}}
    every = {**no_ids, "filter": {"type": "object", **none}}
    found: list[dict[str, Any]] = [
        {"required": ["task_ids"], "properties": {**by_ids, "cursor": {"const": ""}}},
        {
            "required": ["filter"],
            "properties": {**no_ids, **unsaid, "filter": {"type": "object", "anyOf": some}},
        },
    ]
    if says_all:
        found += [
            {"required": ["filter", said], "properties": {**every, said: {"const": True}}}
            for said in ("all", "dry_run")
        ]
    else:
        found.append({"required": ["filter"], "properties": every})
    return {"anyOf": found}


class Chosen(BaseModel):
    """Dead letters by `task_ids` or by `filter`, `{}` being all of them; `dry_run` only counts."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra=ways([*Filter.model_fields], says_all=False)
    )
    task_ids: list[TaskId] | None = Field(None, min_length=1, max_length=SCAN)
    filter: Filter | None = None
    all: bool = False
    cursor: Cursor = ""
    dry_run: bool = False

    @model_validator(mode="after")
    def _chooses_one_way(self) -> Self:
        if (self.task_ids is None) == (self.filter is None):
            raise ValueError("send `task_ids` or `filter`, one of the two")
        if self.filter is None and (self.all or self.cursor):
            raise ValueError("`all` and `cursor` go with a `filter`")
        if self.all and not self.is_everything:
            raise ValueError("`all` goes with an empty `filter`")
        return self

    @property
    def is_everything(self) -> bool:
        """Whether every dead letter is meant."""
        return self.filter is not None and not self.filter.model_dump(exclude_none=True)


class Doomed(Chosen):
    """Dead letters to delete, chosen as above; for all of them, but to count them, say `all`."""

    model_config = ConfigDict(json_schema_extra=ways([*Filter.model_fields], says_all=True))

    @model_validator(mode="after")
    def _says_all(self) -> Self:
        if self.is_everything and not (self.all or self.dry_run):
            raise ValueError('the `filter` is empty, which is every dead letter: add `"all": true`')
        return self


class DeadLetters(answer.Answer):
    """A page of dead letters; it may be short of `limit`: go on until `next_cursor` is null."""

    dead_letters: list[answer.Task]
    next_cursor: str | None


class Cause(answer.Answer):
    """How many dead letters of a task type have a cause, and when the last of them died."""

    cause: str
    task_type: str
    count: int
    newest_at: str | None


class Causes(answer.Answer):
    """What this call counted; add what the next ones count until `next_cursor` is null."""

    causes: list[Cause]
    next_cursor: str | None


class Done(answer.Answer):
    """What was meant, what was done, and where to go on; `done` is 0 for a dry run."""

    matched: int
    done: int
    dry_run: bool
    next_cursor: str | None


@router.get(
    "/v1/dead-letters", summary=sentence(verbs.DeadLetters), responses=problems(401, 403, 422, 503)
)
async def dead_letters(request: Request, page: Annotated[Page, Query()]) -> DeadLetters:
    """Answer dead letters that the filter means, newest first."""
    caller(request).needs(READERS)
    gate: Gate = request.app.state.gate
    found, end = await _meant(gate, page, page.cursor, page.limit)
    return DeadLetters(dead_letters=[*map(answer.task, found)], next_cursor=end)


@router.get(
    "/v1/dead-letters/causes",
    summary="Count the dead letters by cause and task type.",
    responses=problems(401, 403, 422, 503),
)
async def dead_causes(request: Request, chosen: Annotated[FilterFrom, Query()]) -> Causes:
    """Answer what the next of the letters that the filter means died of, most first."""
    caller(request).needs(READERS)
    gate: Gate = request.app.state.gate
    found, end = await _meant(gate, chosen, chosen.cursor, SCAN)
    counts = Counter((record.cause, record.task_type) for record in found)
    newest = {(record.cause, record.task_type): record.ended_at_ms for record in reversed(found)}
    causes = [
        Cause(cause=kind[0], task_type=kind[1], count=count, newest_at=answer.when(newest[kind]))
        for kind, count in counts.most_common()
    ]
    return Causes(causes=causes, next_cursor=end)


@router.post(
    "/v1/dead-letters:redrive",
    summary=sentence(verbs.Redrive),
    responses=problems(401, 403, 408, 413, 415, 422, 503),
)
async def redrive(request: Request, chosen: Chosen) -> Done:
    """Bring back what is chosen."""
    return await _act(request, chosen, verbs.Redrive)


@router.post(
    "/v1/dead-letters:drop",
    summary=sentence(verbs.Drop),
    responses=problems(401, 403, 408, 413, 415, 422, 503),
)
async def drop(request: Request, chosen: Doomed) -> Done:
    """Delete what is chosen; all of them only if that is said."""
    return await _act(request, chosen, verbs.Drop)


async def _act(
    request: Request, chosen: Chosen, verb: type[verbs.Redrive] | type[verbs.Drop]
) -> Done:
    caller(request).needs(OPERATORS)
    gate: Gate = request.app.state.gate
    end = None
    if chosen.filter is not None:
        records, end = await _meant(gate, chosen.filter, chosen.cursor, SCAN)
        task_ids: Sequence[str] = [record.task_id for record in records]
    else:
        # All are checked before any is touched.
        task_ids = [*map(checked_task_id, dict.fromkeys(chosen.task_ids or ()))]
    if chosen.dry_run:
        return Done(matched=len(task_ids), done=0, dry_run=True, next_cursor=end)
    done = 0
    for at in range(0, len(task_ids), MOST_DEAD):
        done += sum(await gate.run(verb(task_ids[at : at + MOST_DEAD])))
    if end is not None and chosen.filter is not None:
        gone = len(task_ids)
        if done < gone:
            # Another has acted on them, or an earlier call whose reply was lost; or nobody can.
            still, _ = await _meant(gate, chosen.filter, chosen.cursor, SCAN)
            gone -= len({record.task_id for record in still}.intersection(task_ids))
        # What is gone from the list has moved all that follows.
        end = cursor_of(max(0, offset_of(end) - gone))
    return Done(matched=len(task_ids), done=done, dry_run=False, next_cursor=end)


async def _meant(
    gate: Gate, choice: Filter, cursor: str, most: int
) -> tuple[list[TaskRecord], str | None]:
    """Return up to `most` letters that are meant among the next `SCAN`, and where to go on."""
    is_meant = choice.test()
    first = offset = offset_of(cursor)
    found: list[TaskRecord] = []
    while offset < first + SCAN:
        letters = await gate.run(verbs.DeadLetters(offset, _AT_ONCE))
        for at, record in enumerate(letters):
            if is_meant(record):
                if len(found) == most:
                    return found, cursor_of(offset + at)
                found.append(record)
        offset += _AT_ONCE
        # A page is short at the end, or where a record is gone or cannot be read.
        if not letters:
            return found, None
    return found, cursor_of(offset)
