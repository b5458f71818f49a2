"""Fault points: named places where the fault suite may kill or freeze a process.

The rule: off unless the setting `fault_tickets` names a folder, and then still nothing happens
without a ticket there: a file with the name of the point that says `kill` or `freeze`. Whoever
removes the ticket does what it says, so one ticket is one fault, however many processes pass the
point. Off, a point is one look at an empty text.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Final

log = logging.getLogger("fairlane.faults")

#: The points, and what has happened when one is passed.
POINTS: Final[Mapping[str, str]] = {
    "client.before_enqueue": "a producer is about to send a task",
    "client.after_enqueue": "the task is stored; its producer has not told anybody",
    "dispatcher.before_claim": "the dispatcher is about to lease tasks",
    "dispatcher.after_claim": "tasks are leased (or a turn is open), and nothing is published",
    "dispatcher.after_publish": "tasks are leased and published",
    "worker.before_start": "a worker's child has the message; nothing is recorded",
    "worker.after_start": "the start is recorded; the handler has not begun",
    "worker.before_finish": "the handler has done its work; no end is recorded",
    "worker.after_finish": "the end is recorded; the broker has no acknowledgement",
}
_SIGNALS: Final = {"kill": signal.SIGKILL, "freeze": signal.SIGSTOP}

_folder = ""


def arm(folder: str) -> None:
    """Let this process look for tickets in a folder from now on; an empty name changes nothing."""
    global _folder
    if folder and folder != _folder:
        _folder = folder
        log.warning("fault points are armed: this process may be killed by a ticket in %s", folder)


def fault(point: str) -> None:
    """Pass a point: nothing happens unless this process is armed and finds a ticket for it."""
    if _folder:
        _redeem(Path(_folder) / point)


def _redeem(ticket: Path) -> None:
    try:
        number = _SIGNALS[ticket.read_text(encoding="utf-8").strip()]
        ticket.unlink()
    except (FileNotFoundError, KeyError):
        # None there, half written, or another process was faster.
        return
    log.warning("fault point %s: %s", ticket.name, number.name)
    os.kill(os.getpid(), number)
