"""Tables for people: as wide as the terminal, and never cut for what is no terminal.

The rule: what is copied into the next command, an id or a device, is whole, or the table is of no
use; where the terminal is narrow, columns that can be spared are left out, and it is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.table import Table

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
        if console.measure(table).minimum <= console.width:
            break
        table.columns = [column for column in table.columns if column.header != header]
        left_out.append(header)
    console.print(table)
    if left_out:
        console.print(f"left out for want of room: {', '.join(left_out)}; --json has them")
