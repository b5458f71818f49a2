"""The way in: tasks are stored, recognised or refused.

The rule: everything is checked before anything is sent. A value of these classes is canonical (one
spelling of the MAC, the id chosen, the data encoded), so sending it twice stores it once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, groupby, islice
from typing import Any, ClassVar, Final, TypeAlias

from fairlane.errors import (
    IdempotencyConflict,
    InvalidData,
    InvalidInput,
    PayloadTooLarge,
    TaskConflict,
    UnknownTaskType,
)
from fairlane.files import checked_file_name
from fairlane.ids import checked_task_id, new_task_id, new_task_ids
from fairlane.mac import canonical
from fairlane.model import Receipt, Refusal, TaskState
from fairlane.payload import encode
from fairlane.settings import Settings
from fairlane.tracing import checked_traceparent
from fairlane.verbs.bounds import checked_site, shown
from fairlane.verbs.receipt import IdempotencyKey
from fairlane.verbs.verb import Arg, Verb, text

MAX_ITEMS: Final = 1_000
#: No task outlives a week: deadlines stay in the range that every store keeps exactly.
MAX_MS: Final = 7 * 24 * 3_600_000
_MAX_INPUT_BYTES: Final = 512 * 1024 * 1024
_STATES: Final[Mapping[bytes, TaskState | None]] = {
    b"": None,
    **{str(state).encode(): state for state in TaskState},
}


class Enqueue(Verb[Receipt | Refusal]):
    """Store a task and put it into its device's queue, or refuse it.

    `mac` in any usual notation; `data` a JSON object of at most `max_payload_bytes`; `ttl_ms` how
    long it may wait, the store's `task_ttl_ms` when None; `cost_ms` how long it will run, by the
    caller's estimate, counted within ¼ to 4 times the store's own; `site` the group that the device
    joins when it has no tasks yet, by the settings' `sites` when None. `idempotency_key` is 1 to
    255 printable characters in the scope of `caller`: for `idempotency_ttl_ms` the same key with
    the same body (device, type, data and all that is said here) is the same task. `file` names a
    file that was recorded (`KeepFile`): it stays as long as the task needs it. `traceparent` is the
    W3C trace context that the handler will run in; what is none is left out. Raises InvalidMac,
    InvalidData, InvalidTaskId, UnknownTaskType, PayloadTooLarge, TaskConflict, IdempotencyConflict,
    FileNotKnown.
    """

    __slots__ = (
        "cost_ms",
        "file",
        "key",
        "mac",
        "payload",
        "site",
        "task_id",
        "task_type",
        "traceparent",
        "ttl_ms",
    )
    REPEATABLE: ClassVar[bool] = True
    ACCEPTS: ClassVar[bool] = True

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
        idempotency_key: str | None = None,
        caller: str = "",
        file: str | None = None,
        traceparent: str | None = None,
    ) -> None:
        self.mac: Final = canonical(mac)
        self.task_type: Final = task_type
        self.task_id: Final = new_task_id() if task_id is None else checked_task_id(task_id)
        self.payload: Final = encode("data", data, _MAX_INPUT_BYTES)
        self.ttl_ms: Final = 0 if ttl_ms is None else _checked_ms("ttl_ms", ttl_ms, MAX_MS)
        self.cost_ms: Final = 0 if cost_ms is None else _checked_ms("cost_ms", cost_ms, MAX_MS)
        self.site: Final = "" if site is None else checked_site(site)
        self.traceparent: Final = checked_traceparent(traceparent)
        self.file: Final = "" if file is None else checked_file_name(file)
        # An id that the caller chose is part of what he sent.
        self.key: Final = (
            None if idempotency_key is None else IdempotencyKey(idempotency_key, caller, task_id)
        )

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return id, MAC, type, lane, payload, TTL, cost, site, receipt, file, and a trace."""
        task_type = self.task_type
        lane = settings.lane_by_type.get(task_type) if type(task_type) is str else None
        if lane is None:
            lane = _lane_of(task_type, settings)
        if len(self.payload) > settings.max_payload_bytes:
            raise _too_large(self.payload, settings)
        site = self.site or (settings.site_of(self.mac) if settings.sites else "")
        receipt = "" if self.key is None else self.receipt()
        args = (self.task_id, self.mac, task_type, lane, self.payload, self.ttl_ms,
                self.cost_ms, site, receipt, self.file)  # fmt: skip
        return (*args, self.traceparent) if self.traceparent else args

    def receipt(self) -> str:
        """Return the hashes of the idempotency key and of the body; nothing without a key."""
        said = (self.mac, self.task_type, self.ttl_ms, self.cost_ms, self.site)
        return "" if self.key is None else self.key.receipt(self.payload, *said)

    def decode(self, reply: Any) -> Receipt | Refusal:
        """Return the receipt or the refusal."""
        if reply[0] == b"refused":
            return Refusal(self.task_id, self.mac, text(reply[1]), *map(int, reply[2:5]))
        return Receipt(
            text(reply[4]) if len(reply) > 4 else self.task_id,
            self.mac,
            created_at_ms=int(reply[1]),
            pending=int(reply[2]),
            state=_STATES[reply[3]],
            known=reply[0] == b"known",
        )


#: (mac, task_type, data); or the same and more by the names of Enqueue's arguments; or an Enqueue.
Item: TypeAlias = tuple[str, str, Mapping[str, Any]] | Mapping[str, Any] | Enqueue


#: What becomes of an item.
Verdict: TypeAlias = Receipt | Refusal | TaskConflict | IdempotencyConflict


class EnqueueMany(Verb[list[Verdict]]):
    """Store many tasks in one step, with a verdict for each.

    Verdicts stand in the order of `items`, at most 1,000 of them: `(mac, task_type, data)`, or a
    mapping of Enqueue's arguments by name, or a ready Enqueue. A bad item raises what Enqueue
    raises, before anything is sent; only a task id or an idempotency key that stands for another
    task is a verdict. A task with a `file` or a `traceparent` is sent by Enqueue, in a pipeline if
    there are many.
    """

    __slots__ = ("_alike", "_first", "_ids", "_keyed", "_macs", "_payloads")
    REPEATABLE: ClassVar[bool] = True
    ACCEPTS: ClassVar[bool] = True

    def __init__(self, items: Iterable[Item], *, first: int = 0) -> None:
        items = list(items)
        #: The number that an error gives to the first item, when these are a part of more.
        self._first = first
        try:
            self._take(items)
        except InvalidInput:
            for at, item in enumerate(items, first):
                with _named(at):
                    _enqueue_of(item)
            raise

    def _take(self, items: list[Item]) -> None:
        # Columns: what is done to each of a thousand tasks is done by one call of C for all.
        if {*map(type, items)} == {tuple}:
            try:
                macs, kinds, datas = zip(*items, strict=True)
            except ValueError:
                raise InvalidData("items: not all are (mac, task_type, data)") from None
            self._macs = [*map(canonical, macs)]
            self._payloads = [encode("data", data, _MAX_INPUT_BYTES) for data in datas]
            self._ids = new_task_ids(len(items))
            self._alike = [(kind, 0, 0, "") for kind in kinds]
            self._keyed: dict[int, Enqueue] = {}
        else:
            verbs = [*map(_enqueue_of, items)]
            if any(verb.file or verb.traceparent for verb in verbs):
                raise InvalidData("items: send a task that needs a file or has a trace by Enqueue")
            self._macs = [verb.mac for verb in verbs]
            self._payloads = [verb.payload for verb in verbs]
            self._ids = [verb.task_id for verb in verbs]
            self._alike = [(verb.task_type, verb.ttl_ms, verb.cost_ms, verb.site) for verb in verbs]
            self._keyed = {at: verb for at, verb in enumerate(verbs) if verb.key is not None}

    def args(self, settings: Settings) -> list[Arg]:
        """Return groups of type, lane, TTL, cost, site, n, then n times id, MAC, payload.

        In a group of -n each has its receipt too.
        """
        if not 0 < len(self._ids) <= MAX_ITEMS:
            raise InvalidData(f"items: {len(self._ids)} tasks; send 1 to {MAX_ITEMS} at a time")
        if max(map(len, self._payloads)) > settings.max_payload_bytes:
            self._blame(settings)
        own: Iterator[tuple[Arg, ...]] = zip(self._ids, self._macs, self._payloads, strict=True)
        if self._keyed:
            return self._keyed_args(settings, own)
        args: list[Arg] = []
        try:
            for (kind, ttl_ms, cost_ms, site), group in groupby(self._shared(settings)):
                count = len([*group])
                args += (kind, _lane_of(kind, settings), ttl_ms, cost_ms, site, count)
                args += chain.from_iterable(islice(own, count))
        except UnknownTaskType:
            self._blame(settings)
            raise
        return args

    def _blame(self, settings: Settings) -> None:
        """Raise for the first item that the store's settings do not allow."""
        pairs = zip(self._alike, self._payloads, strict=True)
        for at, ((kind, *_), payload) in enumerate(pairs, self._first):
            with _named(at):
                _lane_of(kind, settings)
                if len(payload) > settings.max_payload_bytes:
                    raise _too_large(payload, settings)

    def _keyed_args(self, settings: Settings, own: Iterator[tuple[Arg, ...]]) -> list[Arg]:
        """Return the groups where some items have an idempotency key: each of them is its own."""
        args: list[Arg] = []
        for at, (kind, ttl_ms, cost_ms, site) in enumerate(self._shared(settings)):
            verb = self._keyed.get(at)
            with _named(self._first + at):
                lane = _lane_of(kind, settings)
            args += (kind, lane, ttl_ms, cost_ms, site, -1 if verb else 1)
            args += next(own) if verb is None else (*next(own), verb.receipt())
        return args

    def _shared(self, settings: Settings) -> Iterable[tuple[str, int, int, str]]:
        """Return what groups the items: type, TTL, cost, and the site, by rule if none is given."""
        if not settings.sites:
            return self._alike
        return (
            (*shared, site or settings.site_of(mac))
            for (*shared, site), mac in zip(self._alike, self._macs, strict=True)
        )

    def decode(self, reply: Any) -> list[Verdict]:
        """Return a verdict per item."""
        now, *verdicts = reply
        now = int(now)
        return [
            Receipt(task_id, mac, now, verdict)
            if type(verdict) is int
            else _verdict(task_id, mac, verdict)
            for task_id, mac, verdict in zip(self._ids, self._macs, verdicts, strict=True)
        ]


def _enqueue_of(item: Item) -> Enqueue:
    if isinstance(item, Enqueue):
        return item
    try:
        return Enqueue(**item) if isinstance(item, Mapping) else Enqueue(*item)
    except TypeError:
        raise InvalidData(
            f"{shown(item)}; send (mac, task_type, data), the same by names, or an Enqueue"
        ) from None


@contextmanager
def _named(at: int) -> Iterator[None]:
    """Let an error say which item it is about."""
    try:
        yield
    except InvalidInput as error:
        raise type(error)(f"items[{at}]: {error}") from None


def _verdict(task_id: str, mac: str, verdict: Sequence[Any]) -> Verdict:
    if verdict[0] == b"known":
        state, known_id = _STATES[verdict[2]], text(verdict[3])
        return Receipt(known_id, mac, int(verdict[1]), 0, state, known=True)
    if verdict[0] == b"mismatch":
        return IdempotencyConflict(
            f"idempotency_key: it stands for task {text(verdict[1])}, which came with another "
            "body; use a new key"
        )
    if verdict[0] == b"conflict":
        return TaskConflict(f"task_id: {task_id} is taken by another task; choose a new one")
    return Refusal(task_id, mac, text(verdict[1]), *map(int, verdict[2:5]))


def _checked_ms(name: str, milliseconds: int, most: int) -> int:
    if type(milliseconds) is not int or not 0 < milliseconds <= most:
        raise InvalidData(
            f"{name}: {shown(milliseconds)}; send 1 to {most} milliseconds (seven days)"
        )
    return milliseconds


def _lane_of(task_type: str, settings: Settings) -> str:
    lane = settings.lane_by_type.get(task_type) if isinstance(task_type, str) else None
    if lane is None:
        known = ", ".join(settings.lane_by_type)
        raise UnknownTaskType(f"task_type: {shown(task_type)} has no lane; known are {known}")
    return lane


def _too_large(payload: bytes, settings: Settings) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"data: {len(payload)} bytes, the limit is {settings.max_payload_bytes}; "
        "send large things by reference"
    )
