"""Every case that users of such systems report, A01 to A49, is shown by a test that names it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]


def named() -> Iterator[str]:
    """Return the cases that stand in the docstrings of tests."""
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if node.name.startswith("test_"):
                yield from re.findall(r"\bA\d\d\b", ast.get_docstring(node) or "")


def test_every_case_has_a_test() -> None:
    cases = {f"A{number:02}" for number in range(1, 50)}
    assert cases - set(named()) == set(), "these have no test"
    assert set(named()) - cases == set(), "there are no such cases"
