"""fairlane on Celery, with the worker options of the plain one; settings come from outside."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache

from celery import signals

import marks
from celery_queue import arguments
from fairlane import Client, Receipt, Settings, Task, handler
from fairlane.celery import make_app

_KNOWN = 1 << 32


@handler("text")
def note(task: Task) -> None:
    """Be a task."""
    marks.run(task.data["device"], task.data["submitted"], task.data["run_ms"])


@cache
def client() -> Client:
    """Return this process's client."""
    return Client(Settings.from_env())


def work() -> None:
    """Run the worker."""
    signals.worker_ready.connect(lambda **_: marks.ready(), weak=False)
    make_app().worker_main(arguments("sensitive.text", marks.job().slots))


def send_many(tasks: Sequence[marks.Task]) -> None:
    """Enqueue in one call."""
    verdicts = client().enqueue_many([(mac(task[0]), "text", data(task)) for task in tasks])
    # A refusal is an answer, not an error, and here it would be a task that never runs.
    assert all(isinstance(verdict, Receipt) for verdict in verdicts), verdicts[-1]


def send(task: marks.Task) -> None:
    """Enqueue one task."""
    client().enqueue(mac(task[0]), "text", data(task))


def make_known() -> None:
    """Let the store know many devices: each has a task in a lane that nobody serves."""
    devices = int(sys.argv[3])
    for first in range(0, devices, marks.CHUNK):
        numbers = range(first, min(devices, first + marks.CHUNK))
        client().enqueue_many([(mac(_KNOWN + number), "ocr", {}) for number in numbers])


def data(task: marks.Task) -> dict[str, float]:
    """Return a task's data."""
    return dict(zip(("device", "submitted", "run_ms"), task, strict=True))


def mac(number: int) -> str:
    """Return the address of a device."""
    return ":".join(f"{part:02x}" for part in (2, *number.to_bytes(5)))


if __name__ == "__main__":
    marks.main(work, send_many, send, make_known=make_known)
