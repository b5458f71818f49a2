"""The application of the tests' workers: a handler that does what its task's data tells it to.

The rule: a handler that has to wait waits for something that the test does (a file appears), never
for a time, so a test decides what happens first.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from celery.exceptions import SoftTimeLimitExceeded

from fairlane import Defer, Fail, handler
from fairlane.celery import make_app
from fairlane.model import Task
from support.eventually import eventually
from support.poison import poison

_LONGEST_S: Final = 60.0


def echo(task: Task) -> Mapping[str, Any]:
    """Answer what was sent."""
    return {"attempt": task.attempt, "echo": dict(task.data)}


def note(task: Task) -> None:
    """Append the attempt to the file `notes`: an effect that shows how often it happened."""
    with Path(task.data["notes"]).open("a") as notes:
        notes.write(f"{task.task_id}.{task.attempt}\n")


def wait(task: Task) -> None:
    """Note the attempt, and wait until the file `gate` is there."""
    note(task)
    eventually(Path(task.data["gate"]).exists, _LONGEST_S)


def linger(task: Task) -> None:
    """Note the attempt, and take `seconds`."""
    note(task)
    time.sleep(task.data["seconds"])


def boom(task: Task) -> None:
    """Raise what nobody expects."""
    raise ValueError(f"boom at attempt {task.attempt}")


def fail(task: Task) -> None:
    """Say that this can never be done."""
    raise Fail("never")


class Untellable:
    """Something that raises when it is asked what it is."""

    def __str__(self) -> str:
        raise RuntimeError("never to be told")


def fail_untellably(task: Task) -> None:
    """Say that this can never be done, with a reason that cannot be told."""
    raise Fail(Untellable())


def leave(task: Task) -> None:
    """Leave the process, as a script would."""
    raise SystemExit(3)


def defer(task: Task) -> None:
    """Say that this cannot be done now."""
    raise Defer("not now")


def answer_a_number(task: Task) -> Any:
    """Answer what is no JSON object."""
    return 7


def overrun(task: Task) -> None:
    """Go on until the soft time limit ends it."""
    eventually(lambda: False, _LONGEST_S)


def overrun_deaf(task: Task) -> None:
    """Go on without end, whatever is raised."""
    while True:
        try:
            eventually(lambda: False, _LONGEST_S)
        except (SoftTimeLimitExceeded, AssertionError):
            continue


def die(task: Task) -> Mapping[str, Any]:
    """Kill the process that runs it, for the first `times` attempts."""
    if task.attempt <= task.data["times"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return echo(task)


_DEEDS: Final[Sequence[Callable[[Task], Mapping[str, Any] | None]]] = (
    answer_a_number, boom, defer, die, echo, fail, fail_untellably, leave, linger, note, overrun,
    overrun_deaf, poison, wait,
)  # fmt: skip
_BY_NAME: Final = {deed.__name__: deed for deed in _DEEDS}


@handler("text")
@handler("brief")
def do(task: Task) -> Mapping[str, Any] | None:
    """Do what `do` names."""
    return _BY_NAME[task.data.get("do", "echo")](task)


app = make_app()
