"""`fairlane top`: through textual's pilot, and once in a real terminal."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pexpect
import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from fairlane import Client, Settings, verbs
from fairlane.cli.terminal import Top
from fairlane.model import TaskState
from support.processes import COMMAND, environment
from support.store import mac

Steps = Callable[[Top, Pilot[None]], Awaitable[None]]


@pytest.fixture
def client(store_url: str) -> Iterator[Client]:
    with Client(Settings(store_url=store_url, max_attempts=1)) as client:
        yield client


def drive(client: Client, steps: Steps) -> None:
    """Run the terminal without one, and take steps in it."""

    async def run() -> None:
        top = Top(client)
        async with top.run_test(size=(140, 40)) as pilot:
            await pilot.pause()
            await steps(top, pilot)

    asyncio.run(run())


def rows(top: Top, name: str) -> list[list[Any]]:
    table: DataTable[str] = top.query_one(f"#{name}-table", DataTable)
    return [table.get_row_at(at) for at in range(table.row_count)]


def said(top: Top, name: str = "said") -> str:
    return str(top.query_one(f"#{name}", Static).content)


def bury(client: Client, device: int) -> str:
    task_id = client.enqueue(mac(device), "text", {}).task_id
    (leased,) = client.run(verbs.Claim("text", 1)).leased
    client.run(verbs.Start(task_id, leased.attempt, "worker", "run"))
    client.run(verbs.Fail(task_id, leased.attempt, "boom", "Traceback: [red]boom[/red]"))
    return task_id


def test_what_there_is_is_shown(client: Client) -> None:
    dead = bury(client, 9)
    for device in (1, 1, 2):
        client.enqueue(mac(device), "text", {})

    async def steps(top: Top, pilot: Pilot[None]) -> None:
        assert [row[:3] for row in rows(top, "devices")] == [
            [mac(1), "default", "2"], [mac(2), "default", "1"],
        ]  # fmt: skip
        assert ["text", "3", "2", "0", "no worker"] in [row[:5] for row in rows(top, "lanes")]
        assert [row[0] for row in rows(top, "dead")] == [dead]
        assert said(top, "levels").startswith("pending 3  leased 0")
        client.run(verbs.Heartbeat("host:1:a", ["text"], 4, report={"reason": "busy"}))
        await top.look()
        assert [row[:3] for row in rows(top, "workers")] == [["host:1:a", "text", "4"]]

    drive(client, steps)


def test_p_pauses_the_marked_device_and_lets_it_go_on(client: Client) -> None:
    for device in (1, 2):
        client.enqueue(mac(device), "text", {})

    async def steps(top: Top, pilot: Pilot[None]) -> None:
        await pilot.press("down", "p")
        assert client.device(mac(2)).limits.paused
        assert not client.device(mac(1)).limits.paused
        assert said(top) == f"{mac(2)} is paused"
        # The mark stays on its row, though all rows were read anew.
        await pilot.press("p")
        assert not client.device(mac(2)).limits.paused

    drive(client, steps)


def test_c_cancels_what_a_device_has_waiting_after_a_yes(client: Client) -> None:
    for device in (1, 1, 1, 2):
        client.enqueue(mac(device), "text", {})

    async def steps(top: Top, pilot: Pilot[None]) -> None:
        await pilot.press("c")
        assert said(top) == f"cancel all waiting tasks of {mac(1)}? y or n"
        await pilot.press("n")
        assert client.device(mac(1)).pending == 3
        await pilot.press("y")
        assert client.device(mac(1)).pending == 3
        await pilot.press("c", "y")
        assert said(top) == f"3 waiting tasks of {mac(1)} are cancelled"
        assert (client.device(mac(1)).pending, client.device(mac(2)).pending) == (0, 1)

    drive(client, steps)


def test_r_redrives_the_marked_dead_letter(client: Client) -> None:
    older, newer = bury(client, 1), bury(client, 2)

    async def steps(top: Top, pilot: Pilot[None]) -> None:
        await pilot.press("r")
        assert said(top) == "go to dead letters first"
        await pilot.press("4", "down", "r")
        assert client.task(older).state is TaskState.PENDING
        assert client.task(newer).state is TaskState.DEAD
        assert [row[0] for row in rows(top, "dead")] == [newer]

    drive(client, steps)


def test_a_store_that_is_away_is_said_and_the_keys_still_work(client: Client) -> None:
    client.enqueue(mac(1), "text", {})

    async def steps(top: Top, pilot: Pilot[None]) -> None:
        client.close()
        client._store.url = "redis://127.0.0.1:1/0"
        client._wire = type(client._wire)("redis://127.0.0.1:1/0")
        await top.look()
        assert "is it running" in said(top)
        await pilot.press("3")

    drive(client, steps)


def test_in_a_real_terminal(store_url: str) -> None:
    with Client(Settings(store_url=store_url)) as client:
        client.enqueue(mac(1), "text", {})
        terminal = pexpect.spawn(
            COMMAND[0],
            [*COMMAND[1:], "top"],
            env=environment({"FAIRLANE_STORE_URL": store_url, "TERM": "xterm-256color"}),
            dimensions=(40, 140),
            timeout=60,
            encoding="utf-8",
        )
        try:
            terminal.expect(mac(1))
            terminal.send("p")
            terminal.expect("is paused")
            assert client.device(mac(1)).limits.paused
            terminal.send("q")
            terminal.expect(pexpect.EOF)
            terminal.close()
            assert terminal.exitstatus == 0
        finally:
            terminal.close(force=True)


def test_without_a_terminal_it_says_what_needs_none(store_url: str) -> None:

    done = subprocess.run(
        [*COMMAND, "top"],
        env=environment({"FAIRLANE_STORE_URL": store_url}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "fairlane stats --watch" in " ".join(done.stderr.split())
