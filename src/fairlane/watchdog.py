"""Run a server for as long as the process that started this program lives.

The rule: standard input is the owner's hold. It carries nothing; when it closes, by intent or
because the owner died (kill -9 included), the server is told to stop, and killed if it does not.
The program runs by its path, outside the package and without site-packages: it imports the
standard library only, so that it costs next to nothing and cannot fail with what it watches over.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Final

GRACE_S: Final = 20.0

_PR_SET_PDEATHSIG: Final = 1


def watch(command: list[str]) -> int:
    """Run the command until it ends or the hold is let go; return its exit status."""
    # Descriptors that were passed to this program go on to the server: one carries the lock which
    # says that a server of the folder lives, and it must live exactly as long as the server.
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        close_fds=False,
        # To run code in the child is safe here: this program has no threads yet.
        preexec_fn=_end_with_the_watchdog if sys.platform == "linux" else None,
    )
    signal.signal(signal.SIGTERM, lambda *_: server.terminate())
    threading.Thread(target=_stop_when_let_go, args=(server,), daemon=True).start()
    return server.wait()


def _end_with_the_watchdog() -> None:
    # `pkill -9 python` takes the owner and the watchdog at one stroke; Linux can cover that too.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _stop_when_let_go(server: subprocess.Popen[bytes]) -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    server.terminate()
    time.sleep(GRACE_S)
    server.kill()


if __name__ == "__main__":
    sys.exit(watch(sys.argv[1:]))
