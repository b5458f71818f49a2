"""Publishing leased tasks, all of a round in one batch.

The rule: a message is a hint, `(task_id, attempt)`, and its id is `task_id.attempt`, so that a
worker's running messages name the attempts whose leases it keeps. It is what `send_task` would
send; but `send_task` makes each message anew from all that Celery knows, and that costs ten times
what the message does.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import threading
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from types import SimpleNamespace
from typing import Any, Final

from celery import Celery, signals
from kombu.exceptions import KombuError

from fairlane.celery.beat import execute_name
from fairlane.client import Client
from fairlane.errors import (
    FairlaneError,
    InvalidTaskId,
    NotFound,
    StaleAttempt,
    StoreUnavailable,
    TaskEnded,
)
from fairlane.ids import checked_task_id
from fairlane.model import Leased
from fairlane.services.dispatcher import Publish
from fairlane.tasktype import TaskType
from fairlane.verbs import Defer

log = logging.getLogger("fairlane.publish")

#: AMQP's delivery mode of a message that outlives a restart of the broker: Celery's default.
_PERSISTENT: Final = 2


#: The task of a message that is only a form; its id and attempt are drawn, so that no name of a
#: queue or type has them in it.
_NOBODY: Final = Leased(
    f"nobody-{secrets.token_hex(8)}", 10**17 + secrets.randbelow(10**17), "", ""
)
#: LPUSH where the server's memory is full: a message is small, and what it starts makes room.
_PUSH: Final = "#!lua flags=allow-oom\nreturn redis.call('LPUSH', KEYS[1], unpack(ARGV))"


def publisher(app: Celery) -> Publish:
    """Return a function that publishes leased tasks to their types' queues.

    The function raises StoreUnavailable when the broker cannot take them; what was not published is
    leased again after its lease. A task whose type the settings no longer know waits with backoff.
    """
    broker = app.connection_for_write()
    away = (KombuError, OSError, *broker.connection_errors, *broker.channel_errors)
    forms = _Forms(app)
    own = threading.local()

    def publish(tasks: Sequence[Leased]) -> None:
        line: _Line | None = getattr(own, "line", None)
        if line is None or line.pid != os.getpid():
            line = own.line = _Line(app)
        # Not in the `try`: among what a broker's connection can raise is KeyError.
        known = forms.of({task.task_type for task in tasks})
        try:
            line.send([task for task in tasks if task.task_type in known], known)
        except away as error:
            line.close()
            own.line = None
            raise StoreUnavailable(f"broker: {error}; is it running, and reachable?") from error
        for task in tasks:
            if task.task_type not in known:
                _put_off(app.fairlane.client, task)

    return publish


def _is_full(error: BaseException) -> bool:
    """Whether it is the answer of a Redis whose memory is full, or comes of one."""
    cause: BaseException | None = error
    while cause is not None and type(cause).__name__ != "OutOfMemoryError":
        cause = cause.__cause__
    return cause is not None


def attempt_of(message_id: str) -> tuple[str, int] | None:
    """Return the (task_id, attempt) that a message's id names, or None for another task's."""
    task_id, _, attempt = message_id.rpartition(".")
    if not (attempt.isascii() and attempt.isdigit() and len(attempt) < 10):
        return None
    try:
        return checked_task_id(task_id), int(attempt)
    except InvalidTaskId:
        return None


def _put_off(client: Client, task: Leased) -> None:
    """Let a task whose type is gone wait with backoff; past `max_defers` it is a dead letter."""
    lacks = f"no task type {task.task_type} in the store's settings"
    log.error("task %s of %s is not published: %s; `fairlane migrate` with it brings it back",
              task.task_id, task.mac, lacks)  # fmt: skip
    try:
        # The task alone: its device has others, whose types are there.
        client.run(Defer(task.task_id, task.attempt, lacks, "task"))
    except (StaleAttempt, TaskEnded, NotFound) as refused:
        log.info("task %s is not deferred: %s", task.task_id, refused)


class _Forms:
    """The messages of the task types, each made when it is first asked for.

    Types come and change their queue while this runs, so a form belongs to all that its type says.
    """

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._made: dict[TaskType, _Form] = {}

    def of(self, names: Iterable[str]) -> Mapping[str, _Form]:
        """Return the forms of those types that the settings know, by the type's name."""
        settings = self._app.fairlane.client.settings
        kinds = filter(None, map(settings.task_type, names))
        return {kind.name: self._of(kind) for kind in kinds}

    def _of(self, kind: TaskType) -> _Form:
        form = self._made.get(kind)
        if form is None:
            form = self._made[kind] = _Form(self._app, kind.name, kind.queue)
        return form


class _Form:
    """The message of a task type, with blanks for the task and its attempt."""

    def __init__(self, app: Celery, task_type: str, queue: str) -> None:
        self.name = execute_name(task_type)
        self.queue = queue
        headers, _, body, _ = app.amqp.as_task_v2("", self.name, ignore_result=True)
        # What is not there is None to a worker, and every field is encoded here and decoded there.
        self._headers = {name: value for name, value in headers.items() if value not in (None, {})}
        self._tail = f", {json.dumps(body[1])}, {json.dumps(body[2])}]"
        self._entry: _Entry | None = None

    def body(self, task: Leased) -> bytes:
        """Return the body of a task's message."""
        # A task id has no letter that JSON would escape.
        return f'[["{task.task_id}", {task.attempt}]{self._tail}'.encode()

    def message(self, task: Leased, channel: Any) -> Any:
        """Return a task's message, as a channel takes it."""
        message_id = f"{task.task_id}.{task.attempt}"
        headers = {
            **self._headers,
            "id": message_id,
            "root_id": message_id,
            "argsrepr": f"('{task.task_id}', {task.attempt})",
        }
        properties = {"correlation_id": message_id, "reply_to": "", "delivery_mode": _PERSISTENT}
        return channel.prepare_message(
            self.body(task), 0, "application/json", "utf-8", headers, properties
        )

    def entry(self, channel: Any) -> _Entry:
        """Return what a Redis channel puts into the queue's list for such a message."""
        if self._entry is None:
            self._entry = _Entry(self, channel)
        return self._entry


class _Entry:
    """What a Redis broker's list holds for a message, with blanks for the task and its attempt.

    kombu writes one for a task that is none, so the form is kombu's own; writing each anew is what
    costs most of a publishing.
    """

    def __init__(self, form: _Form, channel: Any) -> None:
        self._form = form
        pushed: list[tuple[str, tuple[str, str]]] = []
        message = form.message(_NOBODY, channel)
        told = SimpleNamespace(add=lambda command, *args: pushed.append((command, args)))
        channel.basic_publish(message, exchange="", routing_key=form.queue, _publish_batch=told)
        ((command, (self.key, text)),) = pushed
        if command != "lpush":
            raise FairlaneError(f"kombu publishes by {command}; this release is not known here")
        blanks = {
            message["body"]: "{body}",
            message["properties"]["delivery_tag"]: "{tag}",
            f"{_NOBODY.task_id}.{_NOBODY.attempt}": "{id}.{attempt}",
            _NOBODY.task_id: "{id}",
            str(_NOBODY.attempt): "{attempt}",
        }
        text = text.replace("{", "{{").replace("}", "}}")
        for blank, name in blanks.items():
            text = text.replace(blank, name)
        self._fill: Final = text.format

    def of(self, task: Leased) -> str:
        """Return the entry of a task."""
        return self._fill(
            body=b64encode(self._form.body(task)).decode(),
            tag=os.urandom(16).hex(),
            id=task.task_id,
            attempt=task.attempt,
        )


class _Line:
    """A thread's own connection to the broker, with a driver's client that serves for all rounds.

    A new client costs more than the messages of a round, and so does a pipeline.
    """

    def __init__(self, app: Celery) -> None:
        self.pid = os.getpid()
        self._app = app
        self._open = ExitStack()
        self._producer: Any = None
        self._sends_events = app.conf.task_send_sent_event
        self._client: Any = None
        self._prefix = ""
        self._declared: set[str] = set()

    def send(self, tasks: Sequence[Leased], forms: Mapping[str, _Form]) -> None:
        """Publish tasks, each by its type's form; they have gone out when this returns."""
        if self._producer is None:
            connection = self._open.enter_context(self._app.connection_for_write())
            # A producer would try for seconds; what is not published now has a lease to wait for.
            connection.connect()
            self._producer = self._open.enter_context(self._app.amqp.Producer(connection.channel()))
        if not self._producer.supports_batch_publish or self._is_watched():
            self._send_slowly(tasks, forms)
            return
        channel = self._producer.channel
        if self._client is None:
            self._client = self._open.enter_context(channel.conn_or_acquire())
            self._prefix = channel.global_keyprefix
        entries: dict[str, list[str]] = {}
        for task in tasks:
            entry = forms[task.task_type].entry(channel)
            entries.setdefault(entry.key, []).append(entry.of(task))
        try:
            for queue in {form.queue for form in forms.values()} - self._declared:
                self._producer.maybe_declare(self._app.amqp.queues[queue])
                self._declared.add(queue)
            self._push(entries)
        except Exception as error:
            if not _is_full(error):
                raise
            self._push_into_full(entries)

    def _push(self, entries: Mapping[str, Sequence[str]]) -> None:
        for key, texts in entries.items():
            self._client.lpush(key, *texts)

    def _push_into_full(self, entries: Mapping[str, Sequence[str]]) -> None:
        """Publish to a Redis at its memory limit, which accepts no more and has to drain.

        What was sent before it said so may go twice, and runs once.
        """
        for key, texts in entries.items():
            # kombu's client puts its prefix before the keys of the commands that it knows itself.
            self._client.eval(_PUSH, 1, f"{self._prefix}{key}", *texts)

    def close(self) -> None:
        """Let go of the connection, however broken."""
        with suppress(Exception):
            self._open.close()

    def _is_watched(self) -> bool:
        """Whether somebody wants to see each message on its way, as tracing does."""
        watched = signals.before_task_publish.receivers or signals.after_task_publish.receivers
        return bool(watched or self._sends_events)

    def _send_slowly(self, tasks: Sequence[Leased], forms: Mapping[str, _Form]) -> None:
        with self._app.producer_or_acquire() as producer, producer.batch():
            for task in tasks:
                form = forms[task.task_type]
                self._app.send_task(
                    form.name,
                    args=(task.task_id, task.attempt),
                    task_id=f"{task.task_id}.{task.attempt}",
                    queue=form.queue,
                    producer=producer,
                    ignore_result=True,
                )
