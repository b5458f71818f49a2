"""Bounds: how much one call may ask for.

The rule: every loop of a script is bounded by an argument, and every such argument is checked here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from fairlane.errors import InvalidData
from fairlane.settings import Settings
from fairlane.verbs.verb import Arg

MOST: Final = 1_000


@dataclass(frozen=True)
class Page:
    """The arguments of a verb that goes through something page by page."""

    offset: int = 0
    limit: int = 100
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return offset and limit. Raises InvalidData for a limit outside 1 to 1,000."""
        return (_checked_offset(self.offset), checked_limit(self.limit))


def checked_limit(limit: int, most: int = MOST) -> int:
    """Return a limit. Raises InvalidData unless it is 1 to `most`."""
    if type(limit) is not int or not 0 < limit <= most:
        raise InvalidData(f"limit: {limit!r}; ask for 1 to {most}")
    return limit


def _checked_offset(offset: int) -> int:
    if type(offset) is not int or not 0 <= offset <= 10**9:
        raise InvalidData(f"offset: {offset!r}; start at 0")
    return offset
