"""The fault suite: what each of its tests gets, and what is told of them.

The rule: every test is one fault, a row with an id (`pytest.mark.fault`). A run that names
`tests/chaos` or a part of it runs all that it names; any other run, as `make test`, only the smoke.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from support.ledger import Judge, Row, cases_of, write

_HERE: Final = Path(__file__).parent
_ROWS: Final = pytest.StashKey[dict[str, Row]]()
_SUITE: Final = pytest.StashKey[list[str]]()
_SHOWN: Final = pytest.StashKey[tuple[Progress, Any]]()


@pytest.fixture
def judge(request: pytest.FixtureRequest) -> Judge:
    """Give what judges a system after the fault, and keeps the figures."""
    return Judge(request.config.stash[_ROWS][request.node.nodeid])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Make the rows; keep the smoke only, unless the run names the suite."""
    rows = config.stash.setdefault(_ROWS, {})
    paths = (Path(argument.partition("::")[0]).resolve() for argument in config.args)
    named = any(path.is_relative_to(_HERE) for path in paths)
    wanted = config.option.fault
    suite: list[str] = []
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        fault = item.get_closest_marker("fault")
        if fault is not None:
            suite.append(fault.args[0])
        if fault is None:
            # Not of this folder, or a long proof without a fault.
            is_long = item.path.is_relative_to(_HERE)
            (left if wanted or (is_long and not named) else kept).append(item)
        elif wanted and fault.args[0] not in wanted:
            left.append(item)
        elif named or wanted or item.get_closest_marker("smoke"):
            kept.append(item)
            docstring = item.obj.__doc__  # type: ignore[attr-defined]
            identity, injected, promise = fault.args
            cases = cases_of(docstring)
            rows[item.nodeid] = Row(identity, injected, promise, item.nodeid, cases)
        else:
            left.append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept
    assert len(suite) == len(set(suite)), f"an id stands twice: {sorted(suite)}"
    config.stash[_SUITE] = suite
    if named and not config.option.collectonly:
        config.stash[_SHOWN] = _bar(config, len(rows))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Show which fault is injected now, and then what came of it."""
    row = item.config.stash.get(_ROWS, {}).get(item.nodeid)
    if row is None or _SHOWN not in item.config.stash:
        return (yield)
    progress, bar = item.config.stash[_SHOWN]
    progress.update(bar, description=f"{row.id} {row.injected}")
    began = time.monotonic()
    try:
        return (yield)
    finally:
        row.seconds = round(time.monotonic() - began, 1)
        progress.advance(bar)
        _report(item.config)
        progress.console.print(
            f"{row.id:<4} {row.outcome:<7} {row.seconds:6.1f} s  {row.injected}: {row.told()}",
            style=None if row.outcome == "passed" else "yellow",
            highlight=False, soft_wrap=True, markup=False,
        )  # fmt: skip


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note how a fault's test ended."""
    report: pytest.TestReport = yield
    row = item.config.stash.get(_ROWS, {}).get(item.nodeid)
    if row is not None and (report.when == "call" or not report.passed):
        row.outcome = report.outcome
        if report.skipped and isinstance(report.longrepr, tuple):
            row.why = report.longrepr[2].removeprefix("Skipped: ")
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the report."""
    config = session.config
    if _SHOWN in config.stash:
        config.stash[_SHOWN][0].stop()
    _report(config)


def _report(config: pytest.Config) -> None:
    """Write what was measured so far: a run that is ended half way has measured something too."""
    path = config.option.report
    if path is not None and _ROWS in config.stash:
        rows = [row for row in config.stash[_ROWS].values() if row.outcome]
        suite = config.stash[_SUITE]
        write(rows, suite, path)


def _bar(config: pytest.Config, total: int) -> tuple[Progress, Any]:
    """Return a progress bar on the real standard error, which pytest captures while tests run."""
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        console = Console(file=os.fdopen(os.dup(2), "w"), stderr=True)
    progress = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=console, transient=True,
    )  # fmt: skip
    progress.start()
    return progress, progress.add_task("", total=total)
