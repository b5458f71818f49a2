"""`fairlane migrate`: make the shared settings that this environment names the store's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import rich_click as click

from fairlane.cli.settings import without_opinions
from fairlane.client import Client
from fairlane.errors import LaneInUse
from fairlane.settings import SEED, Settings, shared_fields, shown, variable_of


@click.command(short_help="Make the shared settings named in this environment the store's.")
@click.option("--all", "everything", is_flag=True, help="Those not named as well: their defaults.")
@click.option("--json", "as_json", is_flag=True, help="What has changed, as JSON.")
def migrate(*, everything: bool, as_json: bool) -> None:
    """Make the shared settings that this environment names the store's; seat every device anew.

    What no FAIRLANE_* variable names stays as the store has it (`fairlane settings --store`);
    FAIRLANE_PRESET names all values of its preset. Safe on a running system: other processes join
    the new settings at their next call, or stop with CONFIG_MISMATCH if they insist on others.
    """
    given = Settings.from_env()
    named = _named()
    with Client(without_opinions(given)) as client:
        client.ping()
        before = client.settings
        values = {name: getattr(given, name) for name in named}
        wanted = given if everything else replace(before, **values)
        try:
            client.migrate(wanted)
        except LaneInUse as error:
            raise LaneInUse(f"{error}, {_way_out(before, everything=everything)}") from error
    changes = _changes(before, wanted)
    if "task_types" in changes:
        click.echo(
            "task types have changed: restart `fairlane up`, or the workers, so that they take the "
            "new queues; dispatchers and producers go on with them by themselves, but for those "
            "whose FAIRLANE_TASK_TYPES names others: change it there first",
            err=True,
        )
    if as_json:
        click.echo(json.dumps(changes, indent=2))
        return
    for name, change in changes.items():
        click.echo(f"{name}: {change['before']} -> {change['after']}")
    if not changes:
        nothing = "nothing changed"
        if not named and not everything:
            nothing += "; name what is to change, as FAIRLANE_BATCH_SIZE=5 fairlane migrate"
        click.echo(nothing, err=True)


def _named() -> list[str]:
    """Return the shared settings that this environment names, by themselves or by a preset."""
    preset = SEED if variable_of("preset") else {}
    return [item.name for item in shared_fields() if variable_of(item.name) or item.name in preset]


def _changes(before: Settings, after: Settings) -> Mapping[str, Mapping[str, str]]:
    """Return the values before and after of each setting that is another now."""
    old, new = before.shared(), after.shared()
    changes = {}
    for name in (name for name in new if new[name] != old[name]):
        values: list[Any] = [getattr(settings, name) for settings in (before, after)]
        texts = [shown(name, value) or "none" for value in values]
        # Task types of the same names differ in what only their JSON tells.
        first, second = texts if texts[0] != texts[1] else (old[name], new[name])
        changes[name] = {"before": first, "after": second}
    return changes


def _way_out(before: Settings, *, everything: bool) -> str:
    types = ", ".join(f"{kind.name} (lane {kind.lane})" for kind in before.task_types)
    leave = "leave --all out" if everything else "leave FAIRLANE_TASK_TYPES and a preset out"
    return (
        f"or, if you did not mean to remove it, {leave}, or name all of the store's task types: "
        f"{types}; `fairlane settings --store --json` has them as the variable takes them"
    )
