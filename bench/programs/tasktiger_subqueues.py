"""TaskTiger with a subqueue for each device, run without forks, which is faster."""

from __future__ import annotations

from collections.abc import Sequence

import redis
import structlog
from tasktiger import TaskTiger
from tasktiger.executor import SyncExecutor

import marks

# Two lines a task would be what is measured.
structlog.configure(
    processors=[structlog.stdlib.filter_by_level, structlog.processors.JSONRenderer()],
    wrapper_class=structlog.stdlib.BoundLogger,
    logger_factory=structlog.stdlib.LoggerFactory(),
)
tiger = TaskTiger(redis.Redis.from_url(marks.job().url, decode_responses=True))


def work() -> None:
    """Run one worker, which is one slot."""
    marks.ready()
    tiger.run_worker(queues="device", executor_class=SyncExecutor)


def send_many(tasks: Sequence[marks.Task]) -> None:
    """Queue one after the other: there is no call for many."""
    for task in tasks:
        send(task)


def send(task: marks.Task) -> None:
    """Queue one task."""
    tiger.delay(marks.run, args=task, queue=f"device.{task[0]}")


if __name__ == "__main__":
    marks.main(work, send_many, send)
