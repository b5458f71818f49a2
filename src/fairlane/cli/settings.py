"""`fairlane settings`: every setting, its value and where that came from.

The rule: JSON has a shared setting as its variable takes it, so that it can be set again.
"""

from __future__ import annotations

import json
import re
from dataclasses import fields
from typing import Final

import rich_click as click
from rich.table import Table

from fairlane.cli.table import show
from fairlane.client import Client
from fairlane.settings import SEED, Settings, variable_of
from fairlane.tasktype import TaskType

_NOT_IN_IT: Final = object()


@click.command(short_help="Show every setting, its value and where it came from.")
@click.option("--store", "of_store", is_flag=True, help="The shared settings that the store has.")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def settings(*, of_store: bool, as_json: bool) -> None:
    """Show every setting, its value and where it came from.

    This is what this environment says; `--store` asks the store, which decides the shared settings.
    Passwords and secrets are masked.
    """
    current = Settings.from_env()
    if of_store:
        with Client(without_opinions(current)) as client:
            client.ping()
            current = client.settings
    texts = current.shared() if as_json else {}
    preset = SEED if current.preset == "seed" else {}
    rows = []
    for item in fields(current):
        if of_store and not item.metadata["shared"]:
            continue
        value = getattr(current, item.name)
        source = "" if of_store else variable_of(item.name)
        if not source and value == preset.get(item.name, _NOT_IN_IT):
            source = f"preset {current.preset}"
        source = source or ("default" if value == item.default else "the store")
        text = texts.get(item.name, shown(item.name, value))
        rows.append((item.name, text, source, item.metadata["about"]))
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


def shown(name: str, value: object) -> str:
    """Return a setting's value for people: task types by their names, no passwords."""
    if isinstance(value, tuple):
        return ", ".join(part.name if isinstance(part, TaskType) else str(part) for part in value)
    text = str(value)
    if name.endswith("_secret"):
        return "***" if text else ""
    if name.endswith("_url"):
        # A driver takes the password from the query as well.
        text = re.sub(r"(?<=password=)[^&]*", "***", text)
        text = re.sub(r"(?<=://).*(?=@)", "***", text)
    return text
