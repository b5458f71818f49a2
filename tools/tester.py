"""Run tests over and over, each time in a fork of this process, which has imported everything.

    PYTHONPATH=COPY/src python tools/tester.py SECONDS

The rule: a line of standard input is the arguments of pytest, as JSON; the answer is one line, the
exit code and pytest's output. What a fork imports of fairlane is what stands on the disk then: this
process has read no file of Lua.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from typing import Final

import hypothesis.stateful
import pytest
import redis

import fairlane.client
from fairlane.scripts import read

#: Imported for the forks.
IMPORTED: Final = (hypothesis.stateful, redis, fairlane.client)


def main(longest_s: float) -> None:
    """Answer each line, until there are no more."""
    for line in sys.stdin:
        assert read.cache_info().currsize == 0, "this process knows some Lua already"
        with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
            pid = os.fork()
            if pid == 0:
                os.setpgid(0, 0)
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
                code = int(pytest.main(json.loads(line)))
                sys.stdout.flush()
                os._exit(code)
            code = _ended(pid, longest_s)
            output.seek(0)
            sys.stdout.write(json.dumps([code, output.read()]) + "\n")
            sys.stdout.flush()


def _ended(pid: int, longest_s: float) -> int | None:
    """Return the exit code of a fork; None when it was ended for taking too long."""
    until = time.monotonic() + longest_s
    while time.monotonic() < until:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


if __name__ == "__main__":
    main(float(sys.argv[1]))
