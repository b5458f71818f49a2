"""`fairlane enqueue`: tasks from the command line, or a line each from a file.

The rule: a line that is none is named, and said with it is what was sent before: of a file nothing,
since all of it is looked at first; of a stream the lines of the thousands before it.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import IO, Any, Final, TypeVar

import rich_click as click

from fairlane.cli.duration import Duration
from fairlane.cli.opened import opened
from fairlane.cli.output import bar, tell_line
from fairlane.errors import FairlaneError, InvalidData
from fairlane.model import Receipt, Refusal
from fairlane.settings import Settings
from fairlane.verbs import Enqueue
from fairlane.verbs.accept import MAX_ITEMS

R = TypeVar("R")

_SECONDS: Final = {"ttl_seconds": "ttl_ms", "cost_seconds": "cost_ms"}
_NAMES: Final = ("mac", "task_type", "data", "task_id", "ttl_seconds", "cost_seconds", "site",
                 "idempotency_key")  # fmt: skip


@click.command(short_help="Send a task, or a file of them.")
@click.argument("mac", required=False)
@click.argument("task_type", required=False)
@click.argument("data", required=False)
@click.option("--file", "file", type=click.File(encoding="utf-8"), help="NDJSON; - is stdin.")
@click.option("--task-id", help="An id of your own: sent again, it is the same task.")
@click.option("--ttl", type=Duration(), help="How long it may wait: 90s, 30m, 12h.")
@click.option("--cost", type=Duration(), help="How long it will run, by your estimate.")
@click.option("--site", help="The site that the device joins.")
@click.option("--idempotency-key", help="For a day the same key is the same task.")
@click.option("--json", "as_json", is_flag=True, help="A verdict a task, a line of JSON each.")
def enqueue(
    *,
    mac: str | None,
    task_type: str | None,
    data: str | None,
    file: IO[str] | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Send a task of the device MAC: DATA is a JSON object, {} when left out, or - for stdin.

    With --file, a task a line: a JSON object with mac, task_type, data, and if you like task_id,
    ttl_seconds, cost_seconds, site, idempotency_key. Exit status 1 when some were refused, 2 when a
    line is no task: then nothing was sent of a file, and of a stream what the error says.
    """
    if file is not None:
        if mac is not None or any(given.values()):
            raise click.UsageError("--file has everything in its lines; leave the rest out")
        sys.exit(_send_file(file, as_json=as_json))
    if mac is None or task_type is None:
        raise click.UsageError("say MAC and TASK_TYPE, or --file tasks.ndjson")
    text = sys.stdin.read() if data == "-" else data or "{}"
    task = Enqueue(
        mac,
        task_type,
        _object("DATA", text),
        task_id=given["task_id"],
        ttl_ms=given["ttl"],
        cost_ms=given["cost"],
        site=given["site"],
        idempotency_key=given["idempotency_key"],
        caller="cli",
    )
    with opened() as client:
        verdict = client.run(task)
    if as_json:
        tell_line(_told(verdict))
    elif isinstance(verdict, Refusal):
        click.echo(f"refused: {_why(verdict)}", err=True)
    else:
        click.echo(verdict.task_id)
    sys.exit(1 if isinstance(verdict, Refusal) else 0)


def _send_file(file: IO[str], *, as_json: bool) -> int:
    """Send what a file holds; return the exit status."""
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    with opened() as client, bar("enqueue", None) as done:
        client.ping()
        if file.seekable():
            for batch in _batches(file):
                _items(batch, client.settings, "nothing was sent")
            file.seek(0)
        for batch in _batches(file):
            items = _items(batch, client.settings, f"sent before: {_sum(counts)}")
            for verdict in client.enqueue_many(items):
                kind = _kind(verdict)
                counts[kind] += 1
                if isinstance(verdict, Refusal):
                    reasons[verdict.reason] += 1
                if as_json:
                    tell_line(_told(verdict))
            done(len(batch))
    why = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
    click.echo(_sum(counts) + (f" ({why})" if why else ""), err=as_json)
    return 1 if counts["refused"] or counts["failed"] else 0


def _sum(counts: Mapping[str, int]) -> str:
    kinds = ("accepted", "known", "refused", "failed")
    return ", ".join(f"{counts.get(kind, 0)} {kind}" for kind in kinds)


def _items(batch: Sequence[tuple[int, str]], settings: Settings, sent: str) -> list[Enqueue]:
    """Return the tasks of lines. Raises InvalidData that names the line, and what was sent."""
    try:
        items = [_item(number, line) for number, line in batch]
        for (number, _), item in zip(batch, items, strict=True):
            _named(number, partial(item.args, settings))
    except InvalidData as error:
        raise InvalidData(f"{error}; {sent}") from error
    return items


def _batches(file: Iterable[str]) -> Iterator[list[tuple[int, str]]]:
    rest = ((number, line) for number, line in enumerate(file, 1) if line.strip())
    while batch := list(islice(rest, MAX_ITEMS)):
        yield batch


def _item(number: int, line: str) -> Enqueue:
    """Return a line's task. Raises InvalidData that names the line."""
    return _named(number, lambda: _task(_object("it", line)))


def _task(fields: dict[str, Any]) -> Enqueue:
    for seconds, ms in _SECONDS.items():
        if isinstance(value := fields.pop(seconds, None), int | float):
            fields[ms] = int(value * 1000)
    if unknown := [name for name in fields if name not in (*_NAMES, *_SECONDS.values())]:
        raise InvalidData(f"{', '.join(unknown)}: a task has {', '.join(_NAMES)}")
    if missing := [name for name in _NAMES[:2] if name not in fields]:
        raise InvalidData(f"it lacks {', '.join(missing)}")
    return Enqueue(**{"data": {}, **fields}, caller="cli")


def _named(number: int, check: Callable[[], R]) -> R:
    try:
        return check()
    except (FairlaneError, TypeError) as error:
        raise InvalidData(f"line {number}: {error}") from error


def _object(name: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidData(f"{name} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise InvalidData(f'{name} is no JSON object; write one, as {{"text": "…"}}')
    return found


def _kind(verdict: Receipt | Refusal | FairlaneError) -> str:
    if isinstance(verdict, Receipt):
        return "known" if verdict.known else "accepted"
    return "refused" if isinstance(verdict, Refusal) else "failed"


def _why(refusal: Refusal) -> str:
    return (
        f"{refusal.reason}, {refusal.pending} pending, limit {refusal.limit}; try again in "
        f"{refusal.retry_after_ms / 1000:g} s"
    )


def _told(verdict: Receipt | Refusal | FairlaneError) -> dict[str, Any]:
    """Return a verdict as data."""
    if isinstance(verdict, FairlaneError):
        return {"verdict": "failed", "code": verdict.code, "error": str(verdict)}
    names = verdict.__struct_fields__
    return {"verdict": _kind(verdict), **{name: getattr(verdict, name) for name in names}}
