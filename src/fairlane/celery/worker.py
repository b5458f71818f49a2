"""What a Celery worker's main process does beside running tasks.

The rule: the worker reports from its first to its last moment. When it is told to stop it offers
nothing at once and gives up its lead, but keeps the leases of what still runs until the last task
has ended. Its children end with it, also when it is killed.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
import threading
import warnings
from functools import partial
from typing import Any, Final

from celery import bootsteps, signals
from celery.exceptions import CPendingDeprecationWarning
from celery.worker import state

from fairlane.celery.announce import started
from fairlane.celery.beat import DISPATCH_QUEUE
from fairlane.celery.publish import attempt_of, publisher
from fairlane.celery.recorder import Recorder, records
from fairlane.errors import ConfigMismatch, StoreError
from fairlane.ids import new_worker_id
from fairlane.services.dispatcher import Dispatcher, LedDispatcher
from fairlane.services.janitor import Janitor
from fairlane.services.reporter import Reporter
from fairlane.services.service import Service, run_forever

log = logging.getLogger("fairlane.worker")

_PR_SET_PDEATHSIG: Final = 1
#: The pool that can end a process that is over its hard limit, and does so.
_ENDS_PROCESSES: Final = "celery.concurrency.prefork"


class WorkerStep(bootsteps.StartStopStep):  # type: ignore[misc]
    """Registers the worker and reports it; beside the dispatch queue, also dispatches."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, worker: Any, **options: Any) -> None:
        super().__init__(worker, **options)
        # What runs goes on while the broker is away: that is set, and need not be asked each time.
        warnings.filterwarnings("ignore", "\nIn Celery 5.1", CPendingDeprecationWarning)
        # Before the pool forks, so that its children know whose they are.
        worker.app.fairlane.worker_id = new_worker_id()
        self._stopped = threading.Event()
        self._leads_no_more = threading.Event()
        self._threads: list[threading.Thread] = []
        self._reporter: Reporter | None = None
        self._dispatcher: LedDispatcher | None = None
        self._dispatching: threading.Thread | None = None
        self._announcer = started(worker.app, "worker", worker.app.fairlane.worker_id)

        signals.worker_process_init.connect(partial(_end_with, os.getpid()), weak=False)

    def start(self, worker: Any) -> None:
        """Report, and go on reporting."""
        fairlane = worker.app.fairlane
        queues = list(worker.app.amqp.queues.consume_from)
        pool = worker.pool_cls.__module__
        if pool != _ENDS_PROCESSES and set(queues) - {DISPATCH_QUEUE}:
            log.warning(
                "the pool (%s) has no hard time limit: a handler that hangs keeps its slot till it "
                "ends; with --pool=prefork its process is ended",
                pool,
            )
        self._reporter = Reporter(
            fairlane.client,
            fairlane.worker_id,
            queues=queues,
            # Solo runs one at a time, whatever its option says.
            slots=worker.pool.num_processes,
            active=active_attempts,
            name=worker.hostname.partition("@")[0],
        )
        self._reporter.step()
        self._run(self._reporter, self._stopped)
        self._run(self._announcer, self._stopped)
        if DISPATCH_QUEUE in queues and fairlane.client.settings.flow == "claim":
            self._dispatcher = LedDispatcher(
                fairlane.client,
                Dispatcher(fairlane.client, publisher(worker.app), fairlane.worker_id),
                Janitor(fairlane.client),
                fairlane.worker_id,
            )
            self._dispatching = self._run(self._dispatcher, self._leads_no_more)
            if records(worker.app):
                recorder = Recorder(worker.app, partial(getattr, self._dispatcher, "leads"))
                self._run(recorder, self._leads_no_more)
        # `stop` of this step comes before the pool's last task ends, this signal after it.
        signals.worker_shutdown.connect(self._leave, weak=False)

    def stop(self, worker: Any) -> None:
        """Offer nothing and lead no more; what runs may end in peace."""
        if self._reporter is not None:
            _quietly(self._reporter.drain)
        self._hand_over()

    def terminate(self, worker: Any) -> None:
        """Leave at once: the worker is told to."""
        self._leave()

    def _run(self, service: Service, stopped: threading.Event) -> threading.Thread:
        name = f"fairlane-{type(service).__name__.lower()}"
        thread = threading.Thread(
            target=run_forever, args=(service, stopped), name=name, daemon=True
        )
        thread.start()
        self._threads.append(thread)
        return thread

    def _leave(self, **_: Any) -> None:
        if self._stopped.is_set():
            return
        self._stopped.set()
        self._hand_over()
        for thread in self._threads:
            thread.join(timeout=5.0)
        for service in (self._reporter, self._announcer):
            if service is not None:
                _quietly(service.leave)

    def _hand_over(self) -> None:
        """Let another dispatcher lead; its own thread ends after the round that it is in."""
        if self._dispatcher is None or self._leads_no_more.is_set():
            return
        self._leads_no_more.set()
        if self._dispatching is not None:
            self._dispatching.join(timeout=5.0)
        _quietly(self._dispatcher.leave)


def active_attempts() -> list[tuple[str, int]]:
    """Return the attempts that this worker's pool runs now."""
    for _ in range(10):
        try:
            requests = [request.id for request in state.active_requests]
        except RuntimeError:
            # The main thread added one while this one looked.
            continue
        return [found for found in map(attempt_of, requests) if found is not None]
    return []


def _end_with(main: int, **_: Any) -> None:
    """End this child when the worker's main process is gone, however that came.

    A child that is left alone would wait for a message for ever, or run on while its task is given
    to another worker. Linux can do this; elsewhere a supervisor ends the worker's process group.
    """
    # Solo says of the main process itself that it begins.
    if sys.platform == "linux" and os.getpid() != main:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != main:
            # It was gone before this could be asked for.
            os.kill(os.getpid(), signal.SIGKILL)


def _quietly(action: Any) -> None:
    try:
        action()
    except (StoreError, ConfigMismatch) as error:
        log.warning("worker: %s; its row ends by itself", error)
