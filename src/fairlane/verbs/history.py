"""The history: what the system did, minute by minute, for a day.

The rule: a row holds counts as they stood, so a minute that nobody recorded costs its own detail
and nothing else: the next row counts from the last one that there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Final

import msgspec

from fairlane.settings import Settings
from fairlane.verbs.bounds import checked_limit
from fairlane.verbs.verb import Arg, Verb, text

#: Rows that are kept: a day. The oldest is the beginning of the first minute that can be told.
MOST_MINUTES: Final = 1_439


@dataclass(frozen=True, slots=True)
class LaneLevel:
    """A lane at one time."""

    name: str
    pending: int
    leased: int
    slots: int


@dataclass(frozen=True, slots=True)
class Minute:
    """What happened in the `seconds` before `at_ms`, and the levels then.

    `enqueued`, `done`, `failed`, `dead`, `expired`, `cancelled` and `refused` are tasks. The waits
    are those of all whose first attempt ended in this time, from their acceptance until they were
    handed out, each as exact as the bucket that it was counted in; None where none did. Jain's
    index is of a sample, None of too few: it is that of the work that devices got, each by its
    weight, that had tasks all the time. 1 is perfectly fair.
    """

    at_ms: int
    seconds: float
    enqueued: int
    done: int
    failed: int
    dead: int
    expired: int
    cancelled: int
    refused: int
    wait_p50_ms: int | None
    wait_p99_ms: int | None
    jain: float | None
    pending: int
    leased: int
    delayed: int
    dead_letters: int
    lanes: tuple[LaneLevel, ...]

    @property
    def finished(self) -> int:
        """Tasks that have come to an end, in whatever way."""
        return self.done + self.failed + self.dead + self.expired + self.cancelled


#: What is empty in Lua is a list in JSON.
Empty = Annotated[list[Any], msgspec.Meta(max_length=0)]


class _Row(msgspec.Struct, frozen=True):
    recorded_at: float
    accepted: int
    done: int
    failed: int
    dead: int
    expired: int
    cancelled: int
    refused: int
    pending: int
    leased: int
    delayed: int
    dead_letters: int
    waits: int
    devices: int
    shares: float
    squares: float
    noise: float
    lanes: dict[str, tuple[int, int, int]] | Empty = field(default_factory=dict)
    waited: list[int] = field(default_factory=list)


_decode: Final = msgspec.json.Decoder(_Row).decode


@dataclass(frozen=True)
class RecordMinute(Verb[bool]):
    """Record the system's level for the history, once a minute.

    False when this minute has its row.
    """

    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return nothing."""
        return ()

    def decode(self, reply: Any) -> bool:
        """Return whether this call recorded it."""
        return bool(int(reply))


@dataclass(frozen=True)
class ReadHistory(Verb[tuple[Minute, ...]]):
    """Read the history: a row for each of the last minutes that has one, oldest first.

    A row that cannot be read is left out. Raises InvalidData for more than a day.
    """

    minutes: int = 60
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return how many minutes."""
        return (checked_limit(self.minutes, MOST_MINUTES),)

    def decode(self, reply: Any) -> tuple[Minute, ...]:
        """Return the minutes, each as what came since the row before."""
        bounds_ms, rows = [*map(int, reply[0])], [*_readable(reply[1])]
        return tuple(_minute(before, after, bounds_ms) for before, after in pairwise(rows))


def _readable(rows: Iterable[Any]) -> Iterator[_Row]:
    for row in rows:
        # Another program may have written it, and the other minutes are none the worse for it.
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            yield _decode(text(row).partition(" ")[2])


def _minute(before: _Row, after: _Row, bounds_ms: Sequence[int]) -> Minute:
    def came(name: str) -> int:
        # A store that came back older counts from where it is.
        return max(0, int(getattr(after, name) - getattr(before, name)))

    waits = [max(0, new - old) for old, new in zip(before.waited, after.waited, strict=False)]
    ended = sum(map(came, ("done", "failed", "dead")))
    return Minute(
        at_ms=int(after.recorded_at),
        seconds=max(0.001, (after.recorded_at - before.recorded_at) / 1000),
        enqueued=came("accepted"),
        done=came("done"),
        failed=came("failed"),
        dead=came("dead"),
        expired=came("expired"),
        cancelled=came("cancelled"),
        refused=came("refused"),
        wait_p50_ms=_quantile_ms(waits, bounds_ms, 0.5),
        wait_p99_ms=_quantile_ms(waits, bounds_ms, 0.99),
        jain=_jain(after, min(1.0, after.waits / ended) if ended else 1.0),
        pending=after.pending,
        leased=after.leased,
        delayed=after.delayed,
        dead_letters=after.dead_letters,
        lanes=tuple(_lanes(after.lanes)),
    )


def _quantile_ms(counts: Sequence[int], bounds_ms: Sequence[int], part: float) -> int | None:
    """Return a quantile of a histogram, told as if a bucket's times were spread evenly in it.

    Over the last bound it is that bound; None of nothing.
    """
    rank, below, lower_ms = part * sum(counts), 0, 0
    if not rank:
        return None
    for count, upper_ms in zip(counts, bounds_ms, strict=False):
        if count and below + count >= rank:
            return round(lower_ms + (upper_ms - lower_ms) * (rank - below) / count)
        below, lower_ms = below + count, upper_ms
    return lower_ms


def _jain(row: _Row, sampled: float) -> float | None:
    """Return Jain's index of the shares, less what the sample alone would spread them by."""
    if row.devices < 2 or row.shares <= 0:
        return None
    squares = row.squares - (1 - sampled) * row.noise
    return round(min(1.0, row.shares**2 / (row.devices * max(squares, 1e-9))), 4)


def _lanes(lanes: Mapping[str, tuple[int, int, int]] | list[Any]) -> list[LaneLevel]:
    return [LaneLevel(name, *levels) for name, levels in sorted(dict(lanes).items())]
