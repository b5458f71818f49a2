"""Line charts and stacked areas as SVG text.

The rule: a chart takes numbers and class names, never colours: the page's style sheet decides how
a series looks, in light and in dark. Whatever is written as text is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

_WIDTH: Final = 520
_HEIGHT: Final = 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 28, 10, 30
#: 1, 2 and 5 up to a second, then what divides minutes, hours and days.
_STEPS_MS: Final = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(seconds * 1_000 for seconds in (1, 2, 5, 10, 15, 30)),
    *(minutes * 60_000 for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * 3_600_000 for hours in (1, 2, 4, 6, 12, 24, 48, 120, 240)),
)


@dataclass(frozen=True, slots=True)
class Series:
    """A line or an area: its name, its CSS class and its points; None is a gap."""

    name: str
    css: str
    points: Sequence[tuple[float, float | None]]


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: from where to where, in which steps, and how a step is written."""

    low: float
    high: float
    ticks: Sequence[float]
    label: Callable[[float], str]
    is_log: bool = False

    def at(self, value: float) -> float:
        """Return where a value stands, 0 to 1."""
        if self.is_log:
            span = math.log10(self.high) - math.log10(self.low)
            place = (math.log10(max(value, self.low)) - math.log10(self.low)) / (span or 1)
        else:
            place = (value - self.low) / ((self.high - self.low) or 1)
        return min(1.0, max(0.0, place))


def linear(low: float, high: float, label: Callable[[float], str]) -> Axis:
    """Return an axis with about five round steps; it may end above `high`."""
    span = max(high - low, 1e-9)
    rough = span / 5
    size = 10 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    count = math.ceil(span / step - 1e-9)
    ticks = [round(low + step * at, 9) for at in range(count + 1)]
    return Axis(low, ticks[-1], ticks, label)


def timeline(end_ms: float, label: Callable[[float], str]) -> Axis:
    """Return an axis of time from 0 with at most eight steps, as people count time."""
    step = next((step for step in _STEPS_MS if step * 8 >= end_ms), 0)
    if not step:
        return linear(0, end_ms, label)
    high = max(end_ms, step)
    return Axis(0, high, [step * at for at in range(int(high / step) + 1)], label)


def logarithmic(low: float, high: float, label: Callable[[float], str]) -> Axis:
    """Return an axis of powers of ten that holds both."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(max(high, low * 10)))
    every = max(1, math.ceil((last - first) / 6))
    ticks = [10.0**power for power in range(first, last + 1, every)]
    return Axis(10.0**first, 10.0**last, ticks, label, is_log=True)


def lines(title: str, x: Axis, y: Axis, series: Sequence[Series]) -> str:
    """Return a chart with a line for each series."""
    drawn = "".join(
        f'<path class="line {each.css}" d="{_path(x, y, each.points)}">'
        f"<title>{escape(each.name)}</title></path>"
        for each in series
    )
    return _svg(title, x, y, drawn)


def areas(title: str, x: Axis, y: Axis, series: Sequence[Series]) -> str:
    """Return a chart with the series stacked upon each other, the first at the bottom."""
    below = [0.0] * (len(series[0].points) if series else 0)
    drawn = ""
    for each in series:
        above = [low + (value or 0.0) for low, (_, value) in zip(below, each.points, strict=True)]
        places = [place for place, _ in each.points]
        outline = [*zip(places, above, strict=True), *reversed([*zip(places, below, strict=True)])]
        drawn += (
            f'<path class="area {each.css}" d="{_path(x, y, outline)}Z">'
            f"<title>{escape(each.name)}</title></path>"
        )
        below = above
    return _svg(title, x, y, drawn)


def _path(x: Axis, y: Axis, points: Sequence[tuple[float, float | None]]) -> str:
    pieces, pen = [], "M"
    for place, value in points:
        if value is None:
            pen = "M"
            continue
        pieces.append(f"{pen}{_x(x, place):.1f} {_y(y, value):.1f}")
        pen = "L"
    return "".join(pieces)


def _svg(title: str, x: Axis, y: Axis, drawn: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">'
        + "".join(_grid(x, y))
        + drawn
        + "</svg>"
    )


def _grid(x: Axis, y: Axis) -> Iterator[str]:
    for tick in y.ticks:
        at = _y(y, tick)
        yield f'<path class="grid" d="M{_LEFT} {at:.1f}H{_WIDTH - _RIGHT}"/>'
        yield f'<text class="y" x="{_LEFT - 6}" y="{at + 4:.1f}">{escape(y.label(tick))}</text>'
    for tick in x.ticks:
        at = _x(x, tick)
        yield f'<path class="tick" d="M{at:.1f} {_HEIGHT - _BOTTOM}v4"/>'
        yield f'<text class="x" x="{at:.1f}" y="{_HEIGHT - 10}">{escape(x.label(tick))}</text>'


def _x(axis: Axis, value: float) -> float:
    return _LEFT + axis.at(value) * (_WIDTH - _LEFT - _RIGHT)


def _y(axis: Axis, value: float) -> float:
    return _HEIGHT - _BOTTOM - axis.at(value) * (_HEIGHT - _TOP - _BOTTOM)
