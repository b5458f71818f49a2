"""Inject random faults under load for a while, and check that nothing is lost or grows.

    python tools/soak.py --minutes 10 [--seed 1] [--json]

The rule: the verdict is the exit status, 1 if a task was lost or ended twice, or if a system at
rest keeps more keys or memory than before. The table is data (standard output), the bar is talk.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.endurance import SETTINGS, Endurance, Outcome  # noqa: E402 - its path comes first
from support.stage import staged  # noqa: E402


def main(arguments: Sequence[str]) -> int:
    """Run the soak; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1, help="which faults come when")
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    given = parser.parse_args(arguments)
    if not 0 < given.minutes <= 100_000:
        parser.error(f"--minutes {given.minutes:g}: use more than 0, and at most 100,000")
    bar = Progress(
        TextColumn("soak: {task.description}"), BarColumn(), TimeRemainingColumn(),
        console=Console(stderr=True),
    )  # fmt: skip
    with bar, staged(**SETTINGS) as stage:
        shown = bar.add_task("starting", total=given.minutes * 60)
        outcome = Endurance(stage, given.seed).run(
            given.minutes,
            lambda seconds, words: bar.update(shown, completed=seconds, description=words),
        )
    if given.json:
        sys.stdout.write(json.dumps(outcome.as_dict(), indent=1) + "\n")
    else:
        _print(outcome)
    return 1 if outcome.problems else 0


def _print(outcome: Outcome) -> None:
    console, table = Console(), Table("what", "count", title=f"{outcome.minutes:g} minutes")
    for words, count in sorted(outcome.faults.items()):
        table.add_row(words, f"{count:,}")
    table.add_section()
    rows = {
        "tasks accepted": outcome.accepted,
        "tasks ended": outcome.ended,
        "lost": outcome.lost,
        "ended twice": outcome.double_finals,
        "keys at rest, before": outcome.before.keys,
        "keys at rest, after": outcome.after.keys,
        "kB at rest, before": outcome.before.bytes // 1024,
        "kB at rest, after": outcome.after.bytes // 1024,
    }
    for words, count in rows.items():
        table.add_row(words, f"{count:,}")
    console.print(table)
    console.print("; ".join(outcome.problems) or "nothing lost, nothing grown")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
