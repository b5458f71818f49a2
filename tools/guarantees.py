"""Write the table of docs/guarantees.md from reports of the fault suite.

    python tools/guarantees.py REPORT [REPORT…]

The rule: a figure comes from a report (`pytest tests/chaos --report=FILE`) or is not there. Later
reports win; a fault of the suite that no report measured is named as such.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "guarantees.md"
_BLOCK: Final = re.compile(r"(<!-- faults begin -->\n).*(<!-- faults end -->)", re.DOTALL)

#: The parts of the table, by the letter that the ids of its faults begin with.
PARTS: Final[Mapping[str, str]] = {
    "P": "Producers",
    "D": "Dispatchers",
    "W": "Workers",
    "B": "Beats",
    "C": "Clocks",
    "X": "Poison",
    "L": "Floods",
    "S": "Store",
    "N": "Network",
    "F": "Failover",
    "H": "The HTTP service",
    "M": "Another broker",
    "K": "Random kills",
    "R": "The default settings",
    "V": "Long waits",
}
_ENDS: Final = ("done", "failed", "expired", "cancelled", "dead")
_MUST_BE_0: Final = ("lost", "double_finals", "double_runs")
_OUTCOMES: Final = {"passed": "held", "failed": "**broken**", "skipped": "skipped"}

Row = Mapping[str, Any]


def read(paths: Iterable[Path]) -> tuple[list[dict[str, Any]], dict[str, Row]]:
    """Return the reports, and their rows by id; those of later ones win."""
    reports = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    return reports, {row["id"]: row for report in reports for row in report["rows"]}


def block(reports: Sequence[Mapping[str, Any]], rows: Mapping[str, Row]) -> str:
    """Return what stands between the marks: how it was measured, and a table for each part."""
    figures = [row["figures"] for row in rows.values() if row["figures"]]
    sums = {name: sum(each[name] for each in figures) for name in ("accepted", *_MUST_BE_0)}
    held = sum(row["outcome"] == "passed" for row in rows.values())
    runs = dict.fromkeys(
        f"{run['date']} at `{run['commit']}` ({run['machine']})" for run in reports
    )
    text = (
        f"\n{held} of {len(rows)} faults held; {sums['accepted']:,} accepted tasks, "
        f"**{sums['lost']} lost, {sums['double_finals']} ended twice**, "
        f"{sums['double_runs']} attempts run twice. Measured {', '.join(runs)}.\n"
    )
    for letter, title in PARTS.items():
        ours = sorted((row for row in rows.values() if row["id"][0] == letter), key=_place)
        if ours:
            text += f"\n### {title}\n\n" + _table(map(_line, ours))
    known = {identity for run in reports for identity in run["suite"]}
    if missing := sorted(known - set(rows), key=lambda identity: _place({"id": identity})):
        text += f"\nNot measured in these runs: {', '.join(missing)}.\n"
    return text + "\n"


def _place(row: Row) -> int:
    return int(row["id"][1:])


def _line(row: Row) -> list[str]:
    figures, recovery = row["figures"], ""
    told = [row["why"]] if row["outcome"] == "skipped" else []
    if figures:
        ends = [f"{figures[name]:,} {name}" for name in _ENDS if figures[name]]
        told.append(f"{figures['accepted']:,} accepted: {', '.join(ends)}")
        if figures["duplicate_starts"]:
            told.append(f"{figures['duplicate_starts']:,} starts again")
        told += [f"**{figures[name]} {name}**" for name in _MUST_BE_0 if figures[name]]
        if figures["recovery_s"] is not None:
            recovery = f"{figures['recovery_s']:.1f} s"
    told += [f"{name}: {words}" for name, words in row["notes"].items()]
    cases = f" ({', '.join(row['cases'])})" if row["cases"] else ""
    return [
        row["id"],
        row["injected"] + cases,
        row["promise"],
        _OUTCOMES[row["outcome"]],
        "; ".join(told),
        recovery,
    ]


def _table(lines: Iterable[Sequence[str]]) -> str:
    head = ["", "fault", "promise", "", "measured", "recovery"]
    rows = [head, ["---"] * len(head), *lines]
    return "".join(
        "| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |\n" for row in rows
    )


def main(arguments: Sequence[str]) -> int:
    """Write the table; return the exit status."""
    if not arguments:
        sys.stderr.write(f"usage: {Path(__file__).name} REPORT [REPORT…]\n")
        return 2
    text = block(*read(map(Path, arguments)))
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_BLOCK.sub(lambda found: found[1] + text + found[2], page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
