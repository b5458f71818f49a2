"""Tickets for the fault points of the programs that a test starts.

The rule: one ticket is one fault. Only the programs of a system are armed, never the tests' own
process, which shares its settings with them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fairlane.faults import POINTS
from support.eventually import eventually
from support.system import System


class Tickets:
    """The folder of a system's tickets; programs started from now on look for them there."""

    def __init__(self, system: System) -> None:
        self._folder: Final[Path] = system.folder / "tickets"
        self._folder.mkdir(exist_ok=True)
        system.environ["FAIRLANE_FAULT_TICKETS"] = str(self._folder)

    def issue(self, point: str, deed: str = "kill") -> None:
        """Let the next process that passes the point be killed, or frozen by `freeze`."""
        assert point in POINTS, point
        written = self._folder / f".{point}"
        written.write_text(deed)
        # Nobody may read half of it.
        written.rename(self._folder / point)

    def is_open(self, point: str) -> bool:
        """Whether nobody has passed the point yet."""
        return (self._folder / point).exists()

    def redeemed(self, point: str, timeout_s: float = 20.0) -> None:
        """Wait until a process has passed the point."""
        eventually(lambda: not self.is_open(point), timeout_s, 0.005)
