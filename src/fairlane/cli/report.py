"""What the demo tells in the end: a row a device, and a sum that must come out even."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from fairlane.cli.replay import FLOODER, DeviceOutcome, Outcome

_ENDS = ("done", "failed", "dead", "expired", "unfinished", "lost")


def summary(outcome: Outcome) -> dict[str, Any]:
    """Return the result as data; `balanced` is true if every accepted task is accounted for."""
    devices = list(outcome.devices.values())
    states: Counter[str] = sum((device.states for device in devices), Counter())
    accepted = sum(device.accepted for device in devices)
    ended = {name: states[name] for name in ("done", "failed", "dead", "expired")}
    light = [device for device in devices if device.mac != FLOODER]
    flood = [device for device in devices if device.mac == FLOODER]
    return {
        "accepted": accepted,
        **ended,
        "unfinished": accepted - sum(ended.values()) - outcome.lost,
        "lost": outcome.lost,
        "balanced": accepted == sum(ended.values()) and outcome.lost == 0,
        "refused_then_sent_again": sum(device.refused for device in devices),
        "seconds": round(outcome.seconds, 1),
        "light": _waits(light),
        "flood": _waits(flood),
        "findings": dict(sorted(sum((d.findings for d in devices), Counter()).items())),
    }


def show(outcome: Outcome, report: dict[str, Any]) -> None:
    """Print a row per device and the summary."""
    console = Console(markup=False)
    table = Table("device", "sent", "done", "wait p50", "wait p99", "findings")
    for column in table.columns[1:5]:
        column.justify = "right"
    for device in outcome.devices.values():
        waits = _waits([device])
        name = f"{device.mac} (floods)" if device.mac == FLOODER else device.mac
        table.add_row(name, str(device.accepted), str(device.states["done"]),
                      _seconds(waits["wait_p50_ms"]), _seconds(waits["wait_p99_ms"]),
                      ", ".join(f"{kind} {n}" for kind, n in sorted(device.findings.items())),
                      style="yellow" if device.mac == FLOODER else None)  # fmt: skip
    console.print(table)
    parts = (f"{report[name]} {name}" for name in _ENDS if report[name] or name != "unfinished")
    console.print(f"{report['accepted']} accepted = {', '.join(parts)}; {report['seconds']} s")
    console.print(
        f"a light device waits {_seconds(report['light']['wait_p50_ms'])} (p50), "
        f"{_seconds(report['light']['wait_p99_ms'])} (p99)"
    )
    if report["flood"]["tasks"]:
        console.print(
            f"the flooding one waits {_seconds(report['flood']['wait_p50_ms'])} (p50), "
            f"{_seconds(report['flood']['wait_p99_ms'])} (p99); it was refused "
            f"{report['refused_then_sent_again']} times while its queue was full"
        )
    found = ", ".join(f"{count} {kind}" for kind, count in report["findings"].items())
    console.print(f"found: {found or 'nothing'}")


def _waits(devices: Sequence[DeviceOutcome]) -> dict[str, Any]:
    waits = sorted(wait for device in devices for wait in device.waits_ms)
    return {
        "tasks": len(waits),
        "wait_p50_ms": _percentile(waits, 50),
        "wait_p99_ms": _percentile(waits, 99),
    }


def _percentile(ordered: Sequence[int], percent: int) -> int | None:
    if len(ordered) < 2:
        return ordered[0] if ordered else None
    return round(statistics.quantiles(ordered, n=100, method="inclusive")[percent - 1])


def _seconds(wait_ms: int | None) -> str:
    return (
        "–" if wait_ms is None else f"{wait_ms} ms" if wait_ms < 1000 else f"{wait_ms / 1000:.1f} s"
    )
