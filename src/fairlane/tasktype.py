"""Task types: which lane and Celery queue a kind of work goes through, and what bounds it.

The rule: a task's type decides everything about where it runs; a payload decides nothing.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from fairlane.errors import InvalidSettings

_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_QUEUE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class TaskType:
    """One kind of work: its lane, its Celery queue and its time limits.

    `requires` is `gpu` when only a worker with a GPU may run it, else empty. Past
    `soft_limit_ms` the handler gets SoftTimeLimitExceeded, past `hard_limit_ms` its process ends.
    Raises InvalidSettings for names with other than letters, digits, `_` and `-`.
    """

    name: str
    lane: str
    queue: str
    requires: str = ""
    soft_limit_ms: int = 240_000
    hard_limit_ms: int = 300_000

    def __post_init__(self) -> None:
        for what, text, pattern in (
            ("name", self.name, _NAME),
            ("lane", self.lane, _NAME),
            ("queue", self.queue, _QUEUE),
        ):
            if not isinstance(text, str) or pattern.fullmatch(text) is None:
                raise InvalidSettings(
                    f"task_types: {what} {text!r}; use letters, digits, `_` and `-`, a letter first"
                )
        if self.requires not in ("", "gpu"):
            raise InvalidSettings(f"task_types: requires {self.requires!r}; write `gpu` or nothing")
        if not 0 < self.soft_limit_ms <= self.hard_limit_ms:
            raise InvalidSettings(
                f"task_types: {self.name}: soft_limit_ms must be above 0 and at most hard_limit_ms"
            )

    @classmethod
    def of(cls, given: Any) -> TaskType:
        """Return the task type that a JSON object describes.

        Raises InvalidSettings for a field that is unknown or missing.
        """
        known = [item.name for item in fields(cls)]
        if not isinstance(given, dict) or not {"name", "lane", "queue"} <= given.keys():
            raise InvalidSettings("task_types: each is an object with name, lane and queue")
        unknown = [name for name in given if name not in known]
        if unknown:
            raise InvalidSettings(
                f"task_types: no field {', '.join(unknown)}; known are {', '.join(known)}"
            )
        return cls(**given)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, as the store keeps them in JSON."""
        return asdict(self)


DEFAULT_TASK_TYPES: Final = (
    TaskType("ocr", "ocr", "sensitive.ocr"),
    TaskType("text", "text", "sensitive.text"),
)
SEED_TASK_TYPES: Final = (
    TaskType("ocr", "main", "sensitive.ocr", requires="gpu"),
    TaskType("text", "main", "sensitive.text"),
)
