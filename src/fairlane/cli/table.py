"""Tables for people: as wide as the terminal, and never cut for what is no terminal.

The rule: what is copied into the next command, an id or a device, is whole, or the table is of no
use; where the terminal is narrow, columns that can be spared are left out, and it is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table

_WIDE: Final = 200


def show(table: Table, *, whole: Sequence[str] = (), spare: Sequence[str] = ()) -> None:
    """Print a table on standard output: `whole` names columns that are not broken.

    While it is too wide, the columns of `spare` go, the first one first.
    """
    console = Console(markup=False)
    if not console.is_terminal:
        console.width = _WIDE
    for column in table.columns:
        column.no_wrap = column.header in whole
    left_out = []
    for header in spare:
        # A line, a space before and one after: of each column, and a line at the end.
        if sum(_least_width(column) + 3 for column in table.columns) + 1 <= console.width:
            break
        table.columns = [column for column in table.columns if column.header != header]
        left_out.append(header)
    console.print(table)
    if left_out:
        console.print(f"left out for want of room: {', '.join(left_out)}; --json has them")


def _least_width(column: Column) -> int:
    """Return how wide a column is at least, with no word of it broken."""
    texts = [str(column.header), *map(str, column.cells)]
    parts = texts if column.no_wrap else [word for text in texts for word in text.split()]
    return max(map(cell_len, parts), default=0)
