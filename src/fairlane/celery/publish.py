"""Publishing leased tasks, all of a round in one batch.

The rule: a message is a hint, `(task_id, attempt)`, and its id is `task_id.attempt`, so that a
worker's running messages name the attempts whose leases it keeps. It is what `send_task` would
send; but `send_task` makes each message anew from all that Celery knows, and that costs ten times
what the message does.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Any, Final

from celery import Celery, signals
from kombu.exceptions import KombuError

from fairlane.celery.beat import execute_name
from fairlane.errors import StoreUnavailable
from fairlane.model import Leased
from fairlane.services.dispatcher import Publish
from fairlane.verbs.turns import MAX_WANT

#: AMQP's delivery mode of a message that outlives a restart of the broker: Celery's default.
_PERSISTENT: Final = 2


def publisher(app: Celery) -> Publish:
    """Return a function that publishes leased tasks to their types' queues.

    The function raises StoreUnavailable when the broker cannot take them; what was not published is
    leased again after its lease.
    """
    away = (KombuError, OSError, *app.connection_for_write().connection_errors)
    forms = {kind.name: _Form(app, kind.name, kind.queue)
             for kind in app.fairlane.client.settings.task_types}  # fmt: skip
    own = threading.local()

    def publish(tasks: Sequence[Leased]) -> None:
        line: _Line | None = getattr(own, "line", None)
        if line is None or line.pid != os.getpid():
            line = own.line = _Line(app, forms)
        try:
            line.send(tasks)
        except away as error:
            line.close()
            own.line = None
            raise StoreUnavailable(f"broker: {error}; is it running, and reachable?") from error

    return publish


def attempt_of(message_id: str) -> tuple[str, int] | None:
    """Return the (task_id, attempt) that a message's id names, or None for another task's."""
    task_id, _, attempt = message_id.rpartition(".")
    return (task_id, int(attempt)) if task_id and attempt.isascii() and attempt.isdigit() else None


class _Form:
    """The message of a task type, with blanks for the task and its attempt."""

    def __init__(self, app: Celery, task_type: str, queue: str) -> None:
        self.name = execute_name(task_type)
        self.queue = queue
        headers, _, body, _ = app.amqp.as_task_v2("", self.name, ignore_result=True)
        # What is not there is None to a worker, and every field is encoded here and decoded there.
        self._headers = {name: value for name, value in headers.items() if value not in (None, {})}
        self._tail = f", {json.dumps(body[1])}, {json.dumps(body[2])}]"

    def filled(self, task: Leased, channel: Any) -> Any:
        """Return a task's message, as a channel takes it."""
        message_id = f"{task.task_id}.{task.attempt}"
        headers = {
            **self._headers,
            "id": message_id,
            "root_id": message_id,
            "argsrepr": f"('{task.task_id}', {task.attempt})",
        }
        # A task id has no letter that JSON would escape.
        body = f'[["{task.task_id}", {task.attempt}]{self._tail}'.encode()
        properties = {"correlation_id": message_id, "reply_to": "", "delivery_mode": _PERSISTENT}
        return channel.prepare_message(body, 0, "application/json", "utf-8", headers, properties)


class _Line:
    """A thread's own connection to the broker, with a batch that serves for all rounds.

    A new batch makes a new driver's client, which costs more than the messages of a round. The
    batch is the channel's, not the producer's, which would work out anew for each message where it
    goes and how it is encoded.
    """

    def __init__(self, app: Celery, forms: dict[str, _Form]) -> None:
        self.pid = os.getpid()
        self._app = app
        self._forms = forms
        self._open = ExitStack()
        self._producer: Any = None
        self._sends_events = app.conf.task_send_sent_event
        self._batch: Any = None

    def send(self, tasks: Sequence[Leased]) -> None:
        """Publish tasks; they have gone out when this returns."""
        if self._producer is None:
            connection = self._open.enter_context(self._app.connection_for_write())
            # A producer would try for seconds; what is not published now has a lease to wait for.
            connection.connect()
            self._producer = self._open.enter_context(self._app.amqp.Producer(connection.channel()))
        if not self._producer.supports_batch_publish or self._is_watched():
            self._send_slowly(tasks)
            return
        channel = self._producer.channel
        if self._batch is None:
            for queue in {form.queue for form in self._forms.values()}:
                self._producer.maybe_declare(self._app.amqp.queues[queue])
            self._batch = channel.create_publish_batch(max_size=MAX_WANT)
            self._open.callback(self._batch.close)
        for task in tasks:
            form = self._forms[task.task_type]
            message = form.filled(task, channel)
            self._batch.publish(message, exchange="", routing_key=form.queue)
        self._batch.flush()

    def close(self) -> None:
        """Let go of the connection, however broken."""
        with suppress(Exception):
            self._open.close()

    def _is_watched(self) -> bool:
        """Whether somebody wants to see each message on its way, as tracing does."""
        watched = signals.before_task_publish.receivers or signals.after_task_publish.receivers
        return bool(watched or self._sends_events)

    def _send_slowly(self, tasks: Sequence[Leased]) -> None:
        with self._app.producer_or_acquire() as producer, producer.batch():
            for task in tasks:
                form = self._forms[task.task_type]
                self._app.send_task(
                    form.name,
                    args=(task.task_id, task.attempt),
                    task_id=f"{task.task_id}.{task.attempt}",
                    queue=form.queue,
                    producer=producer,
                    ignore_result=True,
                )
