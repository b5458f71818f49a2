"""What the commands print where there is a real terminal, or a pipe that closes."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator

import pexpect
import pytest
from rich.text import Text

from fairlane import Client, Settings, verbs
from support.processes import COMMAND, environment
from support.store import mac


@pytest.fixture
def client(store_url: str) -> Iterator[Client]:
    with Client(Settings(store_url=store_url, max_attempts=1)) as client:
        yield client


def bury(client: Client, device: int) -> str:
    task_id = client.enqueue(mac(device), "text", {}).task_id
    (leased,) = client.run(verbs.Claim("text", 1)).leased
    client.run(verbs.Start(task_id, leased.attempt, "worker", "run"))
    client.run(verbs.Fail(task_id, leased.attempt, "boom", "Traceback: boom"))
    return task_id


def test_in_a_narrow_terminal_ids_and_devices_stay_whole(client: Client) -> None:
    dead = bury(client, 1)
    client.run(verbs.Heartbeat("host:1:a", ["text"], 1, report={"reason": "cpu at 88 %"}))
    for command, shown in (
        (["tasks"], (dead, mac(1))),
        (["dead", "list"], (dead, mac(1), "boom")),
        (["workers"], ("reason", "cpu at")),
    ):
        terminal = pexpect.spawn(
            COMMAND[0],
            [*COMMAND[1:], *command],
            env=environment(client.settings.environ()),
            dimensions=(30, 80),
            encoding="utf-8",
            timeout=30,
        )
        terminal.expect(pexpect.EOF)
        told = terminal.before or ""
        assert all(word in told for word in shown), told
        assert "left out for want of room: " in told
        assert all(Text.from_ansi(line).cell_len <= 80 for line in told.splitlines())


def test_who_has_read_enough_of_the_help_is_no_error(client: Client) -> None:
    command = f"{shlex.join(COMMAND)} --help | head -1"
    done = subprocess.run(
        ["sh", "-c", command],
        env=environment(client.settings.environ()),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
