"""`fairlane settings`: every setting, its value and where that came from.

The rule: JSON has a shared setting as its variable takes it, so that it can be set again.
"""

from __future__ import annotations

import json

import rich_click as click
from rich.table import Table

from fairlane.cli.opened import opened, settings_here
from fairlane.cli.table import show
from fairlane.settings import Settings, told, variable_of


@click.command(short_help="Show every setting, its value and where it came from.")
@click.option("--store", "of_store", is_flag=True, help="The shared settings that the store has.")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def settings(*, of_store: bool, as_json: bool) -> None:
    """Show every setting, its value and where it came from.

    This is what this environment says; `--store` asks the store, which decides the shared settings.
    Passwords and secrets are masked.
    """
    current = settings_here()
    if of_store:
        with opened(without_opinions(current)) as client:
            client.ping()
            current = client.settings
    texts = current.shared() if as_json else {}
    source_of = _nowhere if of_store else variable_of
    rows = [
        (each.setting, texts.get(each.setting, each.value), each.source, each.about)
        for each in told(current, source_of=source_of, only_shared=of_store)
    ]
    if as_json:
        names = ("setting", "value", "source", "about")
        click.echo(json.dumps([dict(zip(names, row, strict=True)) for row in rows], indent=2))
        return
    table = Table("setting", "value", "from", "what it is")
    for row in rows:
        table.add_row(*row)
    show(table)


def without_opinions(settings: Settings) -> Settings:
    """Return the settings of a client that takes the store's shared settings as they are."""
    return Settings(
        store_url=settings.store_url,
        namespace=settings.namespace,
        tag=settings.tag,
        data_dir=settings.data_dir,
        durability=settings.durability,
        socket_timeout_ms=settings.socket_timeout_ms,
    )


def _nowhere(_: str) -> str:
    return ""
