"""Devices: read, configured, listed, recounted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from fairlane import formulas
from fairlane.errors import InvalidData
from fairlane.mac import canonical
from fairlane.model import Device, DeviceLane, DeviceLimits
from fairlane.settings import Settings
from fairlane.verbs.bounds import Page, checked_count, checked_flag, checked_site, shown
from fairlane.verbs.verb import Arg, Verb, pairs, storable, text, texts

MAX_WEIGHT: Final = 1_000.0
MAX_RUNNING: Final = 1_000_000
MAX_RATE_PER_S: Final = 1_000_000.0


@dataclass(frozen=True)
class Configure(Verb[DeviceLimits]):
    """Set a device's weight, pause, limits or site; active at once on its backlog.

    None leaves a setting as it is. Weight 1, no pause, 0 for `min_running` (served first while it
    has fewer tasks running), `max_running` (never more at once) and `rate_per_s` (no more tasks a
    second), and no site (`""`) are the defaults; a device that has them all is not remembered.
    `if_versions` are those of the settings that it may change (`DeviceLimits.version`); none is
    any. Returns what is in force. Raises InvalidMac, InvalidData, LimitsChanged.
    """

    mac: str
    weight: float | None = None
    paused: bool | None = None
    min_running: int | None = None
    max_running: int | None = None
    rate_per_s: float | None = None
    site: str | None = None
    if_versions: Sequence[str] = ()
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return device, weight, pause, limits and site, each or nothing, and the versions."""
        return (
            canonical(self.mac),
            _number("weight", self.weight, 1 / MAX_WEIGHT, MAX_WEIGHT),
            "" if self.paused is None else str(checked_flag("paused", self.paused)),
            _count("min_running", self.min_running),
            _count("max_running", self.max_running),
            "0" if self.rate_per_s == 0 and type(self.rate_per_s) in (int, float)
            else _number("rate_per_s", self.rate_per_s, 1 / MAX_RATE_PER_S, MAX_RATE_PER_S),
            "" if self.site is None else "-" if self.site == "" else checked_site(self.site),
            " ".join(map(storable, self.if_versions)),
        )  # fmt: skip

    def decode(self, reply: Any) -> DeviceLimits:
        """Return the settings in force."""
        weight, paused, min_running, max_running, rate, site = map(text, reply)
        return DeviceLimits(
            weight=float(weight),
            paused=paused == "1",
            min_running=int(min_running),
            max_running=int(max_running),
            rate_per_s=float(rate),
            site="" if site == "-" else site,
        )


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
        oldest_ms = int(meta.get("oldest_created_at") or 0)
        leased = int(meta.get("leased") or 0)
        limits = DeviceLimits(
            weight=float(meta.get("weight") or 1),
            paused=meta.get("paused") == b"1",
            min_running=int(meta.get("min_running") or 0),
            max_running=int(meta.get("max_running") or 0),
            rate_per_s=float(meta.get("rate") or 0),
            site=text(meta.get("site") or b""),
        )
        waited_ms = formulas.wait_ms(now_ms, oldest_ms or None)
        return Device(
            mac=canonical(self.mac),
            now_ms=now_ms,
            pending=int(meta.get("pending_count") or 0),
            oldest_ms=oldest_ms,
            waited_ms=waited_ms,
            score=formulas.score(waited_ms, max_wait_ms=self.max_wait_ms, weight=self.weight),
            leased=leased,
            site=text(reply[3]),
            limits=limits,
            lanes=tuple(_lane(row, limits, leased) for row in reply[2]),
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


def _number(name: str, value: float | None, least: float, most: float) -> str:
    if value is None:
        return ""
    if type(value) not in (int, float) or not least <= value <= most:
        raise InvalidData(f"{name}: {shown(value)}; send {least:g} to {most:,.0f}")
    return f"{value:.6g}"


def _count(name: str, count: int | None) -> str:
    return "" if count is None else str(checked_count(name, count, MAX_RUNNING))


def _lane(row: Any, limits: DeviceLimits, running: int) -> DeviceLane:
    name, queued, pending, leased, oldest, served, rank, tag, backoff, turn, token = row
    held_by, until_ms = "", 0
    if int(rank) < 0:
        for reason, holds, until in (
            ("nothing queued", int(queued) == 0, 0),
            ("paused", limits.paused, 0),
            ("backoff", int(backoff) > 0, int(backoff)),
            ("turn", int(turn) > 0, int(turn)),
            ("max_running", 0 < limits.max_running <= running, 0),
            ("rate", int(token) > 0, int(token)),
        ):
            if holds:
                held_by, until_ms = reason, until
                break
    return DeviceLane(
        lane=text(name),
        queued=int(queued),
        pending=int(pending),
        leased=int(leased),
        oldest_ms=int(oldest),
        served_at_ms=int(served),
        rank=int(rank),
        tag=abs(int(float(tag))),
        held_by=held_by,
        until_ms=until_ms,
    )
