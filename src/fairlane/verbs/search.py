"""Tasks searched for: where they are, looked through in bounded steps.

The rule: there is no index but those that the scheduling has. One step looks at so many entries of
one place; a search goes on from step to step and from place to place until it has found enough or
looked at enough, and says then where to go on.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from fairlane.errors import InvalidData, InvalidMac, InvalidTaskId
from fairlane.ids import checked_task_id
from fairlane.mac import canonical
from fairlane.model import TaskRecord, TaskState
from fairlane.settings import Settings
from fairlane.verbs.bounds import checked_count, checked_limit, shown
from fairlane.verbs.tasks import record_of
from fairlane.verbs.turns import known_lane
from fairlane.verbs.verb import Arg, Verb, pairs, storable, text

#: Entries that one step looks at: some milliseconds, each with an error text to be searched.
LOOK: Final = 200
#: Entries that one search looks at before it answers.
MOST_LOOKED: Final = 5_000
#: The same for a caller of whom there are many.
FEW_LOOKED: Final = 400
_MAX_MS: Final = 10**15
_OF_LANE: Final = ("inflight", "queue")
#: A member of a sorted set, behind its score as the server writes it.
_SCORED: Final = r"(-?(inf|[0-9]{1,20}(\.[0-9]{1,20})?(e[+-]?[0-9]{1,3})?) [!-~]{1,128})?"
_POSITIONS: Final = {
    "id": "[!-~]{1,128}",
    "inflight": _SCORED,
    "delayed": _SCORED,
    "deadlines": _SCORED,
    "queue": "([0-9]{1,9})?",
    "dead": "([0-9]{1,9})?",
    "ended": "((?!0+-0+$)[0-9]{1,19}-[0-9]{1,19})?",
}
_ENDED: Final = (TaskState.DONE, TaskState.FAILED, TaskState.EXPIRED, TaskState.CANCELLED)
_CURSOR: Final = re.compile(r"([0-9]{1,2})~([!-~]{0,180})")


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """Which tasks; what is empty does not matter.

    `words` is the beginning of an id, or a part of a device's address, task type, cause or error.
    """

    state: TaskState | None = None
    mac: str = ""
    task_type: str = ""
    cause: str = ""
    created_after_ms: int = 0
    created_before_ms: int = 0
    words: str = ""
    lane: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """What a step found (without payloads and results), and where to go on; empty at the end.

    `oldest_event_ms` is how far back ended tasks are known, 0 when that was not looked at.
    """

    tasks: tuple[TaskRecord, ...]
    looked: int
    position: str
    oldest_event_ms: int


@dataclass(frozen=True, slots=True)
class TaskPage:
    """What a search found, how many entries it looked at, the cursor to go on; empty at the end.

    Of tasks that have ended, those are found that the event stream still tells of:
    `ended_since_ms`, 0 when none were asked for yet.
    """

    tasks: tuple[TaskRecord, ...]
    looked: int
    cursor: str
    ended_since_ms: int


@dataclass(frozen=True)
class FindTasks(Verb[Found]):
    """Find tasks in one of the places where they are, newest first.

    `source` is `id`, `inflight` or `queue` (of a `lane`; a queue also of the query's device),
    `delayed`, `deadlines`, `dead` or `ended`. Raises InvalidData, InvalidMac, UnknownLane.
    """

    source: str
    query: TaskQuery = TaskQuery()
    lane: str = ""
    position: str = ""
    look: int = LOOK
    limit: int = 50
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return place, lane, device, position, bounds, and what else is asked for."""
        form = _POSITIONS.get(self.source)
        if form is None:
            raise InvalidData(
                f"source: {shown(self.source)}; choose one of {', '.join(_POSITIONS)}"
            )
        if not isinstance(self.position, str) or re.fullmatch(form, self.position) is None:
            raise InvalidData(f"position: {shown(self.position)} is none of {self.source}")
        query = self.query
        return (
            self.source,
            known_lane(self.lane, settings) if self.source in _OF_LANE else "",
            canonical(query.mac) if query.mac or self.source == "queue" else "",
            self.position,
            checked_limit(self.look),
            checked_limit(self.limit),
            "" if query.state is None else TaskState(query.state).value,
            storable(query.task_type),
            storable(query.cause),
            checked_count("created_after_ms", query.created_after_ms, _MAX_MS),
            checked_count("created_before_ms", query.created_before_ms, _MAX_MS),
            storable(query.words).encode().lower().decode(),
            storable(query.lane),
        )

    def decode(self, reply: Any) -> Found:
        """Return what was found."""
        looked, position, oldest, rows = reply
        return Found(
            tasks=tuple(record_of(text(row[0]), dict(pairs(row[1:]))) for row in rows),
            looked=int(looked),
            position=text(position),
            oldest_event_ms=int(text(oldest).partition("-")[0] or 0),
        )


def search(
    query: TaskQuery,
    settings: Settings,
    *,
    cursor: str = "",
    limit: int = 50,
    most: int = MOST_LOOKED,
) -> Generator[FindTasks, Found, TaskPage]:
    """Yield the steps of a search, be sent what each found, return what there is.

    It looks at `most` entries at most.

    What runs comes first, then what waits, what has ended, and the dead letters. Raises InvalidData
    for a cursor that no search answered, and what FindTasks raises.
    """
    query = plain(query)
    plan = plan_of(query, settings)
    at, position = place_of(cursor, len(plan))
    checked_limit(limit)
    tasks: dict[str, TaskRecord] = {}
    looked = since_ms = 0
    while at < len(plan):
        source, lane = plan[at]
        asked = query
        if source == "id":
            position, asked = query.words, replace(query, words="")
        left = limit - len(tasks)
        found = yield FindTasks(
            source, asked, lane, position, look=min(LOOK, most - looked), limit=left
        )
        tasks |= {record.task_id: record for record in found.tasks}
        looked += found.looked
        since_ms = found.oldest_event_ms or since_ms
        if source == "id" and found.tasks:
            break
        at, position = (at, found.position) if found.position else (at + 1, "")
        if at < len(plan) and (len(tasks) >= limit or looked >= most):
            return TaskPage(tuple(tasks.values()), looked, cursor_of(at, position), since_ms)
    return TaskPage(tuple(tasks.values()), looked, "", since_ms)


def plain(query: TaskQuery) -> TaskQuery:
    """Return a query whose words are no device's address, in whatever notation."""
    words = query.words.strip()
    try:
        mac = canonical(words) if words and not query.mac else ""
    except InvalidMac:
        mac = ""
    return replace(query, mac=mac, words="") if mac else replace(query, words=words)


def plan_of(query: TaskQuery, settings: Settings) -> list[tuple[str, str]]:
    """Return the places where such tasks can be, each with its lane."""
    state, plan = query.state, []
    lanes = [lane for lane in settings.lanes if query.lane in ("", lane)]
    if _is_task_id(query.words):
        plan.append(("id", ""))
    if state in (None, TaskState.LEASED, TaskState.RUNNING):
        plan += [("inflight", lane) for lane in lanes]
    if state in (None, TaskState.PENDING) and query.mac:
        plan += [("queue", lane) for lane in lanes]
    elif state in (None, TaskState.PENDING):
        plan.append(("deadlines", ""))
    if state is TaskState.DELAYED or (state is None and query.mac):
        plan.append(("delayed", ""))
    if state is None or state in _ENDED:
        plan.append(("ended", ""))
    if state in (None, TaskState.DEAD):
        plan.append(("dead", ""))
    return plan


def _is_task_id(words: str) -> bool:
    try:
        return bool(checked_task_id(words))
    except InvalidTaskId:
        return False


def cursor_of(at: int, position: str) -> str:
    """Return the cursor of a place in a plan."""
    return f"{at}~{position.replace(' ', '~')}"


def place_of(cursor: str, places: int) -> tuple[int, str]:
    """Return the place in a plan, and the position there. Raises InvalidData."""
    if not cursor:
        return 0, ""
    found = _CURSOR.fullmatch(cursor)
    if found is None or int(found[1]) >= places:
        raise InvalidData(f"cursor: {shown(cursor)} is none that this search answered")
    return int(found[1]), found[2].replace("~", " ", 1)
