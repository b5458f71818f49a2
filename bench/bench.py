"""`make bench`, its part on real workers: throughput, fairness under a flood, and idle latency.

The rule: systems take turns, and what is told are medians of rounds and of ratios within a round:
a machine that is busy for a while slows all of them. A system that could not be measured stands in
the result with the reason.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Final

# Run as a file, so its own folder is on the path already; the programs' shared part is not.
sys.path.insert(1, str(Path(__file__).parent / "programs"))

import rich_click as click
from rich.console import Console
from rich.progress import Progress, TaskID

import report
import systems
import trial
from cases import CASES, PARTS, Case, Size, of_part
from fairlane.settings import Settings
from report import Outcome

_CACHE: Final = Path(".bench")
_KNOWN: Final = frozenset(item.name for item in fields(Settings))


@dataclass
class Round:
    """Runs a case and keeps what came out, or why nothing did."""

    size: Size
    cache: Path
    settings: dict[str, int | str]

    def run(self, case: Case, tell: Callable[[int], None]) -> Outcome:
        """Run a case once."""
        system, job = systems.named(case.system), case.job(self.size)
        known = self.size.known if case.known else 0
        try:
            python = systems.python_of(system, self.cache)
            ran = trial.run(system, python, job, known=known, settings=self.settings, tell=tell)
        except (systems.Unavailable, trial.Failed) as error:
            return Outcome(case, error=str(error))
        return Outcome.of(case, job, ran)


@click.command(short_help="Measure on real workers: throughput, fairness, latency.")
@click.argument("parts", nargs=-1, type=click.Choice(PARTS))
@click.option("--case", "names", multiple=True, help="Only these; `--list` tells their names.")
@click.option("--list", "listing", is_flag=True, help="Tell the cases, and run none.")
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True,
              help="How often; medians are told.")  # fmt: skip
@click.option("--quick", is_flag=True, help="Few small tasks, about three minutes: to see that it "
              "works, not to compare.")  # fmt: skip
@click.option("--setting", "given", multiple=True, help="name=value: a setting of fairlane's.")
@click.option("--cache", default=_CACHE, show_default=True, type=click.Path(path_type=Path),
              help="Where the peers are installed.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def main(
    *,
    parts: Sequence[str],
    names: Sequence[str],
    listing: bool,
    rounds: int,
    quick: bool,
    given: Sequence[str],
    cache: Path,
    as_json: bool,
) -> None:
    """Measure fairlane beside plain Celery and its peers, on this machine.

    All parts take about fifteen minutes, with --quick about three. The result is Markdown, to be
    kept in docs/benchmarks.md.
    """
    cases = [case for part in parts or PARTS for case in of_part(part)]
    if names:
        cases = [case for case in CASES if case.name in names]
    if not cases:
        raise click.BadParameter(f"no case is called {', '.join(names)}; see --list")
    if listing:
        for case in cases:
            click.echo(f"{case.name:24s} {case.part:12s} {case.about}")
        return
    settings = _settings(given)
    size = Size.quick() if quick else Size()
    outcomes = list(_measure(cases, rounds, Round(size, cache.resolve(), settings)))
    told = report.Report.of(outcomes, size, sys.argv[1:], cache)
    click.echo(json.dumps(asdict(told), indent=2) if as_json else told.markdown())
    if any(outcome.error and not systems.named(outcome.case.system).requires
           for outcome in outcomes):  # fmt: skip
        # A peer that cannot be had is told; a system of this environment must run.
        sys.exit(1)


def _measure(cases: Sequence[Case], rounds: int, round_: Round) -> Iterator[Outcome]:
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        whole = progress.add_task("rounds", total=rounds * len(cases))
        for number in range(rounds):
            # Who went first goes last: what comes after what is no one's advantage.
            for case in cases if number % 2 == 0 else reversed(cases):
                one = progress.add_task(case.name, total=case.job(round_.size).total)
                outcome = round_.run(case, partial(_tell, progress, one))
                progress.remove_task(one)
                progress.advance(whole)
                console.print(outcome.line(), highlight=False)
                yield outcome


def _tell(progress: Progress, task: TaskID, done: int) -> None:
    progress.update(task, completed=done)


def _settings(given: Sequence[str]) -> dict[str, int | str]:
    settings: dict[str, int | str] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals:
            raise click.BadParameter(f"{pair}: write name=value", param_hint="--setting")
        if name not in _KNOWN:
            message = f"{name}: no such setting; `fairlane settings` lists them"
            raise click.BadParameter(message, param_hint="--setting")
        settings[name] = int(value) if value.isdecimal() else value
    return settings


if __name__ == "__main__":
    main()
