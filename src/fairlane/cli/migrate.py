"""`fairlane migrate`: make this environment's settings the store's."""

from __future__ import annotations

import rich_click as click

from fairlane.client import Client
from fairlane.settings import Settings


@click.command(short_help="Make this environment's shared settings the store's.")
def migrate() -> None:
    """Make this environment's shared settings the store's, and seat every device anew.

    Safe on a running system: other processes join the new settings at their next call, or stop with
    CONFIG_MISMATCH if they insist on others.
    """
    wanted = Settings.from_env()
    with Client(wanted) as client:
        changed = [name for name in client.migrate(wanted) if name != "digest"]
    click.echo("\n".join(changed) if changed else "nothing changed", err=not changed)
