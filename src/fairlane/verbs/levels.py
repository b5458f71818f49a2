"""The system's levels: overload, watermark, lanes, totals."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from fairlane import model
from fairlane.settings import Settings
from fairlane.verbs.verb import Arg, Verb, pairs, text


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
        """Return the counts."""
        counts = {name: int(value) for name, value in pairs(reply[4])}
        return model.Totals(counts, *map(int, reply[:4]))
