"""Durations and sizes as people write them on a command line."""

from __future__ import annotations

import re
from typing import Any, Final

import rich_click as click

_UNITS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 24 * 3_600_000}


class Duration(click.ParamType[int]):
    """A time such as 90s, 30m, 12h or 30d, in ms."""

    name = "duration"

    def convert(self, value: Any, param: Any, context: Any) -> int:
        """Return milliseconds."""
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"([1-9][0-9]{0,8})([smhd])", str(value))
        if found is None:
            self.fail(f"{value!r} is no time; write it as 90s, 30m, 12h or 30d", param, context)
        return int(found[1]) * _UNITS[found[2]]
