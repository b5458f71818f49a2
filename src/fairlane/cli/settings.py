"""`fairlane settings`: every setting, its value and where that came from."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import rich_click as click
from rich.table import Table

from fairlane.cli.table import show
from fairlane.settings import Settings, variable_of


@click.command(short_help="Show every setting, its value and where it came from.")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def settings(*, as_json: bool) -> None:
    """Show every setting, its value and where it came from.

    A store's own values are not asked for: this is what this environment says. Passwords in URLs
    are masked.
    """
    current = Settings.from_env()
    rows = []
    for item in fields(current):
        value = getattr(current, item.name)
        preset = "default" if value == item.default else f"preset {current.preset}"
        source = variable_of(item.name) or preset
        rows.append((item.name, _shown(item.name, value), source, item.metadata["about"]))
    if as_json:
        names = ("setting", "value", "source", "about")
        click.echo(json.dumps([dict(zip(names, row, strict=True)) for row in rows], indent=2))
        return
    table = Table("setting", "value", "from", "what it is")
    for row in rows:
        table.add_row(*row)
    show(table)


def _shown(name: str, value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(str(part) if isinstance(part, Path) else part.name for part in value)
    text = str(value)
    if name.endswith("_url"):
        # A driver takes the password from the query as well.
        text = re.sub(r"(?<=password=)[^&]*", "***", text)
        text = re.sub(r"(?<=://).*(?=@)", "***", text)
    return text
