"""An application of a user's own, with ordinary Celery tasks, made fair by one line."""

from __future__ import annotations

import os
import signal
from typing import Any

from celery import Celery

from fairlane import Settings
from fairlane.celery import install


def make(broker_url: str, backend_url: str, settings: Settings | None = None) -> Celery:
    """Return the application."""
    app = Celery("citizen", broker=broker_url, backend=backend_url, set_as_current=False)
    app.conf.update(task_default_queue="work", task_publish_retry=False)
    install(app, settings)

    @app.task(name="add", shared=False)
    def add(one: int, other: int) -> int:
        return one + other

    @app.task(name="who", bind=True, shared=False)
    def who(self: Any) -> list[Any]:
        """Return the id that the task has, and whose it is."""
        return [self.request.id, (self.request.headers or {}).get("device"), self.request.root_id]

    @app.task(name="flaky", bind=True, max_retries=3, shared=False)
    def flaky(self: Any, after: int) -> int:
        """Succeed at a later try."""
        if self.request.retries < after:
            raise self.retry(countdown=0.1)
        return int(self.request.retries)

    @app.task(name="swap", bind=True, shared=False)
    def swap(self: Any, one: int, other: int) -> Any:
        """Let another task stand in for this one."""
        raise self.replace(add.s(one, other))

    @app.task(name="total", shared=False)
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    @app.task(name="die", shared=False)
    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    @app.task(name="boom", shared=False)
    def boom(words: str) -> None:
        raise ValueError(words)

    return app


def __getattr__(name: str) -> Any:
    """Make the application when a worker asks for it."""
    if name not in ("app", "celery"):
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    made = make(os.environ["FAIRLANE_BROKER_URL"], os.environ["CITIZEN_BACKEND"])
    globals()["app"] = made
    return made
