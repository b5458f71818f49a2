"""`fairlane completion`: what a shell needs to complete commands and options."""

from __future__ import annotations

from typing import Final

import rich_click as click
from click.shell_completion import get_completion_class

_WHERE: Final = {
    "bash": "~/.bashrc",
    "zsh": "~/.zshrc",
    "fish": "~/.config/fish/completions/fairlane.fish",
}


@click.command(short_help="Print what your shell needs to complete commands.")
@click.argument("shell", type=click.Choice(list(_WHERE)))
@click.pass_context
def completion(context: click.Context, *, shell: str) -> None:
    """Print the completion for a shell: add it to ~/.bashrc, ~/.zshrc or fish's completions.

    For this shell only: eval "$(fairlane completion bash)".
    """
    kind = get_completion_class(shell)
    assert kind is not None, shell
    root = context.find_root().command
    click.echo(kind(root, {}, "fairlane", "_FAIRLANE_COMPLETE").source())
