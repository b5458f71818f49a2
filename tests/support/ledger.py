"""The rows of the fault suite: what was injected, what was promised, and what was measured.

The rule: a row's figures are the sum of the tallies that its test passed on, and each of those is
judged before it counts. `tools/guarantees.py` makes the table of docs/guarantees.md of them.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Final

from support.system import System
from support.tally import Tally, at_rest, tally

_CASE: Final = re.compile(r"\bA\d\d\b")


@dataclass
class Row:
    """One fault: its id, what is injected, the promise, the cases, and what came of it.

    `outcome` is passed, failed, skipped or, before the test has ended, empty; `why` is the reason
    of a skip. `notes` are further measured figures, by what they are.
    """

    id: str
    injected: str
    promise: str
    test: str
    cases: Sequence[str] = ()
    outcome: str = ""
    why: str = ""
    seconds: float = 0.0
    figures: Tally | None = None
    notes: dict[str, str] = field(default_factory=dict)

    def told(self) -> str:
        """Return what was measured, as one line."""
        if self.figures is None:
            return self.why or "; ".join(f"{name} {text}" for name, text in self.notes.items())
        counts = {name: n for name, n in asdict(self.figures).items() if n or name == "lost"}
        return ", ".join(
            [*(f"{name} {n:g}" for name, n in counts.items())]
            + [f"{name} {text}" for name, text in self.notes.items()]
        )


class Judge:
    """What a test of the fault suite asks for its verdict."""

    def __init__(self, row: Row) -> None:
        self.row: Final = row

    def judge(
        self,
        system: System,
        *,
        recovery_s: float | None = None,
        receipts: Iterable[str] = (),
        timeout_s: float = 60.0,
    ) -> Tally:
        """Wait until the system is at rest, and prove that no task was lost or ended twice.

        The tally is added to the row; several systems of one test add up.
        """
        at_rest(system, timeout_s)
        counted = tally(system, recovery_s=recovery_s, receipts=receipts)
        assert not counted.problems(), f"{'; '.join(counted.problems())} in {counted}"
        before = self.row.figures
        self.row.figures = counted if before is None else before + counted
        return counted

    def note(self, name: str, text: str) -> None:
        """Add a figure of this fault's own to the row."""
        self.row.notes[name] = text


def cases_of(docstring: str | None) -> list[str]:
    """Return the cases that a test's docstring names, such as A02."""
    return sorted(set(_CASE.findall(docstring or "")))


def write(rows: Iterable[Row], suite: Iterable[str], path: Path) -> None:
    """Write the rows of a run as JSON, with when and on what it ran; `suite` is all ids."""
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    report = {
        "date": str(date.today()),
        "commit": commit or "no repository",
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
        "suite": sorted(suite),
        "rows": [asdict(row) for row in rows],
    }
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
