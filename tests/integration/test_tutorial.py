"""The tutorial runs as it is written, step by step, and says what it promises."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlane import Client, Settings
from fairlane.model import TaskState
from support.eventually import eventually
from support.page import ROOT, blocks, environ, shell
from support.ports import free_ports
from support.processes import COMMAND, Program, mentioning

PAGE = ROOT / "docs" / "tutorial.md"
FIRST, LAST = 4, 8


def step(number: int) -> str:
    """Return the commands of a step."""
    (text,) = re.findall(rf"^## {number}\..*?(?=^## |\Z)", PAGE.read_text("utf-8"), re.M | re.S)
    return "".join(blocks(text))


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    """Give the variables of a terminal in the tutorial's folder."""
    return environ(tmp_path) | Settings(pause_percent=100, resume_percent=100).environ()


@pytest.fixture
def port(tmp_path: Path, variables: dict[str, str]) -> Iterator[int]:
    """Give the port of the system that steps 2 and 3 start."""
    shell(step(2), tmp_path, variables)
    assert step(3).startswith("fairlane up\n")
    (port,) = free_ports(1)
    command = [*COMMAND, "up", f"--port={port}", "--concurrency=1"]
    with Program(command, tmp_path / "up.log", variables, watched=False) as up:
        eventually(lambda: "ready:" in up.output(), 60.0)
        yield port
    assert not mentioning(str(tmp_path))


def test_the_tutorial_works_as_it_is_written(
    tmp_path: Path, variables: dict[str, str], port: int
) -> None:
    steps = "".join(f"echo; echo '#{number}'\n{step(number)}" for number in range(FIRST, LAST + 1))
    said = shell(steps.replace("127.0.0.1:8000", f"127.0.0.1:{port}"), tmp_path, variables)
    told = dict(re.findall(r"^#(\d)\n(.*?)(?=^#\d\n|\Z)", said, re.M | re.S))

    accepted, end = json.JSONDecoder().raw_decode(told["5"])
    assert (accepted["task_id"], accepted["state"]) == ("first", "pending")
    assert json.loads(told["5"][end:])["task_id"] == "first"

    counts = {
        int(status): int(count)
        for count, status in re.findall(r'(\d+) "status":(\d+)\n', told["6"])
    }
    assert counts.keys() == {202, 429}
    assert sum(counts.values()) == 500
    assert '"task_id":"second"' in told["6"]

    assert "02:00:00:00:00:02" in told["7"], "the camera waits"
    assert "max_running" in told["8"]
    with Client(Settings(store_url=f"embedded://{tmp_path}/.fairlane/store")) as client:
        for task_id in ("first", "second"):
            eventually(lambda: client.task(task_id).state is TaskState.DONE, 60.0)  # noqa: B023 - it is called here
