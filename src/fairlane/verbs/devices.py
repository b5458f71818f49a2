"""Devices: read, configured, listed, recounted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from fairlane import formulas
from fairlane.errors import InvalidData
from fairlane.mac import canonical
from fairlane.model import Device, DeviceLane
from fairlane.settings import Settings
from fairlane.verbs.bounds import Page, checked_flag, shown
from fairlane.verbs.verb import Arg, Verb, pairs, text, texts

MAX_WEIGHT = 1_000.0


@dataclass(frozen=True)
class Configure(Verb[tuple[float, bool]]):
    """Set a device's weight or pause; active at once on its backlog.

    None leaves a setting as it is. Weight 1 and no pause are the defaults, and a device that has
    both is not remembered. Returns (weight, paused). Raises InvalidMac, InvalidData.
    """

    mac: str
    weight: float | None = None
    paused: bool | None = None
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return device, weight or nothing, pause or nothing."""
        weight = self.weight
        if weight is not None and not (
            type(weight) in (int, float) and 1 / MAX_WEIGHT <= weight <= MAX_WEIGHT
        ):
            raise InvalidData(f"weight: {shown(weight)}; send {1 / MAX_WEIGHT} to {MAX_WEIGHT:.0f}")
        return (
            canonical(self.mac),
            "" if weight is None else f"{weight:.6g}",
            "" if self.paused is None else str(checked_flag("paused", self.paused)),
        )

    def decode(self, reply: Any) -> tuple[float, bool]:
        """Return the settings in force."""
        return float(reply[0]), reply[1] == 1


@dataclass(frozen=True)
class Devices(Page, Verb[tuple[tuple[str, int], ...]]):
    """List the devices that have pending tasks, the longest backlogged first.

    Returns (mac, pending) pairs. Raises InvalidData for a limit outside 1 to 1,000.
    """

    def decode(self, reply: Any) -> tuple[tuple[str, int], ...]:
        """Return the devices."""
        return tuple((mac, int(pending)) for mac, pending in pairs(reply))


@dataclass(frozen=True)
class InspectDevice(Verb[Device]):
    """Read a device: what it has pending, since when, its rank and why it cannot go, lane by lane.

    S(d, t) is computed from the clock of the reading, so it is exact at that time (section 4.1).
    Raises InvalidMac.
    """

    mac: str
    max_wait_ms: int = formulas.AGING_MAX_WAIT_MS
    weight: float = formulas.AGING_WEIGHT
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return the device."""
        return (canonical(self.mac),)

    def decode(self, reply: Any) -> Device:
        """Return the device, its waits and its score."""
        now_ms, meta = int(reply[0]), dict(pairs(reply[1]))
        paused = meta.get("paused") == b"1"
        oldest_ms = int(meta.get("oldest_created_at") or 0)
        waited_ms = formulas.wait_ms(now_ms, oldest_ms or None)
        return Device(
            mac=canonical(self.mac),
            now_ms=now_ms,
            pending=int(meta.get("pending_count") or 0),
            oldest_ms=oldest_ms,
            waited_ms=waited_ms,
            score=formulas.score(waited_ms, max_wait_ms=self.max_wait_ms, weight=self.weight),
            weight=float(meta.get("weight") or 1),
            paused=paused,
            lanes=tuple(map(partial(_lane, paused=paused), reply[2])),
        )


@dataclass(frozen=True)
class Reconcile(Page, Verb[tuple[int, tuple[str, ...]]]):
    """Recount a page of devices from their lists and seat them; on a healthy store nothing changes.

    Returns (the next offset or -1, the devices that were mended). Raises InvalidData for a limit
    outside 1 to 1,000.
    """

    def decode(self, reply: Any) -> tuple[int, tuple[str, ...]]:
        """Return where to go on and what was mended."""
        return int(reply[0]), texts(reply[1])


def _lane(row: Any, *, paused: bool) -> DeviceLane:
    name, queued, pending, oldest, served, rank, tag, backoff, turn = row
    held_by, until_ms = "", 0
    if int(rank) < 0:
        for reason, holds, until in (
            ("nothing queued", int(queued) == 0, 0),
            ("paused", paused, 0),
            ("backoff", int(backoff) > 0, int(backoff)),
            ("turn", int(turn) > 0, int(turn)),
        ):
            if holds:
                held_by, until_ms = reason, until
                break
    return DeviceLane(
        lane=text(name),
        queued=int(queued),
        pending=int(pending),
        oldest_ms=int(oldest),
        served_at_ms=int(served),
        rank=int(rank),
        tag=abs(int(float(tag))),
        held_by=held_by,
        until_ms=until_ms,
    )
