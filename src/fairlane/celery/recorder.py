"""What fairlane itself ends has a result in the application's result backend, too.

The rule: a task that Celery ended has its result by then, and it stays; the others (cancelled,
expired, given up) get theirs here, once, from the process that leads. The record in the store is
the truth: what was redriven since is left alone, and what was looked at twice is written once.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable
from typing import Any, Final

from celery import Celery, states
from celery.app.task import Context
from celery.backends.base import BaseKeyValueStoreBackend, DisabledBackend
from celery.exceptions import TaskRevokedError
from kombu.exceptions import KombuError
from kombu.serialization import loads, prepare_accept_content

from fairlane.errors import StoreError, TaskNotFound
from fairlane.model import Event, TaskRecord, TaskState
from fairlane.verbs import ReadRevocations

log = logging.getLogger("fairlane.recorder")

_EVENTS: Final = 1_000
#: More than this in one go is left to the next step, so that a step ends.
_MAX_ROUNDS: Final = 20
#: What ended within this before somebody began to lead is looked at again.
_LOOK_BACK_MS: Final = 3_600_000
#: Of one event, when the backend is there.
_MOST_TRIES: Final = 5
#: A task that is none, by whose result a backend is tried.
_NOBODY: Final = "fairlane.recorder"
_REVOKED: Final = (TaskState.CANCELLED, TaskState.EXPIRED)
_ENDS: Final = frozenset({*_REVOKED, TaskState.DEAD, TaskState.FAILED})


class TaskDead(Exception):
    """A task was given up by fairlane: its cause, and the end of its last error."""


class Recorder:
    """Writes the results of what fairlane ended, while its process leads."""

    every_s = 1.0

    def __init__(self, app: Celery, leads: Callable[[], bool]) -> None:
        self._app = app
        self._leads = leads
        self._position = ""
        self._tries = 0

    def step(self) -> None:
        """Look at what has happened since the last step. Raises StoreError."""
        if not self._leads():
            # The one that leads has seen what this one would.
            self._position = ""
            return
        client = self._app.fairlane.client
        if not self._position:
            self._position = str(max(1, client.run(ReadRevocations()).now_ms - _LOOK_BACK_MS))
        for _ in range(_MAX_ROUNDS):
            events = client.events(self._position, limit=_EVENTS)
            for event in events:
                if event.event in _ENDS and not self._is_recorded(event):
                    return
                self._position = event.event_id
            if len(events) < _EVENTS:
                return

    def _is_recorded(self, event: Event) -> bool:
        """Record the ends that an event tells; False to try again with the next step.

        A result backend that is away is waited for; what it cannot take is given up after a while.
        """
        try:
            self._record(event)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - a backend, or what hangs on a task, raises anything
            self._tries += 1
            if self._tries == 1:
                log.warning("no result of %s yet: %r; trying again", event.tasks, error)
            if self._tries < _MOST_TRIES or self._is_away():
                return False
            log.error("no result of %s: %r", event.tasks, error)
        self._tries = 0
        return True

    def _is_away(self) -> bool:
        """Whether the backend takes no result at all: it is down, full, or a replica."""
        backend = self._app.backend
        try:
            backend.get_state(_NOBODY)
            if isinstance(backend, BaseKeyValueStoreBackend):
                backend.store_result(_NOBODY, None, states.SUCCESS)
                backend.forget(_NOBODY)
        except Exception:  # noqa: BLE001 - each backend has errors of its own
            return True
        return False

    def _record(self, event: Event) -> None:
        for task_id in event.tasks:
            try:
                record = self._app.fairlane.client.task(task_id)
            except TaskNotFound:
                continue
            if record.state == event.event:
                self._write(record)

    def _write(self, record: TaskRecord) -> None:
        try:
            request = request_of(self._app, record)
        except (KeyError, TypeError, ValueError, KombuError) as error:
            log.warning("task %s is none of Celery's: %r", record.task_id, error)
            return
        # A retry of Celery's has an id of its own in the store, which begins with its task's.
        if not f"{record.task_id}:".startswith(f"{request.id}:"):
            log.warning("task %s names the result of another one", record.task_id)
            return
        backend = self._app.backend
        if backend.get_state(request.id) in states.READY_STATES:
            return
        is_revoked = record.state in _REVOKED
        cause = " ".join(filter(None, (record.cause, record.error.strip().rpartition("\n")[2])))
        backend.mark_as_failure(
            request.id,
            TaskRevokedError(str(record.state)) if is_revoked else TaskDead(cause),
            traceback=None if is_revoked else record.error,
            request=request,
            store_result=not request.ignore_result,
            # As for what Celery revokes. What follows it in a chain never runs, either way.
            call_errbacks=not is_revoked,
            state=states.REVOKED if is_revoked else states.FAILURE,
        )
        log.info("the result of %s says that it is %s", request.id, record.state)


def records(app: Celery) -> bool:
    """Whether an application is one whose results are to be written."""
    return bool(getattr(app.fairlane, "is_citizen", False)) and not isinstance(
        app.backend, DisabledBackend
    )


def request_of(app: Celery, record: TaskRecord) -> Context:
    """Return the Celery request that a record carries.

    Raises KeyError, TypeError, ValueError or KombuError when it carries none.
    """
    data: dict[str, Any] = json.loads(record.payload)
    body = base64.b64decode(data["body"]) if data["is_base64"] else data["body"]
    accepted = prepare_accept_content(app.conf.accept_content)
    arguments, named, follows = loads(
        body, data["content_type"], data["content_encoding"], accept=accepted
    )
    return Context(
        {
            **data["headers"],
            **follows,
            "args": arguments,
            "kwargs": named,
            "headers": {"device": record.mac},
            "delivery_info": {"exchange": "", "routing_key": "", "redelivered": False},
            "reply_to": data["reply_to"],
            "correlation_id": data["headers"]["id"],
        }
    )
