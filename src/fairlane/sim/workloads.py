"""The workloads that come with the simulator.

The rule: each asks one question of a scheduler, and its numbers follow from its size (devices,
tasks, slots) and its seed alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Final

from fairlane.sim.traces import TRACES, trace
from fairlane.sim.workload import Arrival, InvalidWorkload, Outage, Returning, Workload, mac_of
from fairlane.verbs import Configure

KIND: Final = "text"
WEIGHTS: Final = (1, 3, 9, 49)
#: Devices that send one task only have numbers apart from the others'.
_ONCE: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class Size:
    """How large a workload is, and what its random times come from."""

    devices: int
    tasks: int
    slots: int
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Known:
    """A workload that can be asked for by name: what it shows, and its usual size."""

    about: str
    about_zh: str
    size: Size
    make: Callable[[Size], Workload]


def names() -> dict[str, tuple[str, str]]:
    """Return what each workload shows, in English and in Chinese, by its name."""
    generated = {name: (each.about, each.about_zh) for name, each in KNOWN.items()}
    return generated | {name: (each.about, each.about_zh) for name, each in TRACES.items()}


def workload(
    name: str,
    *,
    devices: int | None = None,
    tasks: int | None = None,
    slots: int | None = None,
    seed: int = 1,
    speed: float | None = None,
    load: float | None = None,
) -> Workload:
    """Return a workload by its name, of its usual size where None is given.

    `speed` and `load` are for traces, `devices`, `tasks` and `seed` for the others.
    Raises InvalidWorkload for an unknown name or a size that it cannot have.
    """
    if name in TRACES:
        _refuse(name, "is a trace, whose size is given", devices=devices, tasks=tasks)
        return trace(name, slots=slots, speed=speed, load=load)
    if name not in KNOWN:
        close = get_close_matches(name, names(), n=1)
        hint = f". Did you mean {close[0]}?" if close else ""
        raise InvalidWorkload(
            f"workload: {name!r} is unknown; `fairlane simulate --list` has all{hint}"
        )
    _refuse(name, "is no trace", speed=speed, load=load)
    usual = KNOWN[name].size
    size = Size(
        usual.devices if devices is None else devices,
        usual.tasks if tasks is None else tasks,
        usual.slots if slots is None else slots,
        seed,
    )
    if size.devices < 2:
        raise InvalidWorkload("devices: fairness is between two at least")
    if size.tasks < 2 * size.devices and tasks is not None:
        raise InvalidWorkload(
            f"tasks: {size.tasks} are too few for {size.devices} devices; "
            f"send {2 * size.devices} or more, or fewer devices"
        )
    size = replace(size, tasks=max(size.tasks, 2 * size.devices))
    return replace(KNOWN[name].make(size), name=name)


def _refuse(name: str, why: str, **given: Any) -> None:
    for option, value in given.items():
        if value is not None:
            raise InvalidWorkload(f"{option}: {name} {why}; leave --{option} out")


def flood(size: Size, service_ms: int = 5) -> Workload:
    """Let some devices send all they have at once, many others one task each meanwhile."""
    heavy = max(1, size.devices // 5)
    light = size.devices - heavy
    span_ms = (size.tasks - light) * service_ms * 4 // (5 * size.slots)
    return _workload(
        size,
        [*_backlog(range(heavy), size.tasks - light, service_ms),
         *_once(light, 0, span_ms, service_ms, _chance(size))],
        heavy=map(mac_of, range(1, heavy + 1)),
        light=(mac_of(_ONCE + number) for number in range(light)),
    )  # fmt: skip


def newcomers(size: Size, service_ms: int = 200) -> Workload:
    """Keep some devices backlogged while new ones bring one task each."""
    backlogged = max(1, size.devices // 10)
    new = size.devices - backlogged
    span_ms = size.tasks * service_ms * 4 // (5 * size.slots)
    return _workload(
        size,
        [*_backlog(range(backlogged), size.tasks - new, service_ms),
         *_once(new, 0, span_ms, service_ms, _chance(size))],
        backlogged=map(mac_of, range(1, backlogged + 1)),
        new=(mac_of(_ONCE + number) for number in range(new)),
    )  # fmt: skip


def equal(size: Size, service_ms: int = 1_000) -> Workload:
    """Let equal devices send twice what the slots can do."""
    span_ms = size.tasks * service_ms // (2 * size.slots)
    chance = _chance(size)
    arrivals = sorted(
        Arrival(chance.randrange(span_ms), mac_of(1 + number % size.devices), KIND, service_ms)
        for number in range(size.tasks)
    )
    macs = map(mac_of, range(1, size.devices + 1))
    return replace(_workload(size, arrivals, equal=macs), until_ms=span_ms)


def weights(size: Size, service_ms: int = 1_000, values: Sequence[int] = WEIGHTS) -> Workload:
    """Keep devices backlogged that have these weights in turn."""
    given = {mac_of(1 + at): values[at % len(values)] for at in range(size.devices)}
    total = sum(given.values())
    # A quarter more than each one's share, so that nobody's queue ends before the time.
    counts = [5 * size.tasks * weight // (4 * total) + 2 * size.slots for weight in given.values()]
    groups: dict[str, list[str]] = {f"weight {weight}": [] for weight in values}
    for mac, weight in given.items():
        groups[f"weight {weight}"].append(mac)
    return replace(
        _workload(size, _queues(counts, [service_ms] * size.devices), **groups),
        changes=[(0, Configure(mac, weight=weight)) for mac, weight in given.items()],
        until_ms=size.tasks * service_ms // size.slots,
    )


def costs(size: Size, long_ms: int = 60_000, short_ms: int = 6_000) -> Workload:
    """Let one device send tasks of a minute, the others of six seconds, all backlogged."""
    services = [long_ms] + [short_ms] * (size.devices - 1)
    each_ms = int(size.tasks / sum(1 / service_ms for service_ms in services))
    counts = [5 * each_ms // (4 * service_ms) + 2 * size.slots for service_ms in services]
    return replace(
        _workload(
            size,
            _queues(counts, services),
            long=[mac_of(1)],
            short=map(mac_of, range(2, size.devices + 1)),
        ),
        until_ms=each_ms * size.devices // size.slots,
    )


def drain_trap(size: Size, service_ms: int = 1_000) -> Workload:
    """Keep one device backlogged while others come back as soon as they have drained."""
    until_ms = size.tasks * service_ms // size.slots
    macs = [mac_of(number) for number in range(2, size.devices + 1)]
    return replace(
        _workload(
            size, _backlog(range(1), size.tasks, service_ms), backlogged=[mac_of(1)], returning=macs
        ),
        returning=[Returning(mac, KIND, service_ms) for mac in macs],
        until_ms=until_ms,
    )


def sybil(size: Size, service_ms: int = 500) -> Workload:
    """Let one site flood under hundreds of addresses; a device of another sends a little."""
    false = size.devices - 1
    own = max(1, size.tasks // 20)
    work_ms = size.tasks * service_ms // size.slots
    chance = _chance(size)
    honest = sorted(
        Arrival(chance.randrange(work_ms * 9 // 10), mac_of(_ONCE), KIND, service_ms)
        for _ in range(own)
    )
    flooding = [mac_of(number) for number in range(1, false + 1)]
    return replace(
        _workload(
            size,
            [*_backlog(range(false), size.tasks - own, service_ms), *honest],
            sybil=flooding,
            honest=[mac_of(_ONCE)],
        ),
        sites=dict.fromkeys(flooding, "sybil") | {mac_of(_ONCE): "honest"},
    )


def outage(size: Size, service_ms: int = 2_000, outage_ms: int = 20 * 60_000) -> Workload:
    """Take all workers away for 20 minutes, at seven tenths of what the slots can do."""
    span_ms = size.tasks * service_ms * 10 // (7 * size.slots)
    chance = _chance(size)
    arrivals = sorted(
        Arrival(chance.randrange(span_ms), mac_of(1 + number % size.devices), KIND, service_ms)
        for number in range(size.tasks)
    )
    macs = map(mac_of, range(1, size.devices + 1))
    from_ms = span_ms // 4
    return replace(
        _workload(size, arrivals, all=macs), outages=[Outage(KIND, from_ms, from_ms + outage_ms)]
    )


def churn(size: Size, service_ms: int = 1_000) -> Workload:
    """Let new addresses with one task each send all that the slots can do; some devices stay."""
    staying = max(1, size.devices // 10)
    new = size.devices - staying
    until_ms = new * service_ms // size.slots
    every_ms = service_ms / size.slots
    arrivals = [
        Arrival(int(number * every_ms), mac_of(_ONCE + number), KIND, service_ms)
        for number in range(new)
    ]
    return replace(
        _workload(
            size,
            [*_backlog(range(staying), size.tasks - new, service_ms), *arrivals],
            staying=map(mac_of, range(1, staying + 1)),
            new=(arrival.mac for arrival in arrivals),
        ),
        until_ms=until_ms,
    )


def hoard(size: Size, service_ms: int = 1_000) -> Workload:
    """Keep some devices idle, paused or capped for half of the time; then let all compete."""
    until_ms = size.tasks * service_ms // size.slots
    roles: dict[str, list[str]] = {"busy": [], "idle": [], "paused": [], "capped": []}
    changes: list[tuple[int, Configure]] = []
    arrivals: list[Arrival] = []
    for at in range(size.devices):
        role, mac = tuple(roles)[at % 4], mac_of(1 + at)
        roles[role].append(mac)
        begins_ms = until_ms // 2 if role == "idle" else 0
        arrivals += [Arrival(begins_ms, mac, KIND, service_ms)] * size.tasks
        if role == "paused":
            changes += [(0, Configure(mac, paused=True))]
            changes += [(until_ms // 2, Configure(mac, paused=False))]
        elif role == "capped":
            changes += [(0, Configure(mac, max_running=1))]
            changes += [(until_ms // 2, Configure(mac, max_running=0))]
    arrivals.sort(key=lambda arrival: arrival.at_ms)
    changes.sort(key=lambda change: change[0])
    return replace(_workload(size, arrivals, **roles), changes=changes, until_ms=until_ms)


KNOWN: Final[Mapping[str, Known]] = {
    "flood": Known(
        "a fifth of the devices send all they have at once, the others one task each",
        "五分之一的设备一次性发出全部任务，其余设备各发一个任务",
        Size(250, 10_200, 8), flood,
    ),
    "newcomers": Known(
        "new devices with one task each meet devices that are always backlogged",
        "只有一个任务的新设备遇到始终积压的设备",
        Size(400, 8_000, 8), newcomers,
    ),
    "equal": Known(
        "equal devices send twice what the slots can do",
        "相同的设备发送两倍于处理能力的任务",
        Size(30, 6_000, 8), equal,
    ),
    "weights": Known(
        "backlogged devices of the weights 1, 3, 9 and 49",
        "权重为 1, 3, 9, 49 的积压设备",
        Size(4, 6_200, 2), weights,
    ),
    "costs": Known(
        "one device sends tasks of a minute, the others of six seconds",
        "一台设备的任务长一分钟，其余设备的任务长六秒",
        Size(8, 4_260, 8), costs,
    ),
    "drain-trap": Known(
        "devices that drain and come back at once meet a backlogged one",
        "排空后立即返回的设备与一台积压的设备竞争",
        Size(5, 2_000, 1), drain_trap,
    ),
    "sybil": Known(
        "one site floods under hundreds of addresses, a device of another site sends little",
        "一个站点用数百个地址发起洪泛，另一站点的设备只发少量任务",
        Size(501, 6_000, 4), sybil,
    ),
    "outage": Known(
        "all workers are away for 20 minutes",
        "所有工作进程离线 20 分钟",
        Size(20, 6_000, 8), outage,
    ),
    "churn": Known(
        "an endless stream of new addresses with one task each; some devices stay",
        "源源不断的新地址各带一个任务，少数设备一直在场",
        Size(4_000, 10_000, 8), churn,
    ),
    "hoard": Known(
        "devices that were idle, paused or capped for half of the time have not saved up",
        "一半时间空闲、暂停或受限的设备不会积攒份额",
        Size(8, 2_400, 8), hoard,
    ),
}  # fmt: skip


def _workload(size: Size, arrivals: list[Arrival], **groups: Any) -> Workload:
    arrivals.sort(key=lambda arrival: arrival.at_ms)
    named = {mac: group for group, macs in groups.items() for mac in macs}
    return Workload("", arrivals, {KIND: size.slots}, named)


def _chance(size: Size) -> random.Random:
    return random.Random(size.seed)  # noqa: S311 - a traffic, no secret


def _backlog(numbers: range, tasks: int, service_ms: int) -> list[Arrival]:
    """Return tasks that are all there at the begin, shared out among devices."""
    count = len(numbers)
    return [
        Arrival(0, mac_of(1 + number), KIND, service_ms)
        for number in numbers
        for _ in range(tasks // count + (number < tasks % count))
    ]


def _queues(counts: list[int], services_ms: list[int]) -> list[Arrival]:
    """Return what is all there at the begin: so many tasks of that length for each device."""
    return [
        Arrival(0, mac_of(1 + at), KIND, service_ms)
        for at, (tasks, service_ms) in enumerate(zip(counts, services_ms, strict=True))
        for _ in range(tasks)
    ]


def _once(
    devices: int, from_ms: int, until_ms: int, service_ms: int, chance: random.Random
) -> list[Arrival]:
    """Return one task of each of many devices, at times drawn evenly."""
    times = sorted(chance.randrange(from_ms, max(from_ms + 1, until_ms)) for _ in range(devices))
    return [
        Arrival(at_ms, mac_of(_ONCE + number), KIND, service_ms)
        for number, at_ms in enumerate(times)
    ]
