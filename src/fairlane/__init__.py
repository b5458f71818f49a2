"""fairlane: a fair, per-device task scheduler on Celery and Valkey/Redis.

The names below are the public surface; everything else may change between releases. Verbs, for
what the everyday calls do not cover, are in `fairlane.verbs`: `client.run(verbs.Overload())`.
"""

from fairlane.client import AsyncClient, Client
from fairlane.errors import Defer, Fail, FairlaneError, Refused
from fairlane.handlers import handler
from fairlane.model import Receipt, Refusal, Task, TaskState
from fairlane.settings import Settings
from fairlane.tasktype import TaskType

__all__ = [
    "AsyncClient",
    "Client",
    "Defer",
    "Fail",
    "FairlaneError",
    "Receipt",
    "Refusal",
    "Refused",
    "Settings",
    "Task",
    "TaskState",
    "TaskType",
    "handler",
]
