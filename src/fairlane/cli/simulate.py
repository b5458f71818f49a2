"""`fairlane simulate`: what would happen, before it does.

The rule: standard output is the report (a table for people, JSON for programs), the same for the
same seed; the progress bar and where the page was written stand beside it.
"""

from __future__ import annotations

import gc
import json
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import rich_click as click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from fairlane.cli.table import show
from fairlane.sim import csvfile, workloads
from fairlane.sim.page import page
from fairlane.sim.report import Report, measure
from fairlane.sim.simulation import POLICIES, simulate
from fairlane.sim.units import count, duration, percent
from fairlane.sim.workload import Workload

_CSV_SLOTS = 4


@click.command("simulate", short_help="Try a traffic under one or more policies, on paper.")
@click.argument("name", required=False, metavar="[WORKLOAD]")
@click.option("--list", "lists", is_flag=True, help="Show the workloads and policies.")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    type=click.Choice(list(POLICIES)),
    default=("fair", "fifo"),
    show_default="fair and fifo",
    help="Who is next; several are told side by side.",
)
@click.option("--devices", type=click.IntRange(2, 2_000_000), help="How many devices.")
@click.option("--tasks", type=click.IntRange(2, 20_000_000), help="How many tasks, about.")
@click.option("--slots", type=click.IntRange(1, 10_000), help="Tasks at once, in each lane.")
@click.option("--seed", type=int, default=1, show_default=True, help="For the random times.")
@click.option(
    "--csv",
    "csv_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A traffic of yours: tenant,arrival_s,service_s,kind; plain or gzipped.",
)
@click.option("--speed", type=float, help="Trace or CSV: divide all times by this.")
@click.option(
    "--load", type=float, help="Trace or CSV: stretch the arrivals until the busiest lane needs"
    " this share of its slots."
)  # fmt: skip
@click.option(
    "--html",
    "html_file",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write the plots to this file: one page, without network.",
)
@click.option("--json", "as_json", is_flag=True, help="All of it as JSON.")
def command(
    *,
    name: str | None,
    lists: bool,
    policies: Sequence[str],
    devices: int | None,
    tasks: int | None,
    slots: int | None,
    seed: int,
    csv_file: Path | None,
    speed: float | None,
    load: float | None,
    html_file: Path | None,
    as_json: bool,
) -> None:
    """Simulate a WORKLOAD, or the traffic in a CSV file.

    The real scripts decide who is next, on an embedded store of their own with a virtual clock: an
    hour takes seconds. Nothing is sent anywhere and nothing is left behind. The policies `fifo` and
    `rr` are plain queues, to compare with.
    """
    if lists:
        _list(as_json=as_json)
        return
    if name is not None and csv_file is not None:
        raise click.UsageError(f"{name} or --csv {csv_file}, not both")
    if name is None and csv_file is None:
        raise click.UsageError("name a WORKLOAD (`--list` shows them), or give --csv FILE")
    if html_file is not None and not html_file.absolute().parent.is_dir():
        raise click.BadParameter(f"{html_file.parent} is no folder", param_hint="--html")
    if csv_file is not None:
        if devices is not None or tasks is not None:
            raise click.UsageError("--devices and --tasks are the file's; leave them out")
        workload = csvfile.load(
            csv_file,
            slots=_CSV_SLOTS if slots is None else slots,
            speed=1.0 if speed is None else speed,
            load=load,
        )
        about = ("a traffic from a file", "来自文件的任务")
    else:
        assert name is not None
        workload = workloads.workload(
            name, devices=devices, tasks=tasks, slots=slots, seed=seed, speed=speed, load=load
        )
        about = workloads.names()[name]
    # A million arrivals live to the end; to look through them again and again takes its time.
    gc.freeze()
    try:
        with _stoppable():
            reports = [_run(workload, policy) for policy in dict.fromkeys(policies)]
    except KeyboardInterrupt:
        click.echo("stopped; nothing was left behind", err=True)
        sys.exit(130)
    if html_file is not None:
        told = page(workload.name, about, _facts(workload, reports[0], seed), reports)
        html_file.write_text(told, "utf-8")
        click.echo(f"plots: {html_file}", err=True)
    if as_json:
        facts = {"workload": workload.name, "seed": seed, "slots": dict(workload.slots)}
        told_reports = [report.as_dict() for report in reports]
        click.echo(json.dumps({**facts, "reports": told_reports}, indent=2, ensure_ascii=False))
    else:
        _tables(workload, reports)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let a kill and a closed terminal end the store as Ctrl-C does."""
    signals = [number for number in (signal.SIGTERM, signal.SIGHUP)
               if signal.getsignal(number) is not signal.SIG_IGN]  # fmt: skip
    before = {number: signal.signal(number, signal.default_int_handler) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run(workload: Workload, policy: str) -> Report:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True,
                  disable=not sys.stderr.isatty()) as progress:  # fmt: skip
        bar = progress.add_task(f"{workload.name} under {policy}", total=None)
        record = simulate(
            workload, policy, lambda done, of: progress.update(bar, completed=done, total=of)
        )
        progress.update(bar, description=f"measuring {policy}")
        return measure(workload, policy, record)


def _tables(workload: Workload, reports: Sequence[Report]) -> None:
    groups = Table("policy", "group", "devices", "tasks", "done", "wait p50", "p99", "max",
                   "share of time")  # fmt: skip
    runs = Table("policy", "jain", "longest queue", "slots busy", "time", "tasks")
    for column in (*groups.columns[2:], *runs.columns[1:5]):
        column.justify = "right"
    for report in reports:
        for group in report.groups:
            groups.add_row(
                report.policy, group.group, count(group.devices), count(group.tasks),
                count(group.done), duration(group.wait_p50_ms), duration(group.wait_p99_ms),
                duration(group.wait_max_ms), percent(group.share),
            )  # fmt: skip
        runs.add_row(
            report.policy, "–" if report.jain is None else f"{report.jain:.3f}",
            count(report.queue_max), percent(report.utilisation), duration(report.seconds * 1000),
            _ends(report),
        )  # fmt: skip
    show(groups)
    show(runs)
    click.echo("jain: 1 is perfectly fair, 1/n is one of n devices taking all; "
               "–: nothing to measure")  # fmt: skip


def _ends(report: Report) -> str:
    ends = {
        "done": report.done,
        "refused": report.refused,
        "expired": report.expired,
        "dead": report.dead,
        "unfinished": report.unfinished,
        "runs lost and done again": report.lost_runs,
    }
    return ", ".join(f"{count(number)} {end}" for end, number in ends.items() if number)


def _facts(workload: Workload, report: Report, seed: int) -> tuple[str, str]:
    slots = ", ".join(f"{lane} {slots}" for lane, slots in workload.slots.items())
    devices = sum(group.devices for group in report.groups)
    return (
        f"{count(report.tasks)} tasks of {count(devices)} devices; slots: {slots}; seed {seed}; "
        "the real scripts on a virtual clock",
        f"{count(devices)} 台设备的 {count(report.tasks)} 个任务；槽位：{slots}；种子：{seed}；"
        "真实脚本，虚拟时钟",
    )


def _list(*, as_json: bool) -> None:
    named = {name: about for name, (about, _) in workloads.names().items()}
    policies = {name: about for name, (about, _) in POLICIES.items()}
    if as_json:
        click.echo(json.dumps({"workloads": named, "policies": policies}, indent=2))
        return
    for title, rows in (("workload", named), ("policy", policies)):
        table = Table(title, "what it shows" if title == "workload" else "who is next")
        for name, about in rows.items():
            table.add_row(name, about)
        show(table)
