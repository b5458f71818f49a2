"""Stored files: recorded, and given up when no task needs them.

The rule: a file is deleted in two steps, chosen first and forgotten after; in between nobody can
name it, and whoever stores it again waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar

from fairlane.errors import InvalidData
from fairlane.files import is_file_name
from fairlane.settings import Settings
from fairlane.verbs.bounds import checked_limit, shown
from fairlane.verbs.verb import Arg, Verb, texts


class Kept(IntEnum):
    """What became of a file that was recorded."""

    DOOMED = -1
    KNOWN = 0
    NEW = 1


@dataclass(frozen=True)
class KeepFile(Verb[Kept]):
    """Record a stored file, so that tasks may name it.

    It stays for `file_ttl_ms`, and as long as a task needs it. `DOOMED` says that it is being
    deleted: store it again in a moment. Raises InvalidData.
    """

    name: str
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return the name."""
        return (_checked_name(self.name),)

    def decode(self, reply: Any) -> Kept:
        """Return what became of it."""
        return Kept(int(reply))


@dataclass(frozen=True)
class DoomFiles(Verb[tuple[str, ...]]):
    """Choose files that no task needs any more, so that they are deleted.

    Nobody can name them from now on. Raises InvalidData for a limit outside 1 to 100.
    """

    limit: int = 50
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return how many files to look at."""
        return (checked_limit(self.limit, 100),)

    def decode(self, reply: Any) -> tuple[str, ...]:
        """Return the names."""
        return texts(reply)


@dataclass(frozen=True)
class ForgetFiles(Verb[int]):
    """Forget files that were deleted, so that they can be stored again.

    Raises InvalidData.
    """

    names: Sequence[str]
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return the names."""
        checked_limit(len(self.names))
        return tuple(map(_checked_name, self.names))

    def decode(self, reply: Any) -> int:
        """Return how many were forgotten."""
        return int(reply)


def _checked_name(name: str) -> str:
    if not is_file_name(name):
        raise InvalidData(f"file: {shown(name)} is no file name: 64 hex digits in lower case")
    return name
