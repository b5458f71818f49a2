"""Tables for people: as wide as the terminal, and never cut for what is no terminal."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.table import Table

_WIDE: Final = 200


def show(table: Table) -> None:
    """Print a table on standard output."""
    console = Console(markup=False)
    if not console.is_terminal:
        console.width = _WIDE
    console.print(table)
