"""Which tasks: the options of every command that searches, and the query that they make.

The rule: a time is told by how long ago it was, and counted back by the store's clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rich_click as click

from fairlane.cli.duration import Duration
from fairlane.client import Client
from fairlane.model import TaskState
from fairlane.verbs import ReadRevocations
from fairlane.verbs.search import TaskQuery


def query_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say which tasks."""
    states, panel = click.Choice([state.value for state in TaskState]), "Which tasks"
    for option in (
        click.option("--older", type=Duration(), help="Accepted before that.", panel=panel),
        click.option(
            "--newer", type=Duration(), help="Accepted in the last 90s, 30m, 12h …", panel=panel
        ),
        click.option("--cause", default="", help="That failed or died of this cause.", panel=panel),
        click.option("--type", "task_type", default="", help="Of one task type.", panel=panel),
        click.option("--lane", default="", help="Of one lane.", panel=panel),
        click.option(
            "--mac", "--device", "mac", default="", help="Of one device, in any notation."
        ),
        click.option("--state", type=states, help="Only these.", panel=panel),
    ):
        command = option(command)
    return command


def query_of(
    client: Client,
    *,
    state: str | None,
    newer: int | None,
    older: int | None,
    words: str = "",
    **given: str,
) -> TaskQuery:
    """Return the query that options make."""
    now_ms = client.run(ReadRevocations()).now_ms if newer or older else 0
    return TaskQuery(
        state=None if state is None else TaskState(state),
        created_after_ms=now_ms - newer if newer else 0,
        created_before_ms=now_ms - older if older else 0,
        words=words,
        **given,
    )
