"""Host clocks that are wrong, for the programs that a test starts.

The rule: the wall clock is moved under the whole interpreter (time-machine patches what `time` and
`datetime` call), so Celery and the drivers see it too; the monotonic clock goes on, as on a real
host whose wall clock is wrong.
"""

from __future__ import annotations

import datetime
import os
from typing import Final

import time_machine

#: How many seconds the clock of a program is ahead; behind, if negative.
VARIABLE: Final = "TEST_CLOCK_AHEAD_S"


def skew() -> None:
    """Move the wall clock of this process and of what it forks, if the environment says so."""
    ahead_s = int(os.environ.get(VARIABLE, "0"))
    if ahead_s:
        real = datetime.datetime.now(datetime.UTC)
        time_machine.travel(real + datetime.timedelta(seconds=ahead_s), tick=True).start()
