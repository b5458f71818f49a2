"""`fairlane dead`: dead letters listed, brought back, deleted.

The rule: to bring back or delete many has to be said: by ids, by a filter, or by --all, and again
by --yes where nobody can be asked.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import rich_click as click
from rich.table import Table

from fairlane.cli.duration import Duration
from fairlane.cli.opened import opened
from fairlane.cli.output import as_json_option, bar, confirm, short, tell_json, when
from fairlane.cli.table import show
from fairlane.client import Client
from fairlane.mac import canonical
from fairlane.model import TaskRecord
from fairlane.verbs import DeadLetters, Drop, ReadRevocations, Redrive
from fairlane.verbs.dead import MOST_DEAD

#: Each comes with its whole payload; and an act on one is a search through the list.
_AT_ONCE: Final = 100
#: Ids that one line names.
_FEW: Final = 5


def _filters(command: Callable[..., Any]) -> Callable[..., Any]:
    panel = "Which dead letters"
    for option in (
        click.option("--older", type=Duration(), help="That died before that.", panel=panel),
        click.option(
            "--newer", type=Duration(), help="That died in the last 90s, 30m, 12h …", panel=panel
        ),
        click.option("--cause", help="Of this cause.", panel=panel),
        click.option("--type", "task_type", help="Of one task type.", panel=panel),
        click.option("--mac", help="Of one device, in any notation.", panel=panel),
    ):
        command = option(command)
    return command


def _acts(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        as_json_option,
        click.option("--yes", is_flag=True, help="Do not ask."),
        click.option("--dry-run", is_flag=True, help="Only count."),
        click.option("--all", "everything", is_flag=True, help="All dead letters."),
    ):
        command = option(command)
    return click.argument("task_ids", nargs=-1, metavar="[TASK_ID]...")(_filters(command))


@click.group(short_help="List, redrive and drop dead letters.")
def dead() -> None:
    """List the tasks that were given up, give them new attempts, or delete them."""


@dead.command("list", short_help="The dead letters, newest first.")
@_filters
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True)
@click.option("--by-cause", is_flag=True, help="Count them by cause instead.")
@as_json_option
def list_(*, limit: int, by_cause: bool, as_json: bool, **given: Any) -> None:
    """List dead letters, newest first, each with its cause and the end of its error."""
    with opened() as client:
        found = _meant(client, given)
        if by_cause:
            _show_causes(Counter(letter.cause for letter in found), as_json=as_json)
            return
        letters = [letter for letter, _ in zip(found, range(limit), strict=False)]
    if as_json:
        tell_json([_row(letter) for letter in letters])
        return
    if not letters:
        click.echo("no dead letter", err=True)
        return
    table = Table("task", "type", "device", "died", "cause", "error")
    for letter in letters:
        table.add_row(letter.task_id, letter.task_type, letter.mac, when(letter.ended_at_ms),
                      letter.cause, short(letter.error))  # fmt: skip
    show(table, whole=("task", "device"), spare=("died", "type", "error"))


@dead.command(short_help="Give dead letters a new series of attempts.")
@_acts
def redrive(*, task_ids: tuple[str, ...], **given: Any) -> None:
    """Give dead letters a new series of attempts, by ids, by a filter, or --all of them."""
    _act(task_ids, given, Redrive, "redrive", "redriven")


@dead.command(short_help="Delete dead letters for good.")
@_acts
def drop(*, task_ids: tuple[str, ...], **given: Any) -> None:
    """Delete dead letters for good, by ids, by a filter, or --all of them."""
    _act(task_ids, given, Drop, "drop", "dropped")


def _act(
    task_ids: tuple[str, ...],
    given: dict[str, Any],
    verb: type[Redrive | Drop],
    name: str,
    done_name: str,
) -> None:
    has_filter = any(given[each] for each in ("mac", "task_type", "cause", "newer", "older"))
    if sum((bool(task_ids), has_filter or given["everything"])) != 1:
        raise click.UsageError(
            f"say what to {name}: ids, or a filter as --mac or --cause, or --all"
        )
    done, left = 0, list[str]()
    with opened() as client:
        # What is acted on leaves the list: all is found first.
        chosen = list(dict.fromkeys(task_ids) or _ids(client, given))
        if chosen and not given["dry_run"]:
            confirm(f"{name} {len(chosen)} dead letters?", yes=given["yes"] or bool(task_ids))
            with bar(name, len(chosen)) as advance:
                for at in range(0, len(chosen), MOST_DEAD):
                    some = chosen[at : at + MOST_DEAD]
                    verdicts = client.run(verb(some))
                    done += sum(verdicts)
                    left += [task for task, was in zip(some, verdicts, strict=True) if not was]
                    advance(len(some))
    if given["as_json"]:
        tell_json({"matched": len(chosen), "done": done, "dry_run": given["dry_run"]})
    elif given["dry_run"]:
        click.echo(f"{len(chosen)} would be {done_name}")
    else:
        click.echo(f"{done} of {len(chosen)} {done_name}")
        if not chosen:
            click.echo("none matches; `fairlane dead list --by-cause` has all", err=True)
    if done < len(chosen) and not given["dry_run"]:
        click.echo(f"no dead letters, or none any more: {_some(left)}", err=True)
        sys.exit(1)


def _some(task_ids: Sequence[str]) -> str:
    """Return the first few ids, and how many more there are."""
    more = len(task_ids) - _FEW
    return ", ".join(task_ids[:_FEW]) + (f" and {more} more" if more > 0 else "")


def _ids(client: Client, given: dict[str, Any]) -> Iterator[str]:
    return (letter.task_id for letter in _meant(client, given))


def _meant(client: Client, given: dict[str, Any]) -> Iterator[TaskRecord]:
    """Return the dead letters that a filter means."""
    mac = canonical(given["mac"]) if given["mac"] else None
    newer, older = given["newer"], given["older"]
    now_ms = client.run(ReadRevocations()).now_ms if newer or older else 0
    offset = 0
    while letters := client.run(DeadLetters(offset, _AT_ONCE)):
        for letter in letters:
            if (
                mac in (None, letter.mac)
                and given["task_type"] in (None, letter.task_type)
                and given["cause"] in (None, letter.cause)
                and (not newer or letter.ended_at_ms >= now_ms - newer)
                and (not older or letter.ended_at_ms < now_ms - older)
            ):
                yield letter
        offset += _AT_ONCE


def _show_causes(causes: Counter[str], *, as_json: bool) -> None:
    if as_json:
        tell_json(dict(causes.most_common()))
        return
    table = Table("cause", "dead letters")
    for cause, count in causes.most_common():
        table.add_row(cause, str(count))
    show(table)


def _row(letter: TaskRecord) -> dict[str, Any]:
    return {
        "task_id": letter.task_id,
        "task_type": letter.task_type,
        "mac": letter.mac,
        "cause": letter.cause,
        "error": letter.error,
        "failures": letter.failures,
        "defers": letter.defers,
        "created_at_ms": letter.created_at_ms,
        "died_at_ms": letter.ended_at_ms,
        "data": letter.payload.decode(errors="replace"),
    }
