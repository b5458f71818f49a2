"""Dead letters: read, brought back, deleted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from fairlane.ids import checked_task_id
from fairlane.model import TaskRecord
from fairlane.settings import Settings
from fairlane.verbs.bounds import Page, checked_limit
from fairlane.verbs.tasks import record_of
from fairlane.verbs.verb import Arg, Verb, pairs, text

#: Each is a search through a list of up to 10,000: some milliseconds for all, and no more.
MOST_DEAD: Final = 25


@dataclass(frozen=True)
class DeadLetters(Page, Verb[tuple[TaskRecord, ...]]):
    """List dead letters, newest first.

    Each with its cause, its last error and its whole payload. Raises InvalidData for a limit
    outside 1 to 1,000.
    """

    def decode(self, reply: Any) -> tuple[TaskRecord, ...]:
        """Return the records."""
        return tuple(record_of(text(row[0]), dict(pairs(row[1:]))) for row in reply)


@dataclass(frozen=True)
class _OfDead:
    task_ids: Sequence[str]

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return the ids."""
        checked_limit(len(self.task_ids), MOST_DEAD)
        return tuple(map(checked_task_id, self.task_ids))

    def decode(self, reply: Any) -> tuple[bool, ...]:
        """Return, per id, whether it was a dead letter."""
        return tuple(value == 1 for value in reply)


@dataclass(frozen=True)
class Redrive(_OfDead, Verb[tuple[bool, ...]]):
    """Give dead tasks a new series of attempts: their counts start anew, their payload is intact.

    Per id: whether it is pending again. Raises InvalidData for more than 25 ids, InvalidTaskId,
    UnknownLane when a task's lane is gone.
    """

    REPEATABLE: ClassVar[bool] = True


@dataclass(frozen=True)
class Drop(_OfDead, Verb[tuple[bool, ...]]):
    """Delete dead letters for good.

    Per id: whether it is gone now. Raises InvalidData for more than 25 ids, InvalidTaskId.
    """

    REPEATABLE: ClassVar[bool] = True
