"""`fairlane tasks`, `task`, `explain`: tasks searched for, read, explained."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, Final

import rich_click as click
from rich.table import Table

from fairlane.cli.opened import opened
from fairlane.cli.output import as_json_option, lasting, short, tell_json, tell_line, when
from fairlane.cli.query import query_of, query_options
from fairlane.cli.table import show
from fairlane.client import Client
from fairlane.errors import TaskNotFound
from fairlane.mac import canonical
from fairlane.model import Event, TaskRecord, TaskState
from fairlane.services.check import counted
from fairlane.timeline import timeline
from fairlane.verbs import Explain, ReadRevocations
from fairlane.verbs.search import TaskQuery, search

_EVERY_S: Final = 0.5


@click.command("tasks", short_help="Search tasks by id, device, state, type, time and words.")
@click.argument("words", default="")
@query_options
@click.option("--limit", type=click.IntRange(1, 1_000), default=50, show_default=True)
@click.option("--watch", is_flag=True, help="What happens from now on, a line of JSON each.")
@as_json_option
def tasks(*, words: str, limit: int, watch: bool, as_json: bool, **given: Any) -> None:
    """Search tasks: what runs, then what waits, what has ended, and the dead letters.

    WORDS is the beginning of an id, a device, or a part of a task type, cause or error. Of tasks
    that have ended, those are found that the event stream still tells of.
    """
    with opened() as client:
        if watch and (given["newer"] or given["older"]):
            raise click.UsageError(
                "--watch tells what happens from now on: leave --newer and --older"
            )
        query = query_of(client, words=words, **given)
        if watch:
            _watch(client, replace(query, mac=canonical(query.mac)) if query.mac else query)
            return
        client.join()
        page = client.follow(search(query, client.settings, limit=limit))
    if as_json:
        rows = [_row(record) for record in page.tasks]
        tell_json({"tasks": rows, "looked": page.looked, "finished": not page.cursor})
        return
    table = Table("task", "state", "type", "device", "accepted", "ended", "attempt", "cause")
    for record in page.tasks:
        why = ": ".join(filter(None, (record.cause, record.error.strip().rpartition("\n")[2])))
        table.add_row(record.task_id, record.state, record.task_type, record.mac,
                      when(record.created_at_ms), when(record.ended_at_ms), str(record.attempt),
                      short(why))  # fmt: skip
    if page.tasks:
        show(
            table, whole=("task", "device"), spare=("ended", "accepted", "attempt", "type", "cause")
        )
    else:
        click.echo("no such task", err=True)
    if page.cursor:
        click.echo(f"there may be more: {page.looked} entries were looked at; raise --limit, or "
                   "say more of what you look for", err=True)  # fmt: skip


@click.command("task", short_help="Read a task: its timeline, its result or its error.")
@click.argument("task_id")
@as_json_option
def task(*, task_id: str, as_json: bool) -> None:
    """Read a task: its state, what happened to it, its data, its result or its error."""
    with opened() as client:
        record = client.task(task_id)
    told = [asdict(each) for each in timeline(record)]
    if as_json:
        rest = {"place": record.place, "data": _json(record.payload)}
        tell_json(_row(record) | rest | {"result": _json(record.result), "timeline": told})
        return
    table = Table("", "", show_header=False)
    for name in ("task_id", "state", "task_type", "mac", "lane", "attempt", "failures", "defers"):
        table.add_row(name.replace("_", " "), str(getattr(record, name)))
    if record.place >= 0:
        table.add_row("place", f"{record.place} in its device's queue")
    for each in timeline(record):
        said = " ".join(filter(None, (when(each.at_ms), each.worker, each.detail)))
        table.add_row(each.event, said)
    for name, value in (("data", record.payload), ("result", record.result)):
        if value:
            table.add_row(name, json.dumps(_json(value), ensure_ascii=False)[:2_000])
    if record.error:
        table.add_row("error", record.error)
    show(table)


@click.command(short_help="Tell why a task waits, and when it will likely start.")
@click.argument("task_id")
@as_json_option
def explain(*, task_id: str, as_json: bool) -> None:
    """Tell why a task waits, how many are served before it, and when it will likely start."""
    with opened() as client:
        found = client.run(Explain(task_id))
    if as_json:
        tell_json(asdict(found))
        return
    table = Table("", "", show_header=False)
    table.add_row("state", found.state)
    table.add_row("reason", f"{found.reason}: {found.detail}")
    if found.until_ms:
        table.add_row(
            "until", f"{when(found.until_ms)}, in {lasting(found.until_ms - found.now_ms)}"
        )
    if found.place >= 0:
        first = counted(found.place, "task")
        table.add_row(
            "in its queue", f"{first} of {found.mac} before it" if found.place else "next"
        )
        before = counted(found.rank, "device")
        rank = f"{before} before its own" if found.rank > 0 else "its own is next"
        table.add_row("in its lane", rank if found.rank >= 0 else "its device cannot go")
        if found.slots:
            ahead = f"some {counted(found.ahead, 'task')}, on {counted(found.slots, 'slot')}"
            table.add_row("served first", ahead)
    if found.start_p50_ms is not None:
        p50, p90 = lasting(found.start_p50_ms), lasting(found.start_p90_ms)
        table.add_row("starts", f"likely in {p50}; nine times in ten within {p90}")
    if found.state is TaskState.DEAD:
        name = f"fairlane task {task_id}"
        table.add_row("next", f"`{name}` tells why, `fairlane dead redrive {task_id}` tries again")
    show(table)


def _watch(client: Client, query: TaskQuery) -> None:
    """Print the events of the tasks that are meant, as they happen, until Ctrl-C."""
    position = str(client.run(ReadRevocations()).now_ms)
    try:
        while True:
            events = client.events(position)
            for event in events:
                position = event.event_id
                if _is_meant(event, query) and _is_of_type(client, event, query.task_type):
                    tell_line(asdict(event))
            if not events:
                time.sleep(_EVERY_S)
    except KeyboardInterrupt:
        return


def _ids(event: Event) -> list[str]:
    # A claim and a start name the attempt, too.
    has_attempt = event.event in ("claimed", "started", "lease_lost")
    return [task.rpartition(".")[0] if has_attempt else task for task in event.tasks]


def _is_meant(event: Event, query: TaskQuery) -> bool:
    """Whether an event is of a task that is meant, as far as an event tells."""
    has_words = not query.words or any(
        text.startswith(query.words) for text in (*_ids(event), *event.tasks, event.mac)
    )
    return (
        bool(event.tasks)
        and has_words
        and (query.state is None or event.event in (query.state, _EVENT_OF.get(query.state)))
        and query.mac in ("", event.mac)
        and query.lane in ("", event.lane)
        and query.cause in ("", event.detail)
    )


def _is_of_type(client: Client, event: Event, task_type: str) -> bool:
    """Whether a task of an event is of a type, which only its record tells."""
    for task_id in _ids(event) if task_type else ():
        with suppress(TaskNotFound):
            if client.task(task_id).task_type == task_type:
                return True
    return not task_type


#: An event has the name of the state that it leads to, but for these.
_EVENT_OF: Final[Mapping[TaskState, str]] = {
    TaskState.PENDING: "accepted",
    TaskState.LEASED: "claimed",
    TaskState.RUNNING: "started",
}


def _row(record: TaskRecord) -> dict[str, Any]:
    """Return a record as data, but for what it carries."""
    row = asdict(record)
    for name in ("payload", "result", "place"):
        del row[name]
    return row


def _json(encoded: bytes) -> Any:
    """Return what bytes of JSON say; those that say nothing as text."""
    if not encoded:
        return None
    try:
        return json.loads(encoded)
    except ValueError:
        return encoded.decode(errors="replace")
