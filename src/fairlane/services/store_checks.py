"""The checks of a store's server: what it is, and whether it keeps what it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from fairlane.errors import StoreReadOnly
from fairlane.probe import Probe
from fairlane.services.check import Check, Verdict, counted
from fairlane.settings import Settings

#: A clock that is further off than this is told; nothing is decided by it.
_CLOCK_MS: Final = 1_000
#: A round trip that takes longer than this is told: a claim is one.
_ROUND_TRIP_MS: Final = 50
_MEMORY_PERCENT: Final = 90


def durability(found: Probe) -> str:
    """Return what the store does so that its data survives it, in one word; '' while it loads."""
    if _number(found, "loading"):
        return ""
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
    elif kept:
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
        yield Check("role", Verdict.OK, f"primary, {counted(replicas, 'replica')}")
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


def _epoch(found: Probe) -> Iterator[Check]:
    """Whether the store came back empty or older, and nobody has taken note of it yet."""
    if found.epoch is None:
        return
    if found.epoch.lost:
        said = f"the store came back {found.epoch.lost} at {_utc(found.epoch.lost_at_ms)}"
        step = "see what is missing, then `fairlane doctor --acknowledge`"
        yield Check("epoch", Verdict.FAIL, said, step)
    else:
        began = found.epoch.began_at_ms
        said = f"nothing was lost since {_utc(began)}" if began else "not begun: no process yet"
        yield Check("epoch", Verdict.OK, said)


def _scripts(found: Probe) -> Iterator[Check]:
    if found.library:
        yield Check("scripts", Verdict.OK, f"loaded: {found.library}")


def _risk(settings: Settings) -> Verdict:
    return Verdict.FAIL if settings.durability == "strict" else Verdict.WARN


def _number(found: Probe, name: str) -> int:
    words = str(found.info.get(name, 0))
    return int(words) if words.isdecimal() else 0


def _utc(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


STORE_CHECKS: Final[Sequence[Callable[[Probe], Iterator[Check]]]] = (
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
    _epoch,
)
