"""Every labelled row of tests/data/detect is found exactly, and nothing else of its type."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlane.detect.text import detect

DATA = Path(__file__).parents[2] / "data" / "detect"


def rows() -> Iterator[Any]:
    for name in ("text_zh.jsonl", "text_en.jsonl"):
        for line in (DATA / name).read_text("utf-8").splitlines():
            row = json.loads(line)
            yield pytest.param(row, id=row["id"])


@pytest.mark.parametrize("row", list(rows()))
def test_a_labelled_row_is_found_exactly(row: dict[str, Any]) -> None:
    found = [
        {"type": finding.type, "start": finding.start, "end": finding.end, "value": finding.value}
        for finding in detect(row["text"])
        if row["checked"] in ("ALL", finding.type)
    ]
    assert found == row["spans"]
