"""`fairlane stats`, `lanes`, `workers`, `devices`: the system's levels, read from the store."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any

import rich_click as click
from rich.table import Table

from fairlane.cli.opened import opened
from fairlane.cli.output import watch, watch_option
from fairlane.cli.table import show
from fairlane.client import Client
from fairlane.model import Device, DeviceLimits
from fairlane.verbs import InspectLanes, InspectTotals, InspectWorkers, Overload

_json = click.option("--json", "as_json", is_flag=True, help="All of it as JSON.")
_NO_WORKER = "its tasks wait, and no worker offers a slot; `fairlane workers` says why"
#: What fits a terminal, of what JSON has.
_LANE = ("name", "pending", "scheduled", "leased", "slots", "credits", "backoffs", "next_mac")
_DEVICE = ("mac", "site", "pending", "leased", "waited_ms", "score", "lanes", "limits")
_HEADS = {
    "waited_ms": "waited",
    "score": "score (aging only)",
    "age_ms": "age",
}
_WORKER = (
    "name",
    "hostname",
    "pid",
    "queues",
    "lanes",
    "slots",
    "active",
    "cpu",
    "memory",
    "reason",
    "age_ms",
)


@click.command(short_help="How much waits, runs and has ended.")
@_json
@watch_option
def stats(*, as_json: bool, watching: bool) -> None:
    """Show how much waits, runs and has ended, and whether the system is overloaded."""
    with opened() as client:
        if watching:
            watch(lambda: _stats(client))
            return
        data = _stats(client)
    _show([data], as_json=as_json, one=True)


def _stats(client: Client) -> dict[str, Any]:
    totals, overload = client.run(InspectTotals()), client.run(Overload())
    return {
        "pending": totals.pending,
        "delayed": totals.delayed,
        "leased": totals.leased,
        "dead_letters": totals.dead_letters,
        "overloaded": overload.overloaded,
        **totals.counts,
    }


@click.command(short_help="Pending, leased, slots and credits of every lane.")
@_json
@watch_option
def lanes(*, as_json: bool, watching: bool) -> None:
    """Show every lane: what waits, what is leased, what its workers can take, who is next."""
    with opened() as client:
        if watching:
            watch(lambda: [asdict(lane) for lane in client.run(InspectLanes())])
            return
        rows = [asdict(lane) for lane in client.run(InspectLanes())]
    _show(rows, as_json=as_json, columns=_LANE)
    for row in () if as_json else rows:
        if row["slots"] == 0 and row["pending"]:
            click.echo(f"lane {row['name']}: {_NO_WORKER}", err=True)


@click.command(short_help="What each worker offers, and why it offers nothing.")
@_json
@watch_option
def workers(*, as_json: bool, watching: bool) -> None:
    """Show the workers: lanes, slots, load, and why one offers nothing."""
    with opened() as client:
        if watching:
            watch(lambda: [asdict(worker) for worker in client.run(InspectWorkers())])
            return
        rows = [asdict(worker) for worker in client.run(InspectWorkers())]
    none = "no worker has reported; start one with `fairlane worker`, or all with `fairlane up`"
    shown = [row.pop("report") | row for row in rows]
    spare = ("hostname", "queues", "pid", "age_ms", "memory", "cpu")
    _show(shown, as_json=as_json, columns=_WORKER, none=none, whole=("name",), spare=spare)


@click.command(short_help="Devices with pending tasks: waits, scores, ranks.")
@click.option("--limit", default=50, show_default=True, help="How many, the longest waiting first.")
@_json
@watch_option
def devices(*, limit: int, as_json: bool, watching: bool) -> None:
    """Show the devices that have pending tasks: how long each has waited, and what holds it.

    `rank` is a place in the service order of its site, 0 being next. `score` is the document's
    S(d, t) at this moment; only policy aging uses it.
    """
    with opened() as client:
        if watching:
            watch(lambda: [asdict(device) for device in _devices(client, limit)])
            return
        found = _devices(client, limit)
        idle = {lane.name for lane in client.run(InspectLanes()) if lane.slots == 0}
    rows = []
    for device in found:
        row = asdict(device)
        row["lanes"] = [lane for lane in row["lanes"] if lane["pending"]]
        if not as_json:
            row["lanes"] = ", ".join(_lane(lane, idle) for lane in row["lanes"])
            row["limits"] = said(device.limits)
            row["score"] = f"{device.score:.1f}"
        rows.append(row)
    _show(
        rows,
        as_json=as_json,
        columns=_DEVICE,
        none="no device has pending tasks",
        whole=("mac",),
        spare=("score", "site", "leased"),
    )


def _devices(client: Client, limit: int) -> list[Device]:
    return [client.device(mac) for mac, _ in client.devices(limit=limit)]


def _lane(lane: dict[str, Any], idle: Collection[str]) -> str:
    place = lane["held_by"] or f"rank {lane['rank']}"
    if lane["lane"] in idle and not lane["held_by"]:
        place += ", no worker"
    return f"{lane['lane']} {lane['pending']} ({place})"


def said(limits: DeviceLimits) -> str:
    """Return those of a device's limits that are not the defaults."""
    default = asdict(DeviceLimits())
    return " ".join(
        name if value is True else f"{name}={value}"
        for name, value in asdict(limits).items()
        if value != default[name]
    )


def _show(
    rows: Sequence[dict[str, Any]],
    *,
    as_json: bool,
    one: bool = False,
    columns: Sequence[str] | None = None,
    none: str = "none",
    whole: Sequence[str] = (),
    spare: Sequence[str] = (),
) -> None:
    if as_json:
        click.echo(json.dumps(rows[0] if one else rows, indent=2))
        return
    if not rows:
        click.echo(none, err=True)
        return
    if one:
        table = Table("", "", show_header=False)
        for name, value in rows[0].items():
            table.add_row(name, str(value))
    else:
        shown = columns or tuple(rows[0])
        table = Table(*map(_head, shown))
        for row in rows:
            table.add_row(*(_cell(name, row.get(name, "")) for name in shown))
    show(table, whole=[*map(_head, whole)], spare=[*map(_head, spare)])


def _head(name: str) -> str:
    return _HEADS.get(name, name.replace("_", " "))


def _cell(name: str, value: Any) -> str:
    if name in ("waited_ms", "age_ms"):
        return f"{value / 1000:,.1f} s"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
