"""Cursors: where a list goes on.

The rule: a cursor is opaque. Whoever asks for the next page sends back what the last one answered.
"""

from __future__ import annotations

import re
from typing import Final

from fairlane.http.problem import Problem

_CURSOR: Final = re.compile(r"o([0-9]{1,9})")


def offset_of(cursor: str) -> int:
    """Return the place that a cursor stands for. Raises a 422 for what is no cursor."""
    if not cursor:
        return 0
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise Problem(
            422, "INVALID_REQUEST", f"cursor: {ascii(cursor)[:80]} is none that a page answered"
        )
    return int(found[1])


def cursor_of(offset: int) -> str:
    """Return what stands for a place in a list."""
    return f"o{offset}"


def next_cursor(offset: int, count: int, limit: int) -> str | None:
    """Return where a list goes on after `count` of the `limit` asked for; None at its end."""
    return cursor_of(offset + count) if count == limit else None
