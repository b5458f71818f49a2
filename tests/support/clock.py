"""How long a system stood still: from a fault to the first task that was done after it.

The rule: what counts is told by the event stream of the store, and a system under a fault that
gives no answer is asked again.
"""

from __future__ import annotations

import time

from fairlane.errors import StoreError
from support.system import System
from support.tally import now_ms


class Clock:
    """Runs from where it is made, which is when the fault happens or ends."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._began_s = time.monotonic()
        self._after_ms = now_ms(system)

    def skip(self) -> None:
        """Let only what is done from now on count; the time goes on."""
        self._after_ms = now_ms(self._system)

    def until_done(self, timeout_s: float = 90.0) -> float:
        """Wait for a task that was done since; return the seconds that it took."""
        self._system.explained(self._is_done, timeout_s)
        return round(time.monotonic() - self._began_s, 1)

    def _is_done(self) -> bool:
        try:
            events = self._system.client.events(f"{self._after_ms}", limit=20_000)
        except StoreError as error:
            raise AssertionError(f"{error.code}: {error}") from error
        return any(event.event == "done" for event in events)


def has_lived(system: System) -> None:
    """Prove that no program of a system has ended."""
    ended = [program.output()[-3000:] for program in system.programs if not program.is_alive()]
    assert not ended, "\n".join(ended)
