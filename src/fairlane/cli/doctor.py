"""`fairlane doctor`: what is well with the system, what is not, and what to do about it.

The rule: it only looks, unless it is told to repair or to acknowledge; a repair is safe on a
running system, and a second one changes nothing. No output holds a password.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Final

import rich_click as click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from fairlane.cli.opened import opened, settings_here
from fairlane.cli.settings import without_opinions
from fairlane.cli.table import show
from fairlane.errors import FairlaneError, StoreUnavailable
from fairlane.services.check import counted
from fairlane.services.examination import Examination, examine
from fairlane.services.examination import Progress as Told
from fairlane.services.readiness import Check, Report, Verdict, judge, unreachable
from fairlane.settings import Settings
from fairlane.verbs import Acknowledge, InspectTotals

_STYLES: Final = {Verdict.OK: "green", Verdict.WARN: "yellow", Verdict.FAIL: "bold red"}
_SHOWN: Final = 20
_BAR_AFTER_S: Final = 2.0


@click.command(short_help="What is well, what is not, and what to do; --repair mends the store.")
@click.option("--repair", is_flag=True, help="Mend what is wrong in the store; safe while it runs.")
@click.option(
    "--acknowledge", is_flag=True, help="Take note that the store came back empty or old."
)
@click.option("--json", "as_json", is_flag=True, help="All of it as JSON.")
def doctor(*, repair: bool, acknowledge: bool, as_json: bool) -> None:
    """Look at the store, the processes and every invariant that can be read; say what is not well.

    Exit status: 0 nothing has failed (what was repaired is well), 1 something has, 69 the store is
    not there, or does not let you in.
    """
    settings = settings_here()
    try:
        report = _report(settings, acknowledge=acknowledge)
    except StoreUnavailable as error:
        if as_json:
            click.echo(json.dumps(unreachable(error).as_dict(), indent=2))
        raise
    examination: Examination | None = None
    try:
        examination, checks = _examined(settings, repair=repair)
    except StoreUnavailable:
        raise
    except FairlaneError as error:
        step = "mend the checks that failed, then run it again"
        checks = [Check("invariants", Verdict.FAIL, f"not looked at: {error}", step)]
    report = Report((*report.checks, *checks), report.durability)
    if as_json:
        click.echo(json.dumps(_as_dict(report, examination), indent=2))
    else:
        _show(report, examination)
    sys.exit(1 if report.verdict is Verdict.FAIL else 0)


def _report(settings: Settings, *, acknowledge: bool) -> Report:
    """Return the report on store and processes. Raises StoreUnavailable."""
    with opened(settings) as client:
        if acknowledge:
            with opened(without_opinions(settings)) as other:
                noted = other.run(Acknowledge())
            said = "taken note of the store's loss" if noted else "there is no loss to take note of"
            click.echo(said, err=True)
        found = client.probe()
        if found.unreachable is not None:
            raise found.unreachable
        return judge(found)


def _examined(settings: Settings, *, repair: bool) -> tuple[Examination, list[Check]]:
    """Look at every invariant, and mend what is wrong if asked; what is left is looked at again."""
    with opened(without_opinions(settings)) as client:
        with _bar() as progress:
            examination = examine(client, repair=repair, progress=progress)
            left = examination
            if repair and examination.flaws:
                left = examine(client, progress=progress)
        lost = client.run(InspectTotals()).lost()
    of_devices = counted(examination.devices, "device")
    looked = f"{counted(examination.tasks, 'task')} and {of_devices} looked at"
    if left.left_out:
        looked += f"; not checked: {left.left_out}"
    gone = len(set(examination.flaws) - set(left.flaws))
    mended = f"; mended: {gone:,}" if repair and gone else ""
    if not left.flaws:
        checks = [Check("invariants", Verdict.OK, f"all hold: {looked}{mended}")]
    else:
        step = "see the flaws below; " if repair else "mend them: `fairlane doctor --repair`; "
        step += "if they come back, another program writes to these keys, or it is a bug"
        said = f"{counted(len(left.flaws), 'flaw')}: {looked}{mended}"
        return examination, [Check("invariants", Verdict.FAIL, said, step)]
    if lost:
        # Nothing mends that, so it must not fail for ever.
        where = "nowhere" if lost > 0 else "counted twice"
        said = f"of the accepted tasks, {abs(lost):,} {'is' if abs(lost) == 1 else 'are'} {where}"
        step = "somebody deleted or restored records by hand: compare with what the producers sent"
        checks.append(Check("accounts", Verdict.WARN, said, step))
    else:
        checks.append(Check("accounts", Verdict.OK, "each accepted task is inside or has ended"))
    return examination, checks


def _as_dict(report: Report, examination: Examination | None) -> dict[str, Any]:
    flaws = examination.flaws if examination else ()
    return {
        **report.as_dict(),
        "repaired": bool(examination and examination.mended),
        "flaws": [asdict(flaw) for flaw in flaws],
    }


def _show(report: Report, examination: Examination | None) -> None:
    table = Table("check", "verdict", "found", "next step")
    for check in report.checks:
        verdict = Text(str(check.verdict), style=_STYLES[check.verdict])
        table.add_row(check.name, verdict, check.found, check.next_step)
    show(table)
    flaws = examination.flaws if examination else ()
    if not flaws:
        return
    title = "mended" if examination and examination.mended else "wrong"
    rows = Table("of", title, "was" if title == "mended" else "is", "should be")
    for flaw in flaws[:_SHOWN]:
        rows.add_row(flaw.who, flaw.what, flaw.found, flaw.right)
    show(rows)
    if len(flaws) > _SHOWN:
        click.echo(f"and {len(flaws) - _SHOWN} more; --json has all", err=True)


@contextmanager
def _bar() -> Iterator[Told]:
    """Give what shows progress on standard error, once it has taken two seconds."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    bar = Progress(*columns, TimeElapsedColumn(), console=console, transient=True)
    began, tasks = time.monotonic(), dict[str, Any]()

    def told(what: str, done: int, of: int) -> None:
        if not console.is_terminal or time.monotonic() - began < _BAR_AFTER_S:
            return
        bar.start()
        if what not in tasks:
            tasks[what] = bar.add_task(what)
        bar.update(tasks[what], completed=done, total=max(done, of))

    try:
        yield told
    finally:
        if tasks:
            bar.stop()
