"""The live terminal of `fairlane top`: devices, lanes, workers, dead letters, and a few keys.

The rule: a key acts on the row that is marked, and what takes something away asks first. The store
is asked beside the drawing, so the terminal stays alive while it does not answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Final

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Header, Static, TabbedContent, TabPane

from fairlane.cli.levels import said
from fairlane.cli.output import lasting, short, when
from fairlane.cli.view import View, cancel_waiting, look, redrive, toggle_pause
from fairlane.client import Client
from fairlane.errors import FairlaneError

_EVERY_S: Final = 1.0
_TABLES: Final = {
    "devices": ("device", "site", "pending", "leased", "waited", "lanes", "limits"),
    "lanes": ("lane", "pending", "can go", "leased", "slots", "credits", "next"),
    "workers": ("worker", "lanes", "slots", "active", "cpu", "memory", "reason", "seen"),
    "dead": ("task", "type", "device", "died", "cause", "error"),
}


class Top(App[None]):
    """Devices, lanes, workers and dead letters, a look a second."""

    TITLE = "fairlane"
    # Its key would take the room of one of ours.
    ENABLE_COMMAND_PALETTE = False
    CSS = "#levels { height: 1; padding: 0 1; } #said { height: 1; padding: 0 1; color: $warning; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "show('devices')", "devices"),
        Binding("2", "show('lanes')", "lanes"),
        Binding("3", "show('workers')", "workers"),
        Binding("4", "show('dead')", "dead"),
        Binding("p", "pause", "pause"),
        Binding("c", "cancel", "cancel"),
        Binding("r", "redrive", "redrive"),
        Binding("y", "yes", "yes", show=False),
        Binding("n", "no", "no", show=False),
        Binding("q", "quit", "quit"),
    ]

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client
        self._asked: Callable[[], str] | None = None
        self._looking = asyncio.Lock()

    def compose(self) -> ComposeResult:
        """Lay out the levels, a table a tab, and the keys."""
        yield Header()
        yield Static("", id="levels", markup=False)
        with TabbedContent(initial="devices", id="tabs"):
            for name in _TABLES:
                with TabPane("dead letters" if name == "dead" else name, id=name):
                    yield DataTable(id=f"{name}-table", cursor_type="row", zebra_stripes=True)
        yield Static("", id="said", markup=False)
        yield Footer()

    async def on_mount(self) -> None:
        """Head the tables, and look now and every second."""
        for name, heads in _TABLES.items():
            self._table(name).add_columns(*heads)
        await self.look()
        self._table("devices").focus()
        self.set_interval(_EVERY_S, self._look_again)

    async def look(self) -> None:
        """Look at the store and show what there is; a store that is away is said."""
        async with self._looking:
            try:
                view = await asyncio.to_thread(look, self._client)
            except FairlaneError as error:
                self._say(str(error))
                return
            self._show(view)

    async def _look_again(self) -> None:
        if not self._looking.locked():
            await self.look()

    def action_show(self, name: str) -> None:
        """Show a tab."""
        self.query_one("#tabs", TabbedContent).active = name
        self._table(name).focus()

    async def action_pause(self) -> None:
        """Pause the device that is marked, or let it go on."""
        if mac := self._marked("devices"):
            await self._do(partial(toggle_pause, self._client, mac))

    def action_cancel(self) -> None:
        """Ask whether to cancel what the marked device has waiting."""
        if mac := self._marked("devices"):
            self._asked = partial(cancel_waiting, self._client, mac)
            self._say(f"cancel all waiting tasks of {mac}? y or n")

    async def action_redrive(self) -> None:
        """Give the marked dead letter new attempts."""
        if task_id := self._marked("dead"):
            await self._do(partial(redrive, self._client, task_id))

    async def action_yes(self) -> None:
        """Do what was asked."""
        if self._asked is not None:
            asked, self._asked = self._asked, None
            await self._do(asked)

    def action_no(self) -> None:
        """Leave what was asked."""
        if self._asked is not None:
            self._asked = None
            self._say("left as it is")

    async def _do(self, act: Callable[[], str]) -> None:
        try:
            self._say(await asyncio.to_thread(act))
        except FairlaneError as error:
            self._say(str(error))
        await self.look()

    def _say(self, text: str) -> None:
        self.query_one("#said", Static).update(text)

    def _table(self, name: str) -> DataTable[str]:
        table: DataTable[str] = self.query_one(f"#{name}-table", DataTable)
        return table

    def _marked(self, name: str) -> str:
        """Return the key of the row that is marked in a tab, if that is shown and has rows."""
        if self.query_one("#tabs", TabbedContent).active != name:
            self._say(f"go to {'dead letters' if name == 'dead' else name} first")
            return ""
        table = self._table(name)
        if not table.row_count:
            self._say("there is none")
            return ""
        return str(table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value)

    def _show(self, view: View) -> None:
        totals = view.totals
        counts = (f"{name} {totals.counts.get(name, 0)}" for name in ("done", "failed", "dead"))
        self.query_one("#levels", Static).update(
            f"pending {totals.pending}  leased {totals.leased}  delayed {totals.delayed}  "
            + "  ".join(counts)
        )
        self._fill("devices", [
            (device.mac, device.site, device.pending, device.leased, lasting(device.waited_ms),
             ", ".join(f"{lane.lane} {lane.pending} ({lane.held_by or f'rank {lane.rank}'})"
                       for lane in device.lanes if lane.pending), said(device.limits))
            for device in view.devices
        ])  # fmt: skip
        self._fill("lanes", [
            (lane.name, lane.pending, lane.scheduled, lane.leased,
             lane.slots or ("no worker" if lane.pending else 0), lane.credits, lane.next_mac)
            for lane in view.lanes
        ])  # fmt: skip
        self._fill("workers", [
            (worker.worker_id, ",".join(worker.lanes), worker.slots, worker.active,
             worker.report.get("cpu", ""), worker.report.get("memory", ""), worker.reason,
             f"{lasting(worker.age_ms)} ago")
            for worker in view.workers
        ])  # fmt: skip
        self._fill("dead", [
            (letter.task_id, letter.task_type, letter.mac, when(letter.ended_at_ms), letter.cause,
             short(letter.error))
            for letter in view.dead
        ])  # fmt: skip

    def _fill(self, name: str, rows: Sequence[Sequence[Any]]) -> None:
        """Put rows into a table; the mark stays on its row as long as that is there."""
        table = self._table(name)
        marked = None
        if table.row_count:
            marked = table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value
        table.clear()
        for row in rows:
            table.add_row(*map(_plain, row), key=str(row[0]))
        if marked is not None and marked in table.rows:
            table.move_cursor(row=table.get_row_index(marked))


def _plain(value: Any) -> str:
    """Return a cell's text; what stands in data is no markup."""
    return str(value).replace("[", "\\[")
