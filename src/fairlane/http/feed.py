"""The live feed: what happens in the store, read once for all who watch.

The rule: one reader for any number of watchers. It looks at most twice a second, whatever happens,
and a watcher who does not keep up is dropped instead of waited for: what he missed he gets by the
id of the last message that he had, as long as the stream keeps it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import asdict
from typing import Any, Final

import msgspec

from fairlane import verbs
from fairlane.errors import FairlaneError
from fairlane.http import answer
from fairlane.http.gate import Gate
from fairlane.model import Event

log = logging.getLogger("fairlane.http")

#: Twice a second.
EVERY_S: Final = 0.5
#: Messages that may wait for a watcher before it is dropped.
BEHIND: Final = 32
#: Events that one message tells; of more it tells how many it left out, the oldest.
MOST_EVENTS: Final = 200
#: Who missed more gets a snapshot: the rest of what may wait for him is for what comes meanwhile.
MOST_MISSED: Final = BEHIND // 2 * MOST_EVENTS
#: What one look reads: the rest is for the next.
_PAGE, _PAGES = 1_000, 10
_encode: Final = msgspec.json.Encoder().encode

Observer = Callable[[Sequence[Event]], None]


class Watcher:
    """Somebody who watches: messages wait for him, until he is too far behind."""

    def __init__(self) -> None:
        self._messages: asyncio.Queue[bytes | None] = asyncio.Queue(BEHIND)

    def tell(self, message: bytes) -> bool:
        """Put a message into the queue; False when the watcher is too far behind."""
        with suppress(asyncio.QueueFull):
            self._messages.put_nowait(message)
            return True
        # What waits is of no use to somebody who will ask by the last id that he had.
        while not self._messages.empty():
            self._messages.get_nowait()
        self._messages.put_nowait(None)
        return False

    async def next(self, timeout_s: float) -> bytes | None:
        """Return the next message; None when the watcher was dropped. Raises TimeoutError."""
        async with asyncio.timeout(timeout_s):
            return await self._messages.get()


class Feed:
    """Reads the event stream and the levels, and tells them to watchers and observers.

    It starts with the first who asks, in his event loop, and goes on until it is closed.
    """

    def __init__(self, gate: Gate, *, every_s: float = EVERY_S) -> None:
        self._gate = gate
        self._every_s = every_s
        self._watchers: set[Watcher] = set()
        self._observers: list[Observer] = []
        self._running: asyncio.Task[None] | None = None
        self._position = ""
        self._levels: dict[str, Any] = {}
        self._in_trouble = ""
        self._looking = asyncio.Lock()

    def observe(self, observer: Observer) -> None:
        """Let an observer see every event from now on."""
        self._observers.append(observer)

    async def start(self) -> None:
        """Begin to read, at the stream's end. Raises StoreError; twice is once."""
        if self._running is None or self._running.done():
            async with self._looking:
                if not self._position:
                    self._position = await self._gate.ask(self._gate.client.last_event_id())
            # In a context of its own: it goes on after the request that started it.
            self._running = asyncio.get_running_loop().create_task(self._read(), context=Context())

    async def watch(self, after: str) -> Watcher:
        """Return a new watcher, who gets what follows `after`, or a snapshot first if it is empty.

        An id that the stream does not reach back to is answered by a snapshot as well, and so is
        one that is over `MOST_MISSED` events old. Raises StoreError, InvalidData for what is no
        event id.
        """
        await self.start()
        await self.look(for_snapshot=True)
        watcher = Watcher()
        # What is read meanwhile would be told to those who watch already, and to nobody else.
        async with self._looking:
            missed = await self._missed(after) if after else None
            if missed is None:
                watcher.tell(self._snapshot())
            for at in range(0, len(missed or ()), MOST_EVENTS):
                part = (missed or [])[at : at + MOST_EVENTS]
                watcher.tell(message("delta", {"events": _told(part)}, part[-1].event_id))
            self._watchers.add(watcher)
        return watcher

    def leave(self, watcher: Watcher) -> None:
        """Forget a watcher."""
        self._watchers.discard(watcher)

    async def look(self, *, for_snapshot: bool = False) -> None:
        """Read what is new, and tell it; the levels only if there is somebody to tell."""
        async with self._looking:
            try:
                events = await self._new_events()
                is_asked = for_snapshot or self._watchers
                levels = await self._read_levels() if is_asked else self._levels
            except FairlaneError as error:
                if self._in_trouble != error.code:
                    self._in_trouble = error.code
                    self._tell(message("trouble", {"code": error.code}))
                return
        for observer in self._observers:
            observer(events)
        changed = {
            name: level
            for name, level in levels.items()
            if level != self._levels.get(name) and name != "now"
        }
        self._levels = levels
        if self._in_trouble:
            self._in_trouble = ""
            self._tell(self._snapshot())
        elif events or changed:
            skipped = max(0, len(events) - MOST_EVENTS)
            told = {"events": _told(events[skipped:]), "skipped": skipped, **changed}
            self._tell(message("delta", told, self._position))

    async def close(self) -> None:
        """Stop to read."""
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running

    async def _read(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            try:
                await self.look()
            except Exception:
                # A feed that ended in silence would look like a system in which nothing happens.
                log.exception("the feed could not tell what it read")

    async def _new_events(self) -> list[Event]:
        events: list[Event] = []
        for _ in range(_PAGES):
            part = await self._gate.ask(self._gate.client.events(self._position, limit=_PAGE))
            events += part
            if part:
                self._position = part[-1].event_id
            if len(part) < _PAGE:
                break
        return events

    async def _read_levels(self) -> dict[str, Any]:
        lanes, totals, workers, overload = await self._gate.run_many(
            [verbs.InspectLanes(), verbs.InspectTotals(), verbs.InspectWorkers(), verbs.Overload()]
        )
        for found in (lanes, totals, workers, overload):
            if isinstance(found, FairlaneError):
                raise found
        told = [answer.worker(worker).model_dump(exclude={"age_seconds"}) for worker in workers]
        return {
            "totals": {**asdict(totals), "overloaded": overload.overloaded},
            "lanes": [answer.lane(lane).model_dump() for lane in lanes],
            "workers": told,
        }

    async def _missed(self, after: str) -> list[Event] | None:
        """Return the events between an id and where it stands; None if too many or some gone."""
        await self._gate.ask(self._gate.client.events(after, limit=1))  # which checks the id
        oldest = await self._gate.ask(self._gate.client.events(limit=1))
        if after != "-" and (not oldest or _order(after) < _order(oldest[0].event_id)):
            return None
        missed: list[Event] = []
        for _ in range(_PAGES):
            part = await self._gate.ask(self._gate.client.events(after, limit=_PAGE))
            missed += [one for one in part if _order(one.event_id) <= _order(self._position)]
            if len(missed) > MOST_MISSED:
                return None
            if len(part) < _PAGE:
                return missed
            after = part[-1].event_id
        return None

    def _snapshot(self) -> bytes:
        return message("snapshot", self._levels, self._position)

    def _tell(self, told: bytes) -> None:
        for watcher in list(self._watchers):
            if not watcher.tell(told):
                self._watchers.discard(watcher)


def message(kind: str, data: dict[str, Any], event_id: str = "") -> bytes:
    """Return a message as text/event-stream writes it."""
    head = f"id: {event_id}\n" if event_id and event_id != "-" else ""
    return f"{head}event: {kind}\ndata: ".encode() + _encode(data) + b"\n\n"


def _told(events: Sequence[Event]) -> list[dict[str, Any]]:
    return [
        {
            "id": event.event_id,
            "event": event.event,
            "at": answer.when(event.at_ms),
            "mac": event.mac,
            "lane": event.lane,
            "tasks": event.tasks,
            "detail": event.detail,
        }
        for event in events
    ]


def _order(event_id: str) -> tuple[int, int]:
    if event_id == "-":
        return (0, 0)
    ms, _, number = event_id.partition("-")
    return int(ms), int(number or 0)
