"""Plain Celery with one queue for all devices: what a project has before it has fairlane."""

from __future__ import annotations

from collections.abc import Sequence

from celery import Celery, signals

import marks

#: Also those of fairlane's own workers, so that the two differ in nothing else.
OPTIONS = {
    "accept_content": ["json"],
    "task_serializer": "json",
    "result_serializer": "json",
    "task_ignore_result": True,
    "task_acks_late": True,
    "worker_prefetch_multiplier": 1,
    "broker_connection_retry_on_startup": True,
    "broker_transport_options": {"socket_timeout": 5.0, "socket_connect_timeout": 5.0},
}

app = Celery("bench", broker=marks.job().url)
app.conf.update(OPTIONS)
signals.worker_ready.connect(lambda **_: marks.ready(), weak=False)


@app.task(name="note")
def note(device: int, submitted: float, run_ms: float) -> None:
    """Be a task."""
    marks.run(device, submitted, run_ms)


def arguments(queues: str, slots: int) -> list[str]:
    """Return the arguments of a worker; fairlane starts its own with the same."""
    return [
        "worker", f"--queues={queues}", f"--concurrency={slots}", "--pool=prefork",
        "--loglevel=WARNING", "--without-gossip", "--without-mingle",
    ]  # fmt: skip


def work() -> None:
    """Run the worker."""
    app.worker_main(arguments("celery", marks.job().slots))


def send_many(tasks: Sequence[marks.Task]) -> None:
    """Publish in one batch."""
    with app.producer_or_acquire() as producer, producer.batch():
        for task in tasks:
            note.apply_async(task, producer=producer)


def send(task: marks.Task) -> None:
    """Publish one task."""
    note.apply_async(task)


if __name__ == "__main__":
    marks.main(work, send_many, send)
