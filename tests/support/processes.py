"""Programs that tests start: each in a session of its own, stopped, and proven to be gone.

The rule: a program runs under the same watchdog as an embedded store, so that it ends with the
tests however those end; only what was started here is ended here, by its number.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

import psutil

from fairlane import watchdog
from support.eventually import eventually, eventually_passes

TESTS: Final = Path(__file__).parents[1]
#: The command line, as the installed program starts it.
COMMAND: Final = [sys.executable, "-m", "fairlane"]


class Program:
    """One running program and whatever it starts in its session."""

    def __init__(
        self, command: Sequence[str], log: Path, environ: Mapping[str, str], *, watched: bool = True
    ) -> None:
        self._log = log
        prefix = [sys.executable, "-I", "-S", watchdog.__file__] if watched else []
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [*prefix, *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=log.parent,
                env=environment(environ),
                start_new_session=True,
            )
        watcher = psutil.Process(self._process.pid)
        #: The program's own process.
        self.pid: Final[int] = eventually(watcher.children)[0].pid if watched else watcher.pid

    def output(self) -> str:
        """Return what the program has said so far."""
        return self._log.read_text()

    def is_alive(self) -> bool:
        """Whether the program has not ended."""
        return self._process.poll() is None

    def is_running(self) -> bool:
        """Whether the program has not ended yet."""
        return self._process.poll() is None

    def owns(self, pid: int) -> bool:
        """Whether a process is of this program's session: numbers are used again."""
        try:
            return os.getsid(pid) == self._process.pid
        except ProcessLookupError:
            return False

    def kill(self) -> None:
        """Kill the program itself (-9) and leave what it started alone."""
        os.kill(self.pid, signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the program itself."""
        os.kill(self.pid, number)

    def wait(self, timeout_s: float = 15.0) -> int:
        """Wait for the program's end and return its exit status."""
        return self._process.wait(timeout_s)

    def stop(self, timeout_s: float = 45.0) -> int:
        """Ask the program to end, then end what is left of its session; return its exit status.

        A child of billiard's pool waits up to 30 s for its last result to be read, and a worker
        that is told to end at that moment reads no more.
        """
        try:
            if self._process.poll() is None:
                self._process.terminate()
            return self.wait(timeout_s)
        finally:
            self.end()

    def end(self) -> None:
        """End the program's session without asking, and prove that all of it is gone."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        for pid in members(self._process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        eventually_passes(self._is_gone)

    def _is_gone(self) -> None:
        left = members(self._process.pid)
        assert not left, f"of session {self._process.pid} are left: {left}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return this environment without anybody's fairlane settings, and with what is given."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("FAIRLANE_")
    }
    # The tests' own modules, and whatever this run puts before what is installed.
    path = [str(TESTS), *filter(None, [inherited.get("PYTHONPATH")])]
    return {**inherited, "PYTHONPATH": os.pathsep.join(path), **more}


def members(session: int) -> list[int]:
    """Return the living processes of a session."""
    found = []
    for process in psutil.process_iter(["status"]):
        try:
            if os.getsid(process.pid) == session and process.info["status"] != "zombie":
                found.append(process.pid)
        except (ProcessLookupError, PermissionError):
            continue
    return found


def mentioning(text: str) -> dict[int, str]:
    """Return the living processes whose command or environment holds `text`."""
    found = {}
    for process in psutil.process_iter():
        try:
            told = [*process.cmdline(), *process.environ().values()]
        except psutil.Error:
            continue
        if any(text in word for word in told):
            found[process.pid] = " ".join(process.cmdline())
    return found
