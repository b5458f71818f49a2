"""Tall images, such as long screenshots, read in bands.

The rule: the model shrinks what it is given to 960 pixels, so an image much taller than wide is
cut into overlapping strips, where no line of text is lost at a cut and none is told twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fairlane.detect.engine import Line, recognise

if TYPE_CHECKING:
    from PIL.Image import Image

_HEIGHT_MIN: Final = 960
_RATIO: Final = 2  # a band's height to its width


def read(image: Image) -> list[Line]:
    """Return the lines of text in an image of any shape, from the top.

    Raises Defer if the model cannot be loaded.
    """
    lines: list[Line] = []
    for top, first, last in _bands(image.width, image.height):
        band = image.crop((0, top, image.width, min(top + _height(image.width), image.height)))
        before = [line for line in lines if _middle(line)[1] >= top]
        for line in recognise(band):
            moved = replace(line, box=tuple((x, y + top) for x, y in line.box))
            if first <= _middle(moved)[1] < last and not _is_told(moved, before):
                lines.append(moved)
    return lines


def _height(width: int) -> int:
    return max(_HEIGHT_MIN, _RATIO * width)


def _bands(width: int, height: int) -> Iterator[tuple[int, int, int]]:
    """Yield each band's top row, and the rows from `first` to `last` where its lines count.

    Two bands share a tenth of their height, and both count lines in the middle half of it, since
    they may place one line some pixels apart.
    """
    overlap = _height(width) // 10
    top = 0
    while top + _height(width) < height:
        bottom = top + _height(width)
        yield top, top + overlap // 4 if top else 0, bottom - overlap // 4
        top = bottom - overlap
    yield top, top + overlap // 4 if top else 0, height


def _middle(line: Line) -> tuple[int, int]:
    return (
        sum(x for x, _ in line.box) // len(line.box),
        sum(y for _, y in line.box) // len(line.box),
    )


def _is_told(line: Line, before: list[Line]) -> bool:
    x, y = _middle(line)
    return any(
        min(px for px, _ in told.box) <= x <= max(px for px, _ in told.box)
        and min(py for _, py in told.box) <= y <= max(py for _, py in told.box)
        for told in before
    )
