"""fairlane on Celery: the application, its tasks, what its workers do beside them.

The rule: Celery carries hints, the store keeps the truth. A message is `(task_id, attempt)`; a
worker runs it only if `start` says that it is the current attempt, so the broker may lose it or
deliver it twice. This is the only room that knows Celery.

`celery -A fairlane.celery worker|beat` works: `app` is made from the environment when first asked
for. `install(app)` lets the tasks of an application of yours go through fairlane.
"""

from __future__ import annotations

from typing import Any

from fairlane.celery.app import make_app
from fairlane.celery.install import install
from fairlane.celery.recorder import TaskDead

__all__ = ["TaskDead", "install", "make_app"]


def __getattr__(name: str) -> Any:
    if name not in ("app", "celery"):
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    app = globals()["app"] = make_app()
    return app
