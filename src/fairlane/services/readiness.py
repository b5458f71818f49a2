"""Readiness: what is well with a system, what is not, and what to do about it.

The rule: a report is a pure function of one look (`probe.py`), so that `fairlane doctor` and
`/readyz` say the same. A check names what was found and, unless it is well, the next step. A system
is ready when it can accept tasks and keep them: a lane without workers is told, and fails its
check, but its tasks wait in safety.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from fairlane.client import AsyncClient, Client
from fairlane.errors import FairlaneError, StoreDenied, StoreReadOnly
from fairlane.probe import Probe
from fairlane.settings import Settings

#: A clock that is further off than this is told; nothing is decided by it.
_CLOCK_MS: Final = 1_000
#: A round trip that takes longer than this is told: a claim is one.
_ROUND_TRIP_MS: Final = 50
_MEMORY_PERCENT: Final = 90
#: What must not fail, or a task cannot be accepted and kept.
_ESSENTIAL: Final = frozenset(
    {"connection", "server", "durability", "eviction", "memory", "role", "writes", "settings"}
)


class Verdict(StrEnum):
    """How well it is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: its verdict, what was found, and the next step if any."""

    name: str
    verdict: Verdict
    found: str
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """All that was looked at. `durability` is none, rdb, aof-no, aof-everysec, aof-always, or ''.

    It is '' when the store could not be asked; `aof` when it keeps its fsync policy to itself.
    """

    checks: tuple[Check, ...]
    durability: str = ""

    @property
    def verdict(self) -> Verdict:
        """The worst verdict."""
        verdicts = {check.verdict for check in self.checks}
        order = (Verdict.FAIL, Verdict.WARN)
        return next((verdict for verdict in order if verdict in verdicts), Verdict.OK)

    @property
    def is_ready(self) -> bool:
        """Whether a task can be accepted and kept now."""
        failed = {check.name for check in self.checks if check.verdict is Verdict.FAIL}
        return not failed & _ESSENTIAL

    def check(self, name: str) -> Check | None:
        """Return the check of this name, or None when it could not be made."""
        return next((check for check in self.checks if check.name == name), None)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON."""
        return {
            "ready": self.is_ready,
            "verdict": str(self.verdict),
            "durability": self.durability,
            "checks": [asdict(check) for check in self.checks],
        }


def readiness(client: Client) -> Report:
    """Look at the store and judge what is found. Raises nothing: what fails is a check."""
    return judge(client.probe())


async def readiness_async(client: AsyncClient) -> Report:
    """Do the same for asyncio code."""
    return judge(await client.probe())


def unreachable(error: FairlaneError) -> Report:
    """Return the report on a store that gives no answer."""
    step = "start the store, or name the right one with FAIRLANE_STORE_URL"
    if isinstance(error, StoreDenied):
        step = "give FAIRLANE_STORE_URL the right user and password"
    return Report((Check("connection", Verdict.FAIL, str(error), step),))


def judge(found: Probe) -> Report:
    """Return the report on what a look has found."""
    if found.unreachable is not None:
        return unreachable(found.unreachable)
    checks = [check for judged in _CHECKS for check in judged(found)]
    return Report(tuple(checks), durability(found))


def durability(found: Probe) -> str:
    """Return what the store does so that its data survives it, in one word."""
    if found.info.get("aof_enabled") in (1, "1"):
        fsync = found.options.get("appendfsync")
        return f"aof-{fsync}" if fsync else "aof"
    # Without the right to ask, the server's own schedule is taken for what it is by default.
    return "rdb" if found.options.get("save", "3600 1") else "none"


def _connection(found: Probe) -> Iterator[Check]:
    ms = found.round_trip_ms
    slow = "put the store nearer: a task's way takes four round trips"
    said = f"answers in {ms:.2f} ms"
    if ms > _ROUND_TRIP_MS:
        yield Check("connection", Verdict.WARN, said, slow)
    else:
        yield Check("connection", Verdict.OK, said)


def _server(found: Probe) -> Iterator[Check]:
    info = found.info
    kind = "valkey" if "valkey_version" in info else "redis"
    mode = "cluster" if _number(found, "cluster_enabled") else "single server"
    said = f"{kind} {info.get(f'{kind}_version', '?')}, {mode}"
    if mode == "cluster":
        yield Check("server", Verdict.FAIL, said, "name a server that is no cluster")
    else:
        yield Check("server", Verdict.OK, said)


def _durability(found: Probe) -> Iterator[Check]:
    risks = {
        "none": "nothing is kept: a restart of the store loses every task",
        "rdb": "snapshots only: a crash loses what was accepted since the last one",
        "aof-no": "the system decides when to write: a crash of the machine loses up to 30 s",
    }
    kept = durability(found)
    if kept in risks:
        step = "set `appendonly yes` and `appendfsync everysec`"
        yield Check("durability", _risk(found.settings), f"{kept}: {risks[kept]}", step)
    else:
        yield Check("durability", Verdict.OK, kept)


def _eviction(found: Probe) -> Iterator[Check]:
    policy = found.info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        said = f"{policy}: the store may drop tasks and counters when its memory is full"
        step = "set `maxmemory-policy noeviction`"
        yield Check("eviction", _risk(found.settings), said, step)
    else:
        yield Check("eviction", Verdict.OK, policy)


def _memory(found: Probe) -> Iterator[Check]:
    used, limit = _number(found, "used_memory"), _number(found, "maxmemory")
    most = limit or _number(found, "total_system_memory")
    whose = "maxmemory" if limit else "the machine's memory; no maxmemory is set"
    if not most:
        yield Check("memory", Verdict.OK, f"{_size(used)} used")
        return
    percent = 100 * used / most
    said = f"{_size(used)} used, {percent:.0f} % of {_size(most)} ({whose})"
    step = "raise `maxmemory`" if limit else "give the machine more, or move the store"
    if limit and used >= limit:
        said += ": new tasks are refused, draining goes on"
        yield Check("memory", Verdict.FAIL, said, step)
    elif percent >= _MEMORY_PERCENT:
        yield Check("memory", Verdict.WARN, said, step)
    else:
        yield Check("memory", Verdict.OK, said)


def _role(found: Probe) -> Iterator[Check]:
    role = found.info.get("role", "master")
    if role == "master":
        replicas = _number(found, "connected_slaves")
        yield Check("role", Verdict.OK, f"primary, {replicas} replicas")
    else:
        master = f"{found.info.get('master_host')}:{found.info.get('master_port')}"
        said = f"a replica of {master}: it refuses writes"
        yield Check("role", Verdict.FAIL, said, "name the primary, or promote this one")


def _writes(found: Probe) -> Iterator[Check]:
    """Whether the last write to the disk failed: then the server refuses all writes (MISCONF)."""
    info, step = found.info, "see the server's log; free the disk, or mend its rights"
    if _number(found, "loading"):
        yield Check("writes", Verdict.FAIL, "the store is loading its data", "wait")
    elif info.get("aof_last_write_status", "ok") != "ok":
        said = "the last write to the append-only file failed: every write is refused (MISCONF)"
        yield Check("writes", Verdict.FAIL, said, step)
    elif info.get("rdb_last_bgsave_status", "ok") != "ok":
        stops = found.options.get("stop-writes-on-bgsave-error", "yes") == "yes"
        # A server without a schedule of snapshots does not mind that one failed.
        if stops and found.options.get("save", "3600 1"):
            said = "the last BGSAVE failed: every write is refused (MISCONF)"
            yield Check("writes", Verdict.FAIL, said, step)
        else:
            said = "the last BGSAVE failed; writes go on"
            yield Check("writes", Verdict.WARN, said, step)
    elif isinstance(found.refused, StoreReadOnly) and info.get("role") == "master":
        yield Check("writes", Verdict.FAIL, str(found.refused), step)
    else:
        yield Check("writes", Verdict.OK, "taken")


def _clock(found: Probe) -> Iterator[Check]:
    ahead = found.clock_ahead_ms
    way = "ahead of" if ahead > 0 else "behind"
    said = f"this host is {abs(ahead) / 1000:,.3f} s {way} the store"
    if abs(ahead) > _CLOCK_MS:
        step = "set the host's clock (NTP): only its logs suffer, the store's clock decides"
        yield Check("clock", Verdict.WARN, said, step)
    else:
        yield Check("clock", Verdict.OK, said)


def _settings(found: Probe) -> Iterator[Check]:
    if found.refused is not None:
        step = "mend what it says; `fairlane settings` and `fairlane settings --store` show both"
        yield Check("settings", Verdict.FAIL, str(found.refused), step)
    else:
        said = f"preset {found.settings.preset}, digest {found.digest}"
        yield Check("settings", Verdict.OK, f"agreed with the store: {said}")


def _scripts(found: Probe) -> Iterator[Check]:
    if found.library:
        yield Check("scripts", Verdict.OK, f"loaded: {found.library}")


def _consumers(found: Probe) -> Iterator[Check]:
    """Whether each lane has a worker: one that serves it, and one that offers slots in it."""
    for lane in found.lanes:
        serving = [worker for worker in found.workers if lane.name in worker.lanes]
        waits = f"; {lane.pending} tasks wait" if lane.pending else ""
        name = f"consumers of {lane.name}"
        offered = sum(worker.slots for worker in serving)
        if not serving and not _queues_are_served(found, lane.name):
            said = f"no consumer for lane {lane.name}{waits}"
            step = f"start one: `fairlane worker --queues {_queues(found.settings, lane.name)}`"
            yield Check(name, Verdict.FAIL, said, step)
        elif serving and not offered:
            reasons = "; ".join(sorted({worker.reason for worker in serving} - {""}))
            said = f"{len(serving)} workers offer no slot: {reasons or 'no reason given'}{waits}"
            yield Check(name, Verdict.WARN, said, "see `fairlane workers`, or start more")
        else:
            yield Check(name, Verdict.OK, f"{len(serving)} workers, {offered} slots")


def _queues_are_served(found: Probe, lane: str) -> bool:
    """Whether workers serve the lane's queues between them: in the two-step flow that will do."""
    if found.settings.flow != "turns":
        return False
    served = {
        queue for worker in found.workers for queue in worker.report.get("queues", "").split(",")
    }
    return set(_queues(found.settings, lane).split(",")) <= served


def _queues(settings: Settings, lane: str) -> str:
    kinds = (kind for kind in settings.task_types if kind.lane == lane)
    return ",".join(dict.fromkeys(kind.queue for kind in kinds))


def _risk(settings: Settings) -> Verdict:
    return Verdict.FAIL if settings.durability == "strict" else Verdict.WARN


def _number(found: Probe, name: str) -> int:
    words = str(found.info.get(name, 0))
    return int(words) if words.isdecimal() else 0


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


_CHECKS: Final[Sequence[Callable[[Probe], Iterator[Check]]]] = (
    _connection,
    _server,
    _durability,
    _eviction,
    _memory,
    _role,
    _writes,
    _clock,
    _settings,
    _scripts,
    _consumers,
)
