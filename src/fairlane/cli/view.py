"""What `fairlane top` shows and does, without a terminal.

The rule: one look at the store a second, whatever is shown; an act is one that a command has too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fairlane.client import Client
from fairlane.model import Device, Lane, TaskRecord, Totals, Worker
from fairlane.verbs import (
    Configure,
    DeadLetters,
    InspectLanes,
    InspectTotals,
    InspectWorkers,
    Redrive,
)
from fairlane.verbs.search import TaskQuery

#: Devices and dead letters that are shown: the longest waiting, the newest.
MOST: Final = 100


@dataclass(frozen=True, slots=True)
class View:
    """What a look at the store found."""

    totals: Totals
    lanes: tuple[Lane, ...]
    workers: tuple[Worker, ...]
    devices: tuple[Device, ...]
    dead: tuple[TaskRecord, ...]


def look(client: Client) -> View:
    """Return what there is now. Raises StoreError."""
    listed = client.devices(limit=MOST)
    devices = [client.device(mac) for mac, _ in listed]
    return View(
        client.run(InspectTotals()),
        client.run(InspectLanes()),
        client.run(InspectWorkers()),
        tuple(devices),
        client.run(DeadLetters(0, MOST)),
    )


def toggle_pause(client: Client, mac: str) -> str:
    """Pause a device, or let it go on; return what was done."""
    is_paused = client.device(mac).limits.paused
    client.run(Configure(mac, paused=not is_paused))
    return f"{mac} {'goes on' if is_paused else 'is paused'}"


def redrive(client: Client, task_id: str) -> str:
    """Give a dead letter new attempts; return what was done."""
    (done,) = client.run(Redrive([task_id]))
    return f"{task_id} {'is pending again' if done else 'was no dead letter any more'}"


def cancel_waiting(client: Client, mac: str) -> str:
    """Cancel the tasks of a device that wait; return what was done."""
    return f"{client.cancel_many(TaskQuery(mac=mac)).done} waiting tasks of {mac} are cancelled"
