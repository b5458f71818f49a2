"""The command line: `fairlane COMMAND`.

The rule: standard output is data, standard error is talk; `--json` is the same data for programs.
Exit status: 0 done, 1 it went wrong, 2 wrong usage or settings, 69 the store is not there.
"""

from __future__ import annotations

import logging
import os
import sys

import rich_click as click

from fairlane.cli.abnormal import abnormal
from fairlane.cli.api import api
from fairlane.cli.bench import bench
from fairlane.cli.cancel import cancel
from fairlane.cli.completion import completion
from fairlane.cli.configure import configure
from fairlane.cli.dead import dead
from fairlane.cli.demo import demo
from fairlane.cli.detect import detect
from fairlane.cli.doctor import doctor
from fairlane.cli.enqueue import enqueue
from fairlane.cli.history import history
from fairlane.cli.levels import devices, lanes, stats, workers
from fairlane.cli.migrate import migrate
from fairlane.cli.run import beat, dispatcher, worker
from fairlane.cli.settings import settings
from fairlane.cli.simulate import command as simulate
from fairlane.cli.tasks import explain, task, tasks
from fairlane.cli.token import token
from fairlane.cli.top import top
from fairlane.cli.up import up
from fairlane.errors import FairlaneError, InvalidInput, StoreUnavailable

EX_UNAVAILABLE = 69
_LOOKS = frozenset(
    {
        "abnormal",
        "bench",
        "cancel",
        "configure",
        "dead",
        "devices",
        "doctor",
        "enqueue",
        "explain",
        "history",
        "lanes",
        "migrate",
        "settings",
        "simulate",
        "stats",
        "task",
        "tasks",
        "token",
        "top",
        "workers",
    }
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="fairlane")
@click.option("-v", "--verbose", is_flag=True, help="Tell more on standard error.")
@click.pass_context
def cli(context: click.Context, *, verbose: bool) -> None:
    """Run and look at fairlane, the fair per-device task scheduler.

    Settings come from FAIRLANE_* variables; `fairlane settings` lists them.
    """
    talk = logging.StreamHandler(sys.stderr)
    if context.invoked_subcommand in _LOOKS and not verbose:
        # Whoever looks at a store need not be told every time what it could lose.
        talk.addFilter(lambda said: said.name != "fairlane.store" or said.levelno > logging.WARNING)
    logging.basicConfig(
        handlers=[talk],
        level=logging.INFO if verbose else logging.WARNING,
        format="%(levelname)s %(name)s: %(message)s",
    )


_PANELS = {
    "Run it": (up, api, worker, dispatcher, beat),
    "Tasks": (enqueue, tasks, task, explain, cancel, dead),
    "Look at it": (top, stats, lanes, devices, workers, history, abnormal, doctor),
    "Steer it": (configure, migrate, settings, token, completion),
    "Try it": (demo, simulate, bench, detect),
}
for panel, commands in _PANELS.items():
    for command in commands:
        command.panel = panel
        cli.add_command(command)


def main() -> None:
    """Run the command line and exit; an error is one line that names the next step."""
    try:
        cli(prog_name="fairlane")
    except FairlaneError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(status_of(error))
    except BrokenPipeError:
        # Who read it has enough. What is still to be flushed has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def status_of(error: FairlaneError) -> int:
    """Return the exit status that an error is."""
    if isinstance(error, StoreUnavailable):
        return EX_UNAVAILABLE
    return 2 if isinstance(error, InvalidInput) else 1
