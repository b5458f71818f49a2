"""Many tasks cancelled at once: those that a query means.

The rule: what is found is cancelled only if it is still in a state that was meant, so a task that
has begun meanwhile is left alone; and no step keeps the store for long, however long a queue is.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from fairlane.errors import InvalidData
from fairlane.ids import checked_task_id
from fairlane.model import TaskState
from fairlane.settings import Settings
from fairlane.verbs.bounds import checked_count, checked_limit, shown
from fairlane.verbs.search import (
    FindTasks,
    Found,
    TaskQuery,
    cursor_of,
    place_of,
    plain,
    plan_of,
)
from fairlane.verbs.verb import Arg, Verb

#: What waits: what is meant when no state is named.
WAITING: Final = (TaskState.PENDING, TaskState.DELAYED)
#: What can be cancelled at all.
OPEN: Final = (*WAITING, TaskState.LEASED, TaskState.RUNNING)
#: Entries that one step looks at, and ids that one cancels: under 10 ms of the server, also busy.
LOOK: Final = 100
AT_ONCE: Final = 25
#: A whole query, in one go.
ALL: Final = 10**9


@dataclass(frozen=True)
class CancelMany(Verb[tuple[bool, ...]]):
    """Cancel those of many tasks that are in one of the states that are named.

    Per id: whether it is cancelled now. Fewer than were sent when one in the middle of a long
    queue had to be looked for: send the rest again. Raises InvalidData for more than 100 ids, or a
    state that ends; InvalidTaskId.
    """

    task_ids: Sequence[str]
    states: Sequence[TaskState] = WAITING
    look: int = 20_000
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return how much of queues to look through, the states, the ids."""
        checked_limit(len(self.task_ids), 100)
        look = checked_count("look", self.look, 10**6)
        states = " ".join(map(_checked_state, self.states))
        return (look, states, *map(checked_task_id, self.task_ids))

    def decode(self, reply: Any) -> tuple[bool, ...]:
        """Return, per id, whether it is cancelled now."""
        return tuple(value == 1 for value in reply)


@dataclass(frozen=True, slots=True)
class Cancelled:
    """How many tasks matched, how many are cancelled now, the cursor to go on; empty at the end."""

    matched: int
    done: int
    cursor: str = ""


def cancelling(
    query: TaskQuery,
    settings: Settings,
    *,
    dry_run: bool = False,
    cursor: str = "",
    most: int = ALL,
) -> Generator[FindTasks | CancelMany, Any, Cancelled]:
    """Yield the steps that cancel what a query means, be sent what each came to, return the count.

    Without a state it means what waits: pending and delayed tasks; with `running` also a run that
    goes on, whose result is refused then. It looks at `most` entries at most. Raises InvalidData
    for a state that ends and for a cursor that was not answered, and what FindTasks raises.
    """
    query = plain(query)
    states = WAITING if query.state is None else (TaskState(_checked_state(query.state)),)
    plan = _plan(query, states, settings)
    at, position = place_of(cursor, len(plan))
    matched = done = looked = 0
    #: Those that could not be cancelled, and those of the last step.
    refused: set[str] = set()
    left: list[str] = []
    while at < len(plan):
        source, lane, asked = plan[at]
        if source == "id":
            position, asked = query.words, replace(asked, words="")
        look = LOOK if left else min(LOOK, most - looked)
        found: Found = yield FindTasks(source, asked, lane, position, look=look, limit=look)
        looked += found.looked
        ids = [task.task_id for task in found.tasks if task.state in states]
        meant = [task_id for task_id in ids if task_id not in refused]
        matched += len(meant)
        left = [] if dry_run else (yield from _cancel(meant, states))
        refused.update(left)
        done += 0 if dry_run else len(meant) - len(left)
        if source == "id" and found.tasks:
            break
        position = found.position
        if source == "queue" and position and not dry_run:
            # It counts from the end, where so many are missing now: also those that another
            # cancelled, or an earlier call of this one whose reply was lost. Of them, who is
            # still there is met again, and passed.
            position = str(max(0, int(position) - len(meant)))
        at, position = (at, position) if found.position else (at + 1, "")
        if at < len(plan) and looked >= most and not left:
            return Cancelled(matched, done, cursor_of(at, position))
    return Cancelled(matched, done)


def _cancel(
    task_ids: Sequence[str], states: Sequence[TaskState]
) -> Generator[CancelMany, tuple[bool, ...], list[str]]:
    """Cancel tasks, and return those that are not cancelled by it."""
    refused: list[str] = []
    while task_ids:
        verdicts = yield CancelMany(task_ids[:AT_ONCE], states)
        refused += [task_id for task_id, gone in zip(task_ids, verdicts, strict=False) if not gone]
        task_ids = task_ids[len(verdicts) :]
    return refused


def _plan(
    query: TaskQuery, states: Sequence[TaskState], settings: Settings
) -> list[tuple[str, str, TaskQuery]]:
    """Return the places where such tasks are, each with its lane and with what is asked there."""
    # A whole id means that task alone, as in a search.
    plan = [("id", "", query)] if ("id", "") in plan_of(query, settings) else []
    for state in states:
        asked = replace(query, state=state)
        places = (place for place in plan_of(asked, settings) if place[0] != "id")
        plan += [(source, lane, asked) for source, lane in places]
    return plan


def _checked_state(state: TaskState) -> str:
    if state not in OPEN:
        raise InvalidData(f"state: {shown(state)}; cancel {', '.join(OPEN)}")
    return TaskState(state).value
