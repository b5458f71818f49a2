"""Publishing leased tasks, all of a round in one batch.

The rule: a message is a hint, `(task_id, attempt)`, and its id is `task_id.attempt`, so that a
worker's running messages name the attempts whose leases it keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from celery import Celery
from kombu.exceptions import KombuError

from fairlane.celery.beat import execute_name
from fairlane.errors import StoreUnavailable
from fairlane.model import Leased
from fairlane.services.dispatcher import Publish


def publisher(app: Celery) -> Publish:
    """Return a function that publishes leased tasks to their types' queues.

    The function raises StoreUnavailable when the broker cannot take them; what was not published is
    leased again after its lease.
    """
    away = (KombuError, OSError, *app.connection_for_write().connection_errors)
    queues = {kind.name: kind.queue for kind in app.fairlane.client.settings.task_types}

    def send(task: Leased, producer: Any) -> None:
        app.send_task(
            execute_name(task.task_type),
            args=(task.task_id, task.attempt),
            task_id=f"{task.task_id}.{task.attempt}",
            queue=queues[task.task_type],
            producer=producer,
            ignore_result=True,
        )

    def publish(tasks: Sequence[Leased]) -> None:
        try:
            with app.producer_or_acquire() as producer, producer.batch():
                for task in tasks:
                    send(task, producer)
        except away as error:
            raise StoreUnavailable(f"broker: {error}; is it running, and reachable?") from error

    return publish


def attempt_of(message_id: str) -> tuple[str, int] | None:
    """Return the (task_id, attempt) that a message's id names, or None for another task's."""
    task_id, _, attempt = message_id.rpartition(".")
    return (task_id, int(attempt)) if task_id and attempt.isascii() and attempt.isdigit() else None
