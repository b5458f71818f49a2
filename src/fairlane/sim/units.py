"""Times and counts, written for people."""

from __future__ import annotations

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


def duration(ms: float | None) -> str:
    """Return a time in its largest unit, with three digits: `850 ms`, `12.5 s`, `3.2 h`."""
    if ms is None:
        return "–"
    for size, unit in _UNITS:
        if ms >= size:
            return f"{_short(ms / size)} {unit}"
    return f"{_short(ms)} ms" if ms else "0"


def percent(share: float | None) -> str:
    """Return a share as `12.5 %`."""
    return "–" if share is None else f"{_short(share * 100)} %"


def count(number: float) -> str:
    """Return a count as `12,345`."""
    return f"{number:,.0f}"


def _short(number: float) -> str:
    rounded = round(number, 0 if number >= 100 else 1 if number >= 10 else 2)
    return f"{rounded:.0f}" if rounded == int(rounded) else f"{rounded:g}"
