"""The loop around every service: what it says, and what it goes on after."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event

import pytest

from fairlane.errors import StoreUnavailable, UnknownLane
from fairlane.services.service import run_forever


class Stumbling:
    """Stumble at the first step, and stop at the second."""

    every_s = 0.0

    def __init__(self, stopped: Event, stumble: Callable[[], None]) -> None:
        self.steps, self._stopped, self._stumble = 0, stopped, stumble

    def step(self) -> None:
        self.steps += 1
        if self.steps == 2:
            self._stopped.set()
        else:
            self._stumble()


@pytest.mark.parametrize(
    ("error", "said", "level"),
    [
        (UnknownLane("lane: brief does not exist"), "lanes that the store has now", "WARNING"),
        (StoreUnavailable("store: gone"), "trying again every second", "WARNING"),
        (RuntimeError("a bug"), "a step failed", "ERROR"),
    ],
    ids=["a migration", "no store", "a bug"],
)
def test_a_step_that_fails_is_followed_by_the_next(
    error: Exception, said: str, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A traceback is for bugs only."""
    logger = logging.getLogger("fairlane.service")
    logger.addHandler(caplog.handler)

    def stumble() -> None:
        raise error

    stopped = Event()
    service = Stumbling(stopped, stumble)
    run_forever(service, stopped)
    logger.removeHandler(caplog.handler)
    assert service.steps == 2
    first = caplog.records[0]
    assert (said in first.getMessage(), first.levelname) == (True, level)
    assert bool(first.exc_info) == (level == "ERROR")
