"""`celery -A … fairlane …`: the same commands within Celery's, by its group `celery.commands`.

The rule: the application that Celery was given decides the store, if it is one of ours.
"""

from __future__ import annotations

import sys
from typing import Any

import rich_click as click

from fairlane.cli import cli, status_of
from fairlane.cli.opened import GIVEN
from fairlane.errors import FairlaneError


class _WithinCelery(click.RichGroup):
    """The group of commands, which answers an error as `fairlane` does."""

    def invoke(self, context: click.Context) -> Any:
        """Run a command on the store of the application."""
        app = getattr(context.obj, "app", None)
        ours = getattr(app, "fairlane", None)
        token = GIVEN.set(ours.client.settings if ours is not None else None)
        try:
            return super().invoke(context)
        except FairlaneError as error:
            click.echo(f"error: {error}", err=True)
            sys.exit(status_of(error))
        finally:
            GIVEN.reset(token)


command = _WithinCelery(
    name="fairlane",
    commands=cli.commands,
    help="Run and look at fairlane, the fair per-device task scheduler.",
)
