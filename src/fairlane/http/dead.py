"""/v1/dead-letters: listed, brought back, deleted.

The rule: one call looks at `SCAN` letters at most and says where to go on, whatever it was asked
for. To bring back or drop everything has to be said (`all`), not to be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from fairlane import verbs
from fairlane.http import answer
from fairlane.http.body import StrictRoute
from fairlane.http.caller import OPERATORS, READERS, caller
from fairlane.http.cursor import cursor_of, offset_of
from fairlane.http.gate import Gate
from fairlane.http.openapi import problems
from fairlane.http.problem import Problem
from fairlane.http.sentence import sentence
from fairlane.ids import checked_task_id
from fairlane.mac import canonical
from fairlane.model import TaskRecord

router = APIRouter(route_class=StrictRoute, tags=["dead letters"])

#: Letters that one call looks at.
SCAN: Final = 1_000
#: Each comes with its whole payload, so a page of them is small.
_AT_ONCE: Final = 100


class Filter(BaseModel):
    """Which dead letters; what is not named does not matter."""

    model_config = ConfigDict(extra="forbid")
    mac: str | None = Field(None, max_length=64)
    task_type: str | None = Field(None, max_length=200)
    cause: str | None = Field(None, max_length=1_024)
    after: AwareDatetime | None = None
    before: AwareDatetime | None = None
    cursor: str = Field("", max_length=200)

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
    """Which dead letters, and how many."""

    limit: int = Field(50, ge=1, le=200)


class Chosen(Filter):
    """Which dead letters to act on: by `task_ids`, by a filter, or `all`; `dry_run` only counts."""

    task_ids: list[str] | None = Field(None, min_length=1, max_length=SCAN)
    all: bool = Field(False, strict=True)
    dry_run: bool = Field(False, strict=True)

    @property
    def has_filter(self) -> bool:
        """Whether anything is named that a letter can be told by."""
        told = (self.mac, self.task_type, self.cause, self.after, self.before)
        return any(value is not None for value in told)


class DeadLetters(answer.Answer):
    """A page of dead letters; it may be short of `limit`: go on until `next_cursor` is null."""

    dead_letters: list[answer.Task]
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
    found, end = await _meant(gate, page, page.limit)
    return DeadLetters(dead_letters=[*map(answer.task, found)], next_cursor=end)


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
async def drop(request: Request, chosen: Chosen) -> Done:
    """Delete what is chosen."""
    return await _act(request, chosen, verbs.Drop)


async def _act(
    request: Request, chosen: Chosen, verb: type[verbs.Redrive] | type[verbs.Drop]
) -> Done:
    caller(request).needs(OPERATORS)
    gate: Gate = request.app.state.gate
    if sum((chosen.task_ids is not None, chosen.has_filter, chosen.all)) != 1:
        raise Problem(422, "INVALID_REQUEST", "body: name task_ids, or a filter, or all: true")
    end = None
    if chosen.task_ids is None:
        records, end = await _meant(gate, chosen, SCAN)
        task_ids: Sequence[str] = [record.task_id for record in records]
    else:
        task_ids = list(dict.fromkeys(chosen.task_ids))
        # All are checked before any is touched.
        for task_id in task_ids:
            checked_task_id(task_id)
    if chosen.dry_run:
        return Done(matched=len(task_ids), done=0, dry_run=True, next_cursor=end)
    done = 0
    for at in range(0, len(task_ids), _AT_ONCE):
        done += sum(await gate.run(verb(task_ids[at : at + _AT_ONCE])))
    if end is not None:
        # What is gone from the list has moved all that follows.
        end = cursor_of(max(0, offset_of(end) - done))
    return Done(matched=len(task_ids), done=done, dry_run=False, next_cursor=end)


async def _meant(gate: Gate, choice: Filter, most: int) -> tuple[list[TaskRecord], str | None]:
    """Return up to `most` letters that are meant among the next `SCAN`, and where to go on."""
    is_meant = choice.test()
    first = offset = offset_of(choice.cursor)
    found: list[TaskRecord] = []
    while offset < first + SCAN:
        letters = await gate.run(verbs.DeadLetters(offset, _AT_ONCE))
        for at, record in enumerate(letters):
            if is_meant(record):
                if len(found) == most:
                    return found, cursor_of(offset + at)
                found.append(record)
        offset += _AT_ONCE
        if len(letters) < _AT_ONCE:
            return found, None
    return found, cursor_of(offset)
