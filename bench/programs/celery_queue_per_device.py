"""Celery with a queue for each device, which kombu serves in turns."""

from __future__ import annotations

from collections.abc import Sequence

from kombu import Exchange, Queue

import marks
from celery_queue import app, arguments, note

NAMES = [f"d{device}" for device in range(marks.job().devices)]
app.conf.update(
    task_queues=[Queue(name, Exchange(name), routing_key=name) for name in NAMES],
    # Of the four lists that kombu has for each queue, only one is used.
    broker_transport_options={
        **app.conf.broker_transport_options,
        "priority_steps": [0],
        "queue_order_strategy": "round_robin",
    },
)


def work() -> None:
    """Run the worker."""
    app.worker_main(arguments(",".join(NAMES), marks.job().slots))


def send_many(tasks: Sequence[marks.Task]) -> None:
    """Publish in one batch."""
    with app.producer_or_acquire() as producer, producer.batch():
        for task in tasks:
            note.apply_async(task, queue=f"d{task[0]}", producer=producer)


def send(task: marks.Task) -> None:
    """Publish one task."""
    note.apply_async(task, queue=f"d{task[0]}")


if __name__ == "__main__":
    marks.main(work, send_many, send)
