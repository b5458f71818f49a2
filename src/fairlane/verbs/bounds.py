"""Bounds: how much one call may ask for.

The rule: every loop of a script is bounded by an argument, and every such argument is checked here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from fairlane.errors import InvalidData
from fairlane.settings import Settings
from fairlane.site import is_site
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
        raise InvalidData(f"limit: {shown(limit)}; ask for 1 to {most}")
    return limit


def _checked_offset(offset: int) -> int:
    if type(offset) is not int or not 0 <= offset <= 10**9:
        raise InvalidData(f"offset: {shown(offset)}; start at 0")
    return offset


def checked_count(name: str, count: int, most: int) -> int:
    """Return a whole number. Raises InvalidData unless it is 0 to `most`."""
    if type(count) is not int or not 0 <= count <= most:
        raise InvalidData(f"{name}: {shown(count)}; send a whole number from 0 to {most}")
    return count


def checked_attempt(attempt: int) -> int:
    """Return an attempt's number. Raises InvalidData for what no attempt can have."""
    return checked_count("attempt", attempt, 10**9)


def checked_flag(name: str, flag: bool) -> int:
    """Return a flag as 1 or 0. Raises InvalidData for anything but True and False."""
    if type(flag) is not bool:
        raise InvalidData(f"{name}: {shown(flag)}; send true or false")
    return int(flag)


def checked_site(site: str) -> str:
    """Return a site's name. Raises InvalidData for what cannot be one."""
    if not is_site(site):
        raise InvalidData(
            f"site: {shown(site)}; use 1 to 64 of a-z, 0-9, `_.-`, a letter or digit first"
        )
    return site


def shown(value: object) -> str:
    """Return a bad value for a message: short, and safe even when it cannot be told."""
    try:
        return ascii(value)[:80]
    except Exception:  # noqa: BLE001 - whole numbers of many digits, and hostile objects
        return f"a {type(value).__name__} that cannot be shown"
