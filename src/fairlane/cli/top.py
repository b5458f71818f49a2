"""`fairlane top`: the system in a terminal, live."""

from __future__ import annotations

import sys

import rich_click as click

from fairlane.cli.opened import opened


@click.command(short_help="See and steer the system in a live terminal.")
def top() -> None:
    """Show devices, lanes, workers and dead letters, a look a second.

    Keys: 1 to 4 for the tabs, p pauses or resumes the device that is marked, c cancels what it has
    waiting (and asks), r redrives the dead letter that is marked, q ends.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("this needs a terminal; `fairlane stats --watch` needs none")
    from fairlane.cli.terminal import Top

    with opened() as client:
        client.ping()
        Top(client).run()
