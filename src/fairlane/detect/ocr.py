"""Find sensitive content in an image, and the handler of the task type `ocr`.

The rule: the text rules decide, on the lines that the model reads; an image adds only where they
stand. The lines are searched as one text, so a label on one line speaks for the number on the
next; no finding spans two lines. What the handler answers holds no value unmasked.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from fairlane.detect import setup
from fairlane.detect.bands import read
from fairlane.detect.engine import Line
from fairlane.detect.finding import Finding
from fairlane.detect.image import BadImage, decode
from fairlane.detect.keywords import Keywords
from fairlane.detect.text import MAX_FINDINGS, counts, detect, masked
from fairlane.errors import Fail
from fairlane.model import Task


def detect_image(
    content: bytes, keywords: Keywords | None = None
) -> tuple[list[Line], list[Finding]]:
    """Return the lines of an encoded image and what is sensitive in them, from the top.

    Raises BadImage if the bytes are no readable image, Defer if the model cannot be loaded.
    """
    lines = read(decode(content))
    return lines, find_in_lines(lines, keywords)


def find_in_lines(lines: Sequence[Line], keywords: Keywords | None = None) -> list[Finding]:
    """Return what is sensitive in recognised lines; `start` and `end` count within the line."""
    offsets = [0, *accumulate(len(line.text) + 1 for line in lines)]
    placed = []
    for finding in detect("\n".join(line.text for line in lines), keywords):
        number = bisect_right(offsets, finding.start) - 1
        offset = offsets[number]
        placed.append(
            replace(
                finding,
                start=finding.start - offset,
                end=finding.end - offset,
                line=number,
                box=lines[number].box,
            )
        )
    return placed


def ocr(task: Task) -> dict[str, Any]:
    """Find sensitive content in the image that a task names.

    Data: `{"file": sha256}` naming a stored PNG, JPEG, WebP, TIFF or BMP. Result: `{lines,
    findings, counts}`; a line is `{text, box, score}` with its findings masked; boxes are four
    [x, y] corners in pixels of the upright image.

    Raises Fail for any other data, Defer if the model cannot be loaded.
    """
    if set(task.data) != {"file"}:
        raise Fail(
            f'data: send {{"file": "<sha256>"}} for a stored image; '
            f"got the keys {sorted(task.data)!r:.80}"
        )
    try:
        lines, findings = detect_image(setup.stored_file(task.data["file"]), setup.keywords())
    except BadImage as error:
        raise Fail(f"data.file: {error}") from error
    return {
        "lines": [_shown(line, number, findings) for number, line in enumerate(lines)],
        "findings": [finding.to_dict() for finding in findings[:MAX_FINDINGS]],
        "counts": counts(findings),
    }


def _shown(line: Line, number: int, findings: Iterable[Finding]) -> dict[str, Any]:
    here = [finding for finding in findings if finding.line == number]
    return {
        "text": masked(line.text, here),
        "box": [list(point) for point in line.box],
        "score": round(line.score, 3),
    }
