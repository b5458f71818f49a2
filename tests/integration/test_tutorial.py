"""The tutorial runs as it is written, step by step, and says what it promises."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairlane
from fairlane import Client, Settings
from fairlane.model import TaskState
from support.eventually import eventually
from support.ports import free_ports
from support.processes import COMMAND, Program, mentioning

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
FIRST, LAST = 4, 8


def step(number: int) -> str:
    """Return the commands of a step."""
    (text,) = re.findall(rf"^## {number}\..*?(?=^## |\Z)", PAGE.read_text("utf-8"), re.M | re.S)
    return "".join(re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S))


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Give an environment with the command, in a shell of the tutorial's folder."""
    settings = Settings(pause_percent=100, resume_percent=100).environ()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    source = str(Path(fairlane.__file__).parents[1])
    return {"PATH": path, "PYTHONPATH": source, "HOME": str(tmp_path), **settings}


@pytest.fixture
def port(tmp_path: Path, environ: dict[str, str]) -> Iterator[int]:
    """Give the port of the system that steps 2 and 3 start."""
    shell(step(2), tmp_path, environ)
    assert step(3).startswith("fairlane up\n")
    (port,) = free_ports(1)
    command = [*COMMAND, "up", f"--port={port}", "--concurrency=1"]
    with Program(command, tmp_path / "up.log", environ, watched=False) as up:
        eventually(lambda: "ready:" in up.output(), 60.0)
        yield port
    assert not mentioning(str(tmp_path))


def shell(commands: str, folder: Path, environ: dict[str, str]) -> str:
    """Run commands as a person would; return what they print."""
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", commands],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_tutorial_works_as_it_is_written(
    tmp_path: Path, environ: dict[str, str], port: int
) -> None:
    steps = "".join(f"echo; echo '#{number}'\n{step(number)}" for number in range(FIRST, LAST + 1))
    said = shell(steps.replace("127.0.0.1:8000", f"127.0.0.1:{port}"), tmp_path, environ)
    told = dict(re.findall(r"^#(\d)\n(.*?)(?=^#\d\n|\Z)", said, re.M | re.S))

    accepted, end = json.JSONDecoder().raw_decode(told["5"])
    assert (accepted["task_id"], accepted["state"]) == ("first", "pending")
    assert json.loads(told["5"][end:])["task_id"] == "first"

    counts = {
        int(status): int(count) for count, status in re.findall(r"(\d+) .*?(\d+)\n", told["6"])
    }
    assert counts.keys() == {202, 429}
    assert sum(counts.values()) == 500
    assert '"task_id":"second"' in told["6"]

    assert "max_running" in told["8"]
    with Client(Settings(store_url=f"embedded://{tmp_path}/.fairlane/store")) as client:
        for task_id in ("first", "second"):
            eventually(lambda: client.task(task_id).state is TaskState.DONE, 60.0)  # noqa: B023 - it is called here
