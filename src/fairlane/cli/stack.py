"""The whole system as processes of this machine: store, workers, Beat, under one supervisor.

The rule: what dies is started again, with backoff, and said; what was started is gone when the
supervisor is, however it ends (each child has a watchdog that holds on to this process).
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import IO, Final, Self

from fairlane import handlers, watchdog
from fairlane.celery.beat import DISPATCH_QUEUE
from fairlane.cli.run import worker_arguments
from fairlane.client import Client
from fairlane.errors import StoreError, StoreUnavailable
from fairlane.model import Worker
from fairlane.settings import Settings, other_variables
from fairlane.tasktype import TaskType
from fairlane.verbs import InspectWorkers

_CELERY: Final = [sys.executable, "-m", "celery", "-A", "fairlane.celery"]
#: Celery warns of root in a dozen lines, once a worker; a container's only user is often root.
_QUIET: Final = {"PYTHONWARNINGS": "ignore:You're running the worker with superuser privileges"}
_BACKOFF_S: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
#: A child that lived this long has recovered: its next end is a first one again.
_STEADY_S: Final = 60.0
#: So many ends in a row are no accident.
_OFTEN: Final = 3
_STOP_S: Final = 15.0
#: What does not report itself as a worker.
_NO_WORKERS: Final = ("api", "beat")


@dataclass
class Child:
    """One supervised process."""

    name: str
    command: Sequence[str]
    #: What it inherits.
    descriptors: Sequence[int] = ()
    process: subprocess.Popen[bytes] | None = None
    ends: int = 0
    started_at: float = 0.0
    due_at: float = 0.0


class Stack:
    """Starts the store, a worker per lane, a dispatcher, Beat, HTTP; starts again what dies.

    A worker per lane keeps slow lanes out of the way of fast ones: a slot that serves both would be
    busy with the slow one's tasks most of the time. The lanes are those of the store; one with a
    type that has no handler here gets no worker, which would take messages from those that have.
    `lacking` holds these types, and `children` who is started, both from the entry on. `api` is a
    socket that listens, for HTTP.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        concurrency: int,
        say: Callable[[str], None],
        log_file: Path | None = None,
        log_level: str = "WARNING",
        api: socket.socket | None = None,
    ) -> None:
        self.client = Client(settings)
        self._say = say
        self._log_file = log_file
        self._stopping = threading.Event()
        # Children name the running store; one that named embedded:// might start a second owner.
        settings = replace(
            settings, store_url=self.client.store_url, broker_url=self.client.broker_url
        )
        # What this environment wants, not what the store has: a child that insisted on the store's
        # settings would stop at the next `fairlane migrate`.
        self._environ = {**other_variables(), **settings.environ(), **_QUIET}
        self._concurrency = concurrency
        self._log_level = log_level
        self._api = api
        self.lacking: Sequence[TaskType] = ()
        self.children: Sequence[Child] = ()
        self._served: Sequence[str] = ()
        self._revive_at = 0.0
        self._entered_at = time.monotonic()

    def _all(self, settings: Settings) -> list[Child]:
        """Return the children for the settings that were agreed with the store."""
        return [
            *self._service(),
            *(
                self._worker(f"worker-{lane}", queues_of(lane, settings), self._concurrency)
                for lane in self._served
            ),
            self._worker("dispatcher", DISPATCH_QUEUE, 1, pool="solo"),
            Child("beat", [*_CELERY, "beat", f"--loglevel={self._log_level}", "--pidfile="]),
        ]

    def _service(self) -> list[Child]:
        """Return the HTTP service, if there is a socket for it."""
        if self._api is None:
            return []
        fd = self._api.fileno()
        command = [sys.executable, "-m", "fairlane", "api", f"--fd={fd}"]
        return [Child("api", [*command, f"--loglevel={self._log_level}"], descriptors=(fd,))]

    def _worker(self, name: str, queues: str, concurrency: int, pool: str = "prefork") -> Child:
        arguments = worker_arguments(
            queues, concurrency=concurrency, name=name, pool=pool, log_level=self._log_level
        )
        return Child(name, _CELERY + arguments)

    def __enter__(self) -> Self:
        self._entered_at = time.monotonic()
        try:
            self.client.ping()
            agreed = self.client.settings
            self.lacking = [kind for kind in agreed.task_types if not handlers.serves(kind.name)]
            without = {kind.lane for kind in self.lacking}
            self._served = [lane for lane in agreed.lanes if lane not in without]
            self.children = self._all(agreed)
            for child in self.children:
                self._start(child)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def is_ready(self) -> bool:
        """Whether every lane that is served here has slots; the document's flow knows no slots.

        Not while the store is away.
        """
        with contextlib.suppress(StoreError):
            if self.client.settings.flow == "turns":
                workers = [child for child in self.children if child.name not in _NO_WORKERS]
                return len(self._reported()) >= len(workers)
            return not self.idle_lanes()
        return False

    def idle_lanes(self) -> list[str]:
        """Return the lanes that are to be served here, and in which no worker offers a slot."""
        offered = {lane for worker in self._reported() if worker.slots for lane in worker.lanes}
        return [name for name in self._served if name not in offered]

    def _reported(self) -> list[Worker]:
        """Return the workers that have reported since this began: a row outlives its worker."""
        since_ms = (time.monotonic() - self._entered_at) * 1000
        return [row for row in self.client.run(InspectWorkers()) if row.age_ms < since_ms]

    def watch(self) -> None:
        """Start again what has died and is due, the embedded store first; call it often."""
        now = time.monotonic()
        try:
            if not self._stopping.is_set() and now >= self._revive_at and self.client.revive():
                self._say("the store ended; it runs again, with its data")
                self._revive_at = 0.0
        except StoreUnavailable as error:
            self._revive_at = now + _BACKOFF_S[-2]
            self._say(f"{error}; trying again in {_BACKOFF_S[-2]:g} s")
        for child in self.children:
            if child.process is None:
                if now >= child.due_at:
                    self._start(child)
                continue
            status = child.process.poll()
            if status is None or self._stopping.is_set():
                continue
            child.ends = 1 if now - child.started_at > _STEADY_S else child.ends + 1
            wait_s = _BACKOFF_S[min(child.ends, len(_BACKOFF_S)) - 1]
            often = (
                f"; that was the {child.ends}. time in a row, so it will not mend by itself: read "
                "what it said above"
                if child.ends >= _OFTEN
                else ""
            )
            self._say(
                f"{child.name} ended {_how(status)}; starting it again in {wait_s:g} s{often}"
            )
            _end_group(child.process)
            child.process, child.due_at = None, now + wait_s

    def stop(self) -> None:
        """End the children, workers first and in peace, then the store."""
        self._stopping.set()
        running = [child.process for child in self.children if child.process is not None]
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        ends_at = time.monotonic() + _STOP_S
        for process in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, ends_at - time.monotonic()))
            _end_group(process)
            process.wait()
        self.client.close()

    def _start(self, child: Child) -> None:
        # Without a file: Celery's banners (standard output) are dropped, its log is talk.
        log: IO[bytes] | None = None if self._log_file is None else self._log_file.open("ab")
        # In a session of its own: Ctrl-C is for the supervisor, which then stops all in order.
        child.process = subprocess.Popen(
            [sys.executable, "-I", "-S", watchdog.__file__, *child.command],
            stdin=subprocess.PIPE,
            stdout=log or subprocess.DEVNULL,
            stderr=log,
            env=self._environ,
            pass_fds=child.descriptors,
            start_new_session=True,
        )
        child.started_at = time.monotonic()
        if log is not None:
            log.close()


def on_stop(handler: Callable[[int, FrameType | None], object]) -> None:
    """Let every way to be stopped take the same way out: Ctrl-C, a kill, a closed terminal.

    `nohup` still holds. A shell that starts a program in the background lets it ignore Ctrl-C; a
    `kill -INT` is meant for it all the same.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, handler)


def queues_of(lane: str, settings: Settings) -> str:
    """Return the queues of a lane's task types, as a worker's option takes them."""
    kinds = (kind for kind in settings.task_types if kind.lane == lane)
    return ",".join(dict.fromkeys(kind.queue for kind in kinds))


def _how(status: int) -> str:
    """Tell a program's end: a signal is a negative status, or that modulo 256 by its watchdog."""
    try:
        return f"by {signal.Signals(-status % 256).name}"
    except ValueError:
        return f"with status {status}"


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End whatever is left of a child's session: a killed worker leaves its pool behind."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
