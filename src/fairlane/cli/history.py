"""`fairlane history`: what the system did, minute by minute."""

from __future__ import annotations

from dataclasses import asdict

import rich_click as click
from rich.table import Table

from fairlane.cli.opened import opened
from fairlane.cli.output import as_json_option, lasting, tell_json, when
from fairlane.cli.table import show
from fairlane.verbs import ReadHistory
from fairlane.verbs.history import MOST_MINUTES


@click.command(short_help="What the system did, minute by minute, for a day.")
@click.option("--minutes", type=click.IntRange(1, MOST_MINUTES), default=60, show_default=True)
@as_json_option
def history(*, minutes: int, as_json: bool) -> None:
    """Show what came, ended and waited in each of the last minutes, oldest first."""
    with opened() as client:
        found = client.run(ReadHistory(minutes))
    if as_json:
        tell_json([asdict(minute) | {"finished": minute.finished} for minute in found])
        return
    if not found:
        click.echo("no minute is recorded yet; a dispatcher or Beat does it", err=True)
        return
    table = Table("until", "came", "done", "failed", "dead", "refused", "wait p50", "wait p99",
                  "fair (Jain)", "pending")  # fmt: skip
    for each in found:
        waits = ("–" if ms is None else lasting(ms) for ms in (each.wait_p50_ms, each.wait_p99_ms))
        jain = "–" if each.jain is None else f"{each.jain:.2f}"
        counts = (each.enqueued, each.done, each.failed, each.dead, each.refused)
        table.add_row(when(each.at_ms), *map(str, counts), *waits, jain, str(each.pending))
    show(table)
