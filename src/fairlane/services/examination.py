"""The examination of a store: every invariant that can be read, page by page, and its repair.

The rule: safe while others work. The walk only finds out whom to look at; whether something is
wrong, and what is right, is found in one step of the store, and a repair is one step too. Nothing
walks the keyspace: a record that no list, no set and no event names is not found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final, TypeVar

from fairlane.client import Client
from fairlane.errors import (
    InvalidInput,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from fairlane.flaw import Flaw
from fairlane.ids import checked_task_id
from fairlane.mac import canonical
from fairlane.verbs import (
    CheckDevices,
    CheckSums,
    CheckTasks,
    Members,
    MendDevices,
    MendSums,
    MendTasks,
    SumPage,
)

T = TypeVar("T")
#: What is looked at in one step of the store: some milliseconds.
_DEVICES: Final = 15
_TASKS: Final = 25
_PAGE: Final = 500
_SUM_PAGE: Final = 100
#: How often sums that are too long for one step are added up, until nothing moves meanwhile.
_SUM_ATTEMPTS: Final = 5
#: Where devices are named, and where tasks are.
_OF_DEVICES: Final = ("macs", "overloaded")
_OF_DEVICES_BY_LANE: Final = ("waiting", "backoff", "throttled", "floor")
_OF_TASKS: Final = ("deadlines", "delayed", "dead_letter")
_MOST_EVENTS: Final = 100_000

#: Is told what is looked at, how many of it are done, and how many there are, about.
Progress = Callable[[str, int, int], None]


def _silent(_what: str, _done: int, _of: int) -> None:
    """Say nothing."""


@dataclass
class Examination:
    """What an examination has looked at and found; `mended` says that it was mended too."""

    client: Client
    mended: bool = False
    progress: Progress = _silent
    devices: int = 0
    tasks: int = 0
    #: Which sums are too long for one step, and so were not checked; or nothing.
    left_out: str = ""
    _flaws: dict[Flaw, None] = field(default_factory=dict)
    _macs: dict[str, None] = field(default_factory=dict)

    def run(self) -> None:
        """Look at every task, then at every device, then at the sums. Raises StoreError."""
        # Before the first call the lanes are those that this process would have.
        self.client.ping()
        lanes = self.client.settings.lanes
        for place in _OF_TASKS:
            self._look_at_tasks(place)
        for lane in lanes:
            self._look_at_tasks("inflight", lane)
        self._look(["events"], self._look_at_events)
        self._note(mac for place in _OF_DEVICES for mac in self._members(place))
        for lane in lanes:
            self._note(mac for place in _OF_DEVICES_BY_LANE for mac in self._members(place, lane))
        self._note(turn.partition("|")[2] for turn in self._members("turns"))
        for mac in list(self._macs):
            for lane in lanes:
                self._look_at_tasks("queue", lane, mac)
        self._look_at_schedules(lanes)
        self._look_at_devices(self._macs)
        self.progress("sums", 0, 1)
        self._look(["store"], self._look_at_sums)
        self.progress("sums", 1, 1)

    @property
    def flaws(self) -> tuple[Flaw, ...]:
        """What was found, each flaw once, in the order in which it was found."""
        return tuple(self._flaws)

    def _found(self, flaws: Iterable[Flaw]) -> None:
        self._flaws.update(dict.fromkeys(flaws))

    def _members(self, place: str, lane: str = "", owner: str = "") -> Iterator[str]:
        """Go through a place, page by page; tell how far it is but for the small ones."""
        offset = 0
        while True:
            page = Members(place, lane, owner, offset, _PAGE)
            count, members = self.client.run(page)
            yield from members
            offset += len(members)
            if place in (*_OF_TASKS, "inflight"):
                self.progress(place.replace("_", " "), min(offset, count), count)
            if len(members) < _PAGE:
                return

    def _look_at_tasks(self, place: str, lane: str = "", owner: str = "") -> None:
        seen_in = {"mac": owner, "lane": lane} if owner else {}
        if place == "dead_letter":
            seen_in = {"lane": place}
        self._check_tasks(self._members(place, lane, owner), **seen_in)

    def _look_at_events(self, _: Sequence[str]) -> Iterable[Flaw]:
        """Look at the tasks that events name: a record may have lost every other trace."""
        after, seen, ids = "-", 0, dict[str, None]()
        while seen < _MOST_EVENTS:
            events = self.client.events(after)
            for event in events:
                for name in event.tasks:
                    task_id, dot, attempt = name.rpartition(".")
                    ids[task_id if dot and attempt.isdecimal() else name] = None
                if event.mac:
                    self._note([event.mac])
            if not events:
                break
            after, seen = events[-1].event_id, seen + len(events)
        self._check_tasks(ids)
        return ()

    def _check_tasks(self, ids: Iterable[str], mac: str = "", lane: str = "") -> None:
        kind: Any = MendTasks if self.mended else CheckTasks

        def look(task_ids: list[str]) -> Iterable[Flaw]:
            found: list[Flaw] = []
            while task_ids:
                looked, flaws = self.client.run(kind(task_ids, mac, lane))
                found += flaws
                task_ids = task_ids[looked:]
            return found

        for batch in _batches(filter(_is_task_id, ids), _TASKS):
            self._look(batch, look)
            self.tasks += len(batch)

    def _look_at_sums(self, _: Sequence[str]) -> Iterable[Flaw]:
        flaws, left_out = self.client.run(MendSums() if self.mended else CheckSums())
        unchecked = []
        for what, count in left_out:
            of_leases = what.removeprefix("leases in lane ")
            if what == "devices with tasks":
                pages, rest = SumPage("macs"), "weights"
            elif what != of_leases:
                pages, rest = SumPage("inflight", of_leases), "leases by device"
            else:
                unchecked.append(f"sums over {count:,} {what}")
                continue
            found = self._add_up(pages)
            if found is None:
                unchecked.append(f"sums over {count:,} {what}: they moved, or cannot be read")
            else:
                # Sums of pages cannot be mended: the next moment they are no longer so.
                flaws = (*flaws, *found)
                unchecked.append(f"{rest} of {count:,} {what}")
        self.left_out = "; ".join(unchecked)
        return flaws

    def _add_up(self, first: SumPage) -> tuple[Flaw, ...] | None:
        """Compare sums with those of all pages; None if something moved meanwhile, each time."""
        for _ in range(_SUM_ATTEMPTS):
            found = self._add_up_once(first)
            if found is not None:
                return found
        return None

    def _add_up_once(self, first: SumPage) -> tuple[Flaw, ...] | None:
        start = page = self.client.run(replace(first, limit=_SUM_PAGE))
        stored: dict[str, int] = {}
        sums: Counter[str] = Counter()
        offset = 0
        while page.total is not None:
            same = all(stored.get(what, sum_) == sum_ for what, sum_ in page.stored.items())
            if not same or (page.last_event, page.total) != (start.last_event, start.total):
                return None
            stored |= page.stored
            sums.update(page.counted)
            self.progress("sums", min(offset, page.total), page.total)
            if offset >= page.total:
                return tuple(
                    Flaw("store", what, str(stored.get(what, 0)), str(sums[what]))
                    for what in sorted(stored.keys() | sums.keys())
                    if stored.get(what, 0) != sums[what]
                )
            offset += _SUM_PAGE
            page = self.client.run(replace(first, offset=offset, limit=_SUM_PAGE))
        return None

    def _look(self, names: list[str], look: Callable[[list[str]], Iterable[Flaw]]) -> None:
        """Look at some; if that fails, at each of them, and tell whose keys cannot be read."""
        try:
            self._found(look(names))
        except (StoreUnavailable, StoreReadOnly, StoreFull):
            raise
        except StoreError as error:
            if len(names) == 1:
                self._found([Flaw(names[0], "keys", str(error), "readable")])
            else:
                for name in names:
                    self._look([name], look)

    def _look_at_schedules(self, lanes: Sequence[str]) -> None:
        for lane in lanes:
            for site in ("", *self._members("sites", lane)):
                if site in ("", "default"):
                    self._note(self._members("schedule", lane))
                else:
                    self._look_at_devices(self._members("schedule", lane, site), site)

    def _look_at_devices(self, macs: Iterable[str], site: str = "") -> None:
        kind: Any = MendDevices if self.mended else CheckDevices
        for batch in _batches(macs, _DEVICES):
            known = [mac for mac in batch if _is_mac(mac)]
            self._look(known, lambda macs: self.client.run(kind(macs, site)))
            if not site:
                self.devices += len(known)
                self.progress("devices", self.devices, len(self._macs))
            self._note(known)

    def _note(self, macs: Iterable[str]) -> None:
        self._macs.update(dict.fromkeys(filter(_is_mac, macs)))


def examine(client: Client, *, repair: bool = False, progress: Progress = _silent) -> Examination:
    """Look at every invariant of the store that can be read, and mend what is wrong if asked.

    A repair is safe on a running system, and a second one changes nothing. Raises StoreError.
    """
    examination = Examination(client, repair, progress)
    examination.run()
    return examination


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def _is_task_id(name: str) -> bool:
    try:
        return checked_task_id(name) == name
    except InvalidInput:
        return False


def _is_mac(name: str) -> bool:
    try:
        return canonical(name) == name
    except InvalidInput:
        return False
