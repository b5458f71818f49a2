"""`fairlane configure`: what one device may have."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import rich_click as click

from fairlane.cli.levels import said
from fairlane.cli.opened import opened
from fairlane.verbs import Configure


@click.command(short_help="Set a device's weight, pause, limits or site.")
@click.argument("mac")
@click.option("--weight", type=float, help="Its share beside other devices'; 1 is usual.")
@click.option("--pause/--resume", "paused", default=None, help="Let its tasks wait, or go on.")
@click.option("--min-running", type=int, help="Served first while fewer are running; 0 lifts it.")
@click.option("--max-running", type=int, help="Never more running at once; 0 lifts it.")
@click.option("--rate", "rate_per_s", type=float, help="No more tasks a second; 0 lifts it.")
@click.option("--site", help="The group whose share it has part of; an empty one lifts it.")
@click.option("--json", "as_json", is_flag=True, help="What is in force, as JSON.")
def configure(
    *,
    mac: str,
    weight: float | None,
    paused: bool | None,
    min_running: int | None,
    max_running: int | None,
    rate_per_s: float | None,
    site: str | None,
    as_json: bool,
) -> None:
    """Set a device's weight, pause, limits or site; active at once on its backlog.

    What is not named stays as it is; without options, say what is in force. MAC in any usual
    notation.
    """
    verb = Configure(mac, weight, paused, min_running, max_running, rate_per_s, site)
    with opened() as client:
        limits = client.run(verb)
        if as_json:
            click.echo(json.dumps(asdict(limits), indent=2))
            return
        site = client.device(mac).site
    own = said(replace(limits, weight=1.0, site=""))
    click.echo(f"weight {limits.weight:g}, site {site}{own and ', ' + own}")
