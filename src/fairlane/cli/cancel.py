"""`fairlane cancel`: tasks cancelled, by their ids or by what they are.

The rule: to cancel many has to be said, by a filter or by --all, and again by --yes where nobody
can be asked.
"""

from __future__ import annotations

import sys
from typing import Any

import rich_click as click

from fairlane.cli.opened import opened
from fairlane.cli.output import as_json_option, bar, confirm, tell_json
from fairlane.cli.query import query_of, query_options
from fairlane.client import Client
from fairlane.errors import FairlaneError
from fairlane.model import TaskState
from fairlane.verbs.cancel import Cancelled, cancelling
from fairlane.verbs.search import TaskQuery

#: Entries looked at between two looks of the progress bar.
_STEP = 1_000


@click.command(short_help="Cancel tasks, by ids or all that match.")
@click.argument("task_ids", nargs=-1, metavar="[TASK_ID]...")
@query_options
@click.option("--all", "everything", is_flag=True, help="All that waits.")
@click.option("--force", is_flag=True, help="Also those that run: their results are refused.")
@click.option("--dry-run", is_flag=True, help="Only count.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@as_json_option
def cancel(
    *,
    task_ids: tuple[str, ...],
    everything: bool,
    force: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Cancel tasks that have not ended: by ids, by a filter, or --all that wait.

    A filter means what waits, unless it names a --state; one of `running` needs --force. By ids,
    exit status 1 if one of them could not be.
    """
    if sum((bool(task_ids), any(given.values()) or everything)) != 1 or (
        everything and any(given.values())
    ):
        raise click.UsageError(
            "say what to cancel: ids, or a filter as --mac or --lane, or --all that wait"
        )
    if task_ids:
        if dry_run:
            raise click.UsageError("--dry-run counts what a filter matches; you named ids")
        _by_ids(task_ids, force=force, as_json=as_json)
    if given["state"] == TaskState.RUNNING and not (force or dry_run):
        raise click.UsageError("what runs is cancelled by --force only: its results are refused")
    with opened() as client:
        query = query_of(client, **given)
        client.join()
        found = client.cancel_many(query, dry_run=True)
        if found.matched and not dry_run:
            confirm(f"cancel {found.matched} tasks?", yes=yes)
            found = _all(client, query, found.matched)
    if as_json:
        tell_json({"matched": found.matched, "done": found.done, "dry_run": dry_run})
    elif dry_run:
        click.echo(f"{found.matched} would be cancelled")
    else:
        click.echo(f"{found.done} of {found.matched} cancelled")
        if found.done < found.matched:
            left = found.matched - found.done
            click.echo(f"{left} have begun or ended meanwhile, and are left alone", err=True)


def _all(client: Client, query: TaskQuery, expected: int) -> Cancelled:
    matched = done = 0
    cursor: str | None = ""
    with bar("cancel", expected) as advance:
        while cursor is not None:
            steps = cancelling(query, client.settings, cursor=cursor, most=_STEP)
            some = client.follow(steps)
            matched, done = matched + some.matched, done + some.done
            advance(some.matched)
            cursor = some.cursor or None
    return Cancelled(matched, done)


def _by_ids(task_ids: tuple[str, ...], *, force: bool, as_json: bool) -> None:
    """Cancel tasks one by one, tell what became of each, and exit."""
    rows: list[dict[str, str]] = []
    with opened() as client, bar("cancel", len(task_ids)) as done:
        for task_id in dict.fromkeys(task_ids):
            try:
                client.cancel(task_id, force=force)
                rows.append({"task_id": task_id, "state": "cancelled"})
            except FairlaneError as error:
                if len(task_ids) == 1:
                    raise
                rows.append({"task_id": task_id, "error": str(error), "code": error.code})
            done(1)
    if as_json:
        tell_json(rows)
    for row in () if as_json else rows:
        click.echo(f"{row['task_id']}: {row.get('error', 'cancelled')}")
    sys.exit(1 if any("error" in row for row in rows) else 0)
