"""Output: data as JSON, lines of JSON and tables; talk and progress on standard error.

The rule: a bar is for people who wait, so it is only drawn on a terminal.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

import rich_click as click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

_EVERY_S: Final = 1.0
as_json_option: Final = click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
watch_option: Final = click.option(
    "--watch",
    "watching",
    is_flag=True,
    help="Again every second, a line of JSON each, until Ctrl-C.",
)


def tell_json(data: Any) -> None:
    """Print data as JSON, in the letters that it has."""
    click.echo(json.dumps(data, indent=2, ensure_ascii=False))


def tell_line(data: Any) -> None:
    """Print data as one line of JSON, at once."""
    click.echo(json.dumps(data, ensure_ascii=False))
    sys.stdout.flush()


def watch(read: Callable[[], Any]) -> None:
    """Print what `read` returns as a line of JSON, every second, until Ctrl-C."""
    try:
        while True:
            tell_line(read())
            time.sleep(_EVERY_S)
    except KeyboardInterrupt:
        return


@contextmanager
def bar(text: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Give what counts the steps of long work; on a terminal it is drawn."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    drawn = Progress(*columns, TimeElapsedColumn(), console=console, transient=True,
                     disable=not console.is_terminal)  # fmt: skip
    with drawn:
        task = drawn.add_task(text, total=total)
        yield lambda steps: drawn.advance(task, steps)


def confirm(question: str, *, yes: bool) -> None:
    """Ask whether to go on, unless `yes` was said.

    Raises UsageError where nobody can be asked, and Abort for a no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"{question} Say --yes to do it, or --dry-run to only count.")
    click.confirm(question, abort=True, err=True)


def short(text: str, most: int = 60) -> str:
    """Return the last line of an error for a table; one that is cut says so by its end."""
    line = text.strip().rpartition("\n")[2]
    return line if len(line) <= most else f"{line[: most - 1]}…"


def when(ms: int) -> str:
    """Return a time of the store's clock for people, in UTC; empty for what has not happened."""
    if ms <= 0:
        return ""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def lasting(ms: float | None) -> str:
    """Return a duration for people."""
    if ms is None:
        return "unknown"
    if ms < 1_000:
        return f"{ms:.0f} ms"
    if ms < 120_000:
        return f"{ms / 1_000:.1f} s"
    return f"{ms / 60_000:,.0f} min" if ms < 7_200_000 else f"{ms / 3_600_000:,.1f} h"
