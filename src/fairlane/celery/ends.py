"""How Celery's log tells the end of an attempt.

The rule: an attempt that was recorded is a success of Celery, whatever became of the task; its log
must not say so of a task that is dead.
"""

from __future__ import annotations

import logging
from typing import Final

from fairlane.celery.beat import execute_name
from fairlane.model import TaskState

_BEFORE, _AFTER = execute_name("|").split("|")
_SUCCEEDED: Final = " succeeded in "
_ENDS: Final = frozenset({repr(str(state)) for state in TaskState if state is not TaskState.DONE})


class EndOfAttempt(logging.Filter):
    """Lets Celery's line of a success say `was recorded` when the task is not done."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the words, and let every record pass."""
        told = record.args
        if (
            isinstance(told, dict)
            and isinstance(record.msg, str)
            and _SUCCEEDED in record.msg
            and _is_ours(str(told.get("name", "")))
            and str(told.get("return_value")) in _ENDS
        ):
            record.msg = record.msg.replace(_SUCCEEDED, " was recorded in ")
        return True


def _is_ours(name: str) -> bool:
    return name.startswith(_BEFORE) and name.endswith(_AFTER)


def install() -> None:
    """Filter Celery's log of what was run; twice is once."""
    log = logging.getLogger("celery.app.trace")
    if not any(isinstance(each, EndOfAttempt) for each in log.filters):
        log.addFilter(EndOfAttempt())
