"""The system's levels: overload, watermark, lanes, totals."""

from __future__ import annotations

import json
from dataclasses import dataclass
from struct import unpack
from typing import Any, ClassVar, Final

from fairlane import model
from fairlane.settings import Settings
from fairlane.verbs.bounds import checked_count, checked_limit
from fairlane.verbs.verb import Arg, Verb, text

#: What is timed of a task, in the order that `_times.lua` keeps.
WHATS: Final = ("wait", "dispatch", "run", "whole")
_MAX_BYTES: Final = 10**15
_MAX_MS: Final = 3_600_000
#: What the store counts to.
_MAX_COUNT: Final = 2**53


class _Reading:
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return nothing."""
        return ()


@dataclass(frozen=True)
class Overload(_Reading, Verb[model.Overload]):
    """Tell whether the system is overloaded, by the document's formula (section 4.4)."""

    def decode(self, reply: Any) -> model.Overload:
        """Return the verdict and what was compared."""
        return model.Overload(reply[0] == 1, int(reply[1]), int(reply[2]))


@dataclass(frozen=True)
class Watermark(_Reading, Verb[model.Watermark]):
    """Publish the system's level: pending tasks, devices, workers, and the measured drain rate."""

    def decode(self, reply: Any) -> model.Watermark:
        """Return what was published."""
        return model.Watermark(**json.loads(reply))


@dataclass(frozen=True)
class ReadWatermark(_Reading, Verb[model.Watermark | None]):
    """Read the last published watermark.

    None when none was published for its TTL.
    """

    def decode(self, reply: Any) -> model.Watermark | None:
        """Return the watermark."""
        return None if reply is None else model.Watermark(**json.loads(reply))


@dataclass(frozen=True)
class Measure(Verb[model.Fullness]):
    """Note how full the store's memory is; over the high mark no task is taken in.

    `max_bytes` 0 is no limit. The high mark is `store_full_percent`; once over it, the low one
    counts, `low_mark_percent` of that. `Client.measure` asks the server. Raises InvalidData.
    """

    used_bytes: int
    max_bytes: int
    lasts_ms: int = 30_000
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return what is used, the limit, and how long that is believed."""
        return (
            checked_count("used_bytes", self.used_bytes, _MAX_BYTES),
            checked_count("max_bytes", self.max_bytes, _MAX_BYTES),
            checked_limit(self.lasts_ms, _MAX_MS),
        )

    def decode(self, reply: Any) -> model.Fullness:
        """Return whether the store takes tasks in."""
        return model.Fullness(reply[0] == 1, int(reply[1]), reply[2] == 1)


@dataclass(frozen=True)
class InspectLanes(_Reading, Verb[tuple[model.Lane, ...]]):
    """Read every lane: pending, leased, slots, credits, and who is next."""

    def decode(self, reply: Any) -> tuple[model.Lane, ...]:
        """Return the lanes."""
        return tuple(
            model.Lane(text(name), text(mac), *map(int, numbers)) for name, *numbers, mac in reply
        )


@dataclass(frozen=True)
class InspectTotals(_Reading, Verb[model.Totals]):
    """Read the cumulative counts: accepted, refused by reason, and how tasks ended."""

    def decode(self, reply: Any) -> model.Totals:
        """Return the counts; what another program wrote there is none, and named."""
        named = [(str(reply[4][at], "utf-8", "replace"), reply[4][at + 1])
                 for at in range(0, len(reply[4]), 2)]  # fmt: skip
        counts = {name: int(value) for name, value in named if value is not None}
        spoiled = tuple(name for name, value in named if value is None)
        pending, leased, delayed, dead_letters = map(int, reply[:4])
        return model.Totals(counts, pending, leased, delayed, dead_letters, spoiled)


@dataclass(frozen=True)
class InspectTimes(_Reading, Verb[tuple[model.Histogram, ...]]):
    """Read how long tasks waited and ran, as histograms per lane."""

    def decode(self, reply: Any) -> tuple[model.Histogram, ...]:
        """Return four histograms of each lane where something ended, and none that is spoiled."""
        bounds_ms = tuple(map(int, reply[0]))
        size = len(bounds_ms) + 2
        return tuple(
            model.Histogram(what, text(lane), bounds_ms, numbers[at : at + size - 1],
                            numbers[at + size - 1])
            for lane, packed in zip(reply[1][::2], reply[1][1::2], strict=True)
            for numbers in (unpack(f">{4 * size}q", packed),)
            # Else another program wrote there, and the next end begins anew.
            if all(0 <= number <= _MAX_COUNT for number in numbers)
            for what, at in zip(WHATS, range(0, 4 * size, size), strict=True)
        )  # fmt: skip


@dataclass(frozen=True)
class InspectShares(Verb[tuple[model.Share, ...]]):
    """Read what the devices that wait have used of the workers, lane by lane.

    Raises InvalidData for a limit outside 1 to 1,000.
    """

    limit: int = 1_000
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return the limit."""
        return (checked_limit(self.limit),)

    def decode(self, reply: Any) -> tuple[model.Share, ...]:
        """Return the shares."""
        return tuple(
            model.Share(text(lane), text(mac), float(weight), int(used))
            for lane, mac, weight, used in reply
        )
