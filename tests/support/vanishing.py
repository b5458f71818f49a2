"""Messages that vanish from the broker while their tasks are leased."""

from __future__ import annotations

import signal

import redis

from support.eventually import eventually
from support.stage import Stage
from support.system import TEXT
from support.tally import now_ms


def vanish(stage: Stage) -> tuple[int, list[str]]:
    """Publish to a worker that stands still, take the messages from the broker, let it go on.

    Return when that was, and the leased tasks whose messages are gone.
    """
    system = stage.system
    stage.dispatcher()
    worker = stage.worker()
    worker.send(signal.SIGSTOP)
    ids = stage.send(10)
    broker = system.settings.store_url.replace("db=0", "db=1")
    with redis.Redis.from_url(broker) as queues:
        # The first one waits in the worker's own socket.
        eventually(lambda: queues.llen(TEXT) > 0)
        gone = queues.lrange(TEXT, 0, -1)
        queues.delete(TEXT)
    vanished_ms = now_ms(system)
    worker.send(signal.SIGCONT)
    hit = [task_id for task_id in ids if any(task_id.encode() in message for message in gone)]
    assert len(hit) == len(gone), gone
    return vanished_ms, hit
