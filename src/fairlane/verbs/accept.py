"""The way in: tasks are stored, recognised or refused.

The rule: everything is checked before anything is sent. A value of these classes is canonical (one
spelling of the MAC, the id chosen, the data encoded), so sending it twice stores it once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from fairlane.errors import InvalidData, PayloadTooLarge, TaskConflict, UnknownTaskType
from fairlane.ids import checked_task_id, new_task_id
from fairlane.mac import canonical
from fairlane.model import Receipt, Refusal, TaskState
from fairlane.payload import encode
from fairlane.settings import Settings
from fairlane.verbs.bounds import checked_site, shown
from fairlane.verbs.verb import Arg, Verb, text

MAX_ITEMS: Final = 1_000
#: No task outlives a week: deadlines stay in the range that every store keeps exactly.
MAX_MS: Final = 7 * 24 * 3_600_000
_MAX_INPUT_BYTES: Final = 512 * 1024 * 1024
_STATES: Final = {str(state).encode(): state for state in TaskState}


class Enqueue(Verb[Receipt | Refusal]):
    """Store a task and put it into its device's queue, or refuse it.

    `mac` in any usual notation; `data` a JSON object of at most `max_payload_bytes`; `ttl_ms` how
    long it may wait, the store's `task_ttl_ms` when None; `cost_ms` how long it will run, by the
    caller's estimate, counted within ¼ to 4 times the store's own; `site` the group of devices that
    this one belongs to, by the settings' `sites` when None. Raises InvalidMac, InvalidData,
    InvalidTaskId, UnknownTaskType, PayloadTooLarge, TaskConflict.
    """

    __slots__ = ("cost_ms", "mac", "payload", "site", "task_id", "task_type", "ttl_ms")
    REPEATABLE: ClassVar[bool] = True

    def __init__(
        self,
        mac: str,
        task_type: str,
        data: Mapping[str, Any],
        *,
        task_id: str | None = None,
        ttl_ms: int | None = None,
        cost_ms: int | None = None,
        site: str | None = None,
    ) -> None:
        self.mac: Final = canonical(mac)
        self.task_type: Final = task_type
        self.task_id: Final = new_task_id() if task_id is None else checked_task_id(task_id)
        self.payload: Final = encode("data", data, _MAX_INPUT_BYTES)
        self.ttl_ms: Final = 0 if ttl_ms is None else _checked_ms("ttl_ms", ttl_ms)
        self.cost_ms: Final = 0 if cost_ms is None else _checked_ms("cost_ms", cost_ms)
        self.site: Final = "" if site is None else checked_site(site)

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return id, mac, type, lane, payload, TTL, cost, site."""
        lane = self._lane(settings)
        site = self.site or settings.site_of(self.mac)
        return (self.task_id, self.mac, self.task_type, lane, self.payload, self.ttl_ms,
                self.cost_ms, site)  # fmt: skip

    def group(self, settings: Settings) -> tuple[Arg, ...]:
        """Return what a batch says once for all tasks that have it: type, lane, TTL, cost, site."""
        lane = self._lane(settings)
        site = self.site or settings.site_of(self.mac)
        return (self.task_type, lane, self.ttl_ms, self.cost_ms, site)

    def _lane(self, settings: Settings) -> str:
        is_text = isinstance(self.task_type, str)
        lane = settings.lane_by_type.get(self.task_type) if is_text else None
        if lane is None:
            known = ", ".join(settings.lane_by_type)
            raise UnknownTaskType(
                f"task_type: {ascii(self.task_type)[:80]} has no lane; known are {known}"
            )
        if len(self.payload) > settings.max_payload_bytes:
            raise PayloadTooLarge(
                f"data: {len(self.payload)} bytes, the limit is {settings.max_payload_bytes}; "
                "send large things by reference"
            )
        return lane

    def decode(self, reply: Any) -> Receipt | Refusal:
        """Return the receipt or the refusal."""
        if reply[0] == b"refused":
            return Refusal(self.task_id, self.mac, text(reply[1]), *map(int, reply[2:5]))
        return Receipt(
            self.task_id,
            self.mac,
            created_at_ms=int(reply[1]),
            pending=int(reply[2]),
            state=_STATES[reply[3]],
            known=reply[0] == b"known",
        )


@dataclass(frozen=True)
class EnqueueMany(Verb[list[Receipt | Refusal | TaskConflict]]):
    """Store many tasks in one step, with a verdict for each.

    Verdicts stand in the order of `items`, at most 1,000 of them. A bad item raises what Enqueue
    raises, before anything is sent; only a task id that another task has taken is a verdict.
    """

    items: Sequence[Enqueue]
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> list[Arg]:
        """Return the items in groups: what they share, how many, then id, mac, payload of each."""
        if not 0 < len(self.items) <= MAX_ITEMS:
            raise InvalidData(f"items: {len(self.items)} tasks; send 1 to {MAX_ITEMS} at a time")
        args: list[Arg] = []
        shared: tuple[Arg, ...] = ()
        count_at = 0
        for item in self.items:
            if not isinstance(item, Enqueue):
                raise InvalidData(f"items: {shown(item)} is no Enqueue")
            group = item.group(settings)
            if group != shared:
                shared = group
                args += group
                args.append(0)
                count_at = len(args) - 1
            args += (item.task_id, item.mac, item.payload)
            args[count_at] += 1  # type: ignore[operator]
        return args

    def decode(self, reply: Any) -> list[Receipt | Refusal | TaskConflict]:
        """Return a verdict per item."""
        now = int(reply[0])
        return [
            Receipt(item.task_id, item.mac, now, verdict)
            if isinstance(verdict, int)
            else _verdict(item, verdict)
            for item, verdict in zip(self.items, reply[1:], strict=True)
        ]


def _verdict(item: Enqueue, verdict: Sequence[Any]) -> Receipt | Refusal | TaskConflict:
    if verdict[0] == b"known":
        state = _STATES[verdict[2]]
        return Receipt(item.task_id, item.mac, int(verdict[1]), 0, state, known=True)
    if verdict[0] == b"conflict":
        return TaskConflict(f"task_id: {item.task_id} is taken by another task; choose a new one")
    return Refusal(item.task_id, item.mac, text(verdict[1]), *map(int, verdict[2:5]))


def _checked_ms(name: str, ms: int) -> int:
    if type(ms) is not int or not 0 < ms <= MAX_MS:
        raise InvalidData(f"{name}: {shown(ms)}; send 1 to {MAX_MS} milliseconds (a week)")
    return ms
