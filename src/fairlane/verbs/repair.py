"""What is wrong in a store, and mending it: the verbs of `fairlane doctor`.

The rule: whoever checks changes nothing, and the server knows (`no-writes`). Whoever mends finds
out anew, in the same step, what is wrong, so that it is safe while others work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeAlias

from fairlane.errors import InvalidData
from fairlane.flaw import Flaw
from fairlane.ids import checked_task_id
from fairlane.mac import canonical
from fairlane.settings import Settings
from fairlane.verbs.bounds import MOST, Page, checked_count, checked_site, shown
from fairlane.verbs.turns import known_lane
from fairlane.verbs.verb import Arg, Verb, text, texts

#: What can be listed, and whether it is one for each lane.
PLACES: Final = {
    "macs": False, "deadlines": False, "delayed": False, "turns": False, "dead_letter": False,
    "overloaded": False, "inflight": True, "waiting": True, "backoff": True, "throttled": True,
    "floor": True, "sites": True, "schedule": True, "queue": True,
}  # fmt: skip
DEAD_LETTER: Final = "dead_letter"
Sums: TypeAlias = tuple[tuple[Flaw, ...], tuple[tuple[str, int], ...]]


@dataclass(frozen=True)
class Members(Verb[tuple[int, tuple[str, ...]]]):
    """List a page of the members of a set or list.

    `place` is one of PLACES, `owner` the device of a `queue` or the site of a `schedule`. Returns
    how many there are, and those of the page; of an unordered set any `limit` of them, and none
    from a later offset. Raises UnknownLane, InvalidMac, InvalidData.
    """

    place: str
    lane: str = ""
    owner: str = ""
    offset: int = 0
    limit: int = 100
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return place, lane, owner, offset and limit."""
        if self.place not in PLACES:
            raise InvalidData(f"place: {shown(self.place)}; use one of {', '.join(PLACES)}")
        lane = known_lane(self.lane, settings) if PLACES[self.place] else ""
        owner = ""
        if self.place == "queue":
            owner = canonical(self.owner)
        elif self.place == "schedule" and self.owner not in ("", "default"):
            owner = checked_site(self.owner)
        return (self.place, lane, owner, *Page(self.offset, self.limit).args(settings))

    def decode(self, reply: Any) -> tuple[int, tuple[str, ...]]:
        """Return the count and the page."""
        return int(reply[0]), texts(reply[1])


@dataclass(frozen=True)
class _OfDevices:
    macs: Sequence[str]
    site: str = ""
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return the site in whose schedule they were seen, and the devices."""
        checked_count("macs", len(self.macs), MOST)
        site = checked_site(self.site) if self.site else ""
        return (site, *map(canonical, self.macs))

    def decode(self, reply: Any) -> tuple[Flaw, ...]:
        """Return the flaws."""
        return tuple(Flaw(*map(text, row)) for row in reply)


@dataclass(frozen=True)
class CheckDevices(_OfDevices, Verb[tuple[Flaw, ...]]):
    """Find what is wrong with devices: counts, places and tags that do not equal their lists.

    `site` is one in whose schedule they were seen. Raises InvalidMac, InvalidData for more than
    1,000 devices.
    """


@dataclass(frozen=True)
class MendDevices(_OfDevices, Verb[tuple[Flaw, ...]]):
    """Mend devices whose counts, places or tags do not equal their lists.

    Returns what was wrong. Raises InvalidMac, InvalidData for more than 1,000 devices.
    """


@dataclass(frozen=True)
class _OfTasks:
    task_ids: Sequence[str]
    mac: str = ""
    lane: str = ""
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return the list in which they were seen, and the tasks."""
        checked_count("task_ids", len(self.task_ids), MOST)
        mac = canonical(self.mac) if self.mac else ""
        lane = known_lane(self.lane, settings) if mac else self.lane
        if not mac and lane not in ("", DEAD_LETTER):
            raise InvalidData(f"lane: {shown(lane)}; name it with a mac, or {DEAD_LETTER} alone")
        return (mac, lane, *map(checked_task_id, self.task_ids))

    def decode(self, reply: Any) -> tuple[int, tuple[Flaw, ...]]:
        """Return how many tasks were looked at, and the flaws."""
        return int(reply[0]), tuple(Flaw(*map(text, row)) for row in reply[1])


@dataclass(frozen=True)
class CheckTasks(_OfTasks, Verb[tuple[int, tuple[Flaw, ...]]]):
    """Find tasks that are not where their records say.

    `mac` and `lane` name the queue in which they were seen; `lane="dead_letter"` alone the dead
    letters. Returns how many were looked at, which long lists may cut short, and the flaws.
    Raises InvalidTaskId, InvalidMac, UnknownLane, InvalidData for more than 1,000 tasks.
    """


@dataclass(frozen=True)
class MendTasks(_OfTasks, Verb[tuple[int, tuple[Flaw, ...]]]):
    """Put tasks where their records say that they are.

    A leased task without a lease gets one that begins now; one that waits and is in no queue goes
    to the end served next. Their devices are mended with them. Returns how many were looked at, and
    what was wrong. Raises what CheckTasks raises.
    """


@dataclass(frozen=True)
class _OfSums:
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return nothing."""
        return ()

    def decode(self, reply: Any) -> Sums:
        """Return the flaws, and what was not looked at."""
        flaws, left_out = reply
        return (
            tuple(Flaw(*map(text, row)) for row in flaws),
            tuple((text(what), int(count)) for what, count in left_out),
        )


@dataclass(frozen=True)
class CheckSums(_OfSums, Verb[Sums]):
    """Find sums over all devices and tasks that are wrong.

    Returns them, and what there is too much of for one step of some milliseconds, e.g.
    `("devices with tasks", 1200)`: sums of these are not looked at.
    """


@dataclass(frozen=True)
class MendSums(_OfSums, Verb[Sums]):
    """Count anew the sums over all devices and tasks that are wrong.

    Returns what was wrong, and what CheckSums would not look at either.
    """


@dataclass(frozen=True, slots=True)
class PageOfSums:
    """What a page adds up to; `total` is None when something in it cannot be read."""

    # An event's id is the server's time: two stores with the same tasks differ in it.
    last_event: str = field(compare=False)
    total: int | None
    stored: Mapping[str, int]
    counted: Mapping[str, int]


@dataclass(frozen=True)
class SumPage(Verb[PageOfSums]):
    """Add up a page of the devices with tasks, or of leases, beside what is stored.

    `place` is `macs`, or `inflight` with a lane. Sums of pages are right together if no event came
    and no stored sum changed from the first to the last. Raises UnknownLane, InvalidData.
    """

    place: str
    lane: str = ""
    offset: int = 0
    limit: int = 100
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return place, lane, offset and limit."""
        if self.place not in ("macs", "inflight"):
            raise InvalidData(f"place: {shown(self.place)}; use macs or inflight")
        lane = known_lane(self.lane, settings) if self.place == "inflight" else ""
        return (self.place, lane, *Page(self.offset, self.limit).args(settings))

    def decode(self, reply: Any) -> PageOfSums:
        """Return the page's sums."""
        last, total, stored, counted = reply
        return PageOfSums(
            text(last),
            int(total) if total >= 0 else None,
            {text(what): int(count) for what, count in stored},
            {text(what): int(count) for what, count in counted},
        )
