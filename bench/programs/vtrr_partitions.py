"""vtrr-queue with a partition for each device, on Celery with the options of the plain one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import redis
from vtrr_queue import VTRRQueue

import marks
from celery_queue import app, arguments

vtrr = VTRRQueue(
    redis_client=redis.Redis.from_url(marks.job().url, db=3),
    celery_app=app,
    name="bench",
    max_concurrency=marks.job().slots,
)


@vtrr.task
def partitioned(_self: Any, device: int, submitted: float, run_ms: float) -> None:
    """Be a task."""
    marks.run(device, submitted, run_ms)


def work() -> None:
    """Run the worker."""
    app.worker_main(arguments("vtrr_queue", marks.job().slots))


def send_many(tasks: Sequence[marks.Task]) -> None:
    """Queue device by device."""
    by_device = defaultdict(list)
    for task in tasks:
        by_device[task[0]].append({"args": list(task)})
    for device, items in by_device.items():
        partitioned.queue(f"d{device}", items)


def send(task: marks.Task) -> None:
    """Queue one task."""
    partitioned.queue(f"d{task[0]}", [{"args": list(task)}])


if __name__ == "__main__":
    marks.main(work, send_many, send)
