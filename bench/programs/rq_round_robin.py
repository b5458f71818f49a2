"""RQ with a queue for each device, served round robin; a worker without forks, which is faster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import redis
from rq import Queue, SimpleWorker

import marks

connection = redis.Redis.from_url(marks.job().url)
queues = {
    device: Queue(f"d{device}", connection=connection) for device in range(marks.job().devices)
}


def work() -> None:
    """Run one worker, which is one slot."""
    worker = SimpleWorker(list(queues.values()), connection=connection)
    marks.ready()
    worker.work(dequeue_strategy="round_robin", logging_level="WARNING")


def send_many(tasks: Sequence[marks.Task]) -> None:
    """Enqueue in a pipeline, device by device."""
    by_device = defaultdict(list)
    for task in tasks:
        by_device[task[0]].append(Queue.prepare_data("marks.run", task, result_ttl=0))
    with connection.pipeline() as pipeline:
        for device, jobs in by_device.items():
            queues[device].enqueue_many(jobs, pipeline=pipeline)
        pipeline.execute()


def send(task: marks.Task) -> None:
    """Enqueue one task."""
    queues[task[0]].enqueue("marks.run", *task, result_ttl=0)


if __name__ == "__main__":
    marks.main(work, send_many, send)
