"""Every command of the README runs as it is written, and does what the README says."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from fairlane import Client, Settings
from fairlane.model import TaskState
from support.eventually import eventually
from support.page import ROOT, blocks, environ, shell
from support.ports import free_ports
from support.processes import COMMAND, Program, mentioning

README: Final = (ROOT / "README.md").read_text("utf-8")
SIMULATE: Final = ".venv/bin/fairlane simulate flood"
MAKE: Final = "make demo"
UP: Final = "fairlane up"
SEND: Final = "TOKEN=…"
WORKER: Final = "export FAIRLANE_TASK_TYPES="
CONFIGURE: Final = "fairlane configure"
REPORT: Final = "fairlane simulate costs"
#: How every block of commands begins; each is run by a test below.
BEGINS: Final = (SIMULATE, MAKE, UP, SEND, WORKER, CONFIGURE, REPORT)


def block(begin: str) -> str:
    """Return the one block that begins so."""
    (found,) = (code for code in blocks(README) if code.startswith(begin))
    return found


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    """Give the variables of a terminal."""
    return environ(tmp_path) | Settings(pause_percent=100, resume_percent=100).environ()


@pytest.fixture
def url(tmp_path: Path, variables: dict[str, str]) -> Iterator[str]:
    """Give the URL that a running `fairlane up` prints."""
    assert block(UP) == "fairlane up\n"
    (port,) = free_ports(1)
    command = [*COMMAND, "up", f"--port={port}", "--concurrency=1"]
    with Program(command, tmp_path / "up.log", variables, watched=False) as up:
        eventually(lambda: "ready:" in up.output(), 60.0)
        (url,) = re.findall(r"http://\S+", up.output())
        yield url
    assert not mentioning(str(tmp_path))


def test_every_block_of_commands_is_run_by_a_test() -> None:
    assert sorted(map(block, BEGINS)) == sorted(blocks(README))


def test_make_knows_its_targets(tmp_path: Path) -> None:
    for line in block(MAKE).splitlines():
        command = line.partition("#")[0]
        assert shell(f"{command} --dry-run", ROOT, environ(tmp_path))


def test_the_simulations_print_what_is_told(tmp_path: Path, variables: dict[str, str]) -> None:
    said = shell(block(SIMULATE).replace(".venv/bin/", ""), tmp_path, variables)
    for policy in ("fair", "aging", "fifo", "rr"):
        assert policy in said
    shell(block(REPORT), tmp_path, variables)
    assert "<svg" in (tmp_path / "report.html").read_text("utf-8")


def test_a_task_is_sent_and_a_device_configured(
    tmp_path: Path, variables: dict[str, str], url: str
) -> None:
    address, _, token = url.partition("/?token=")
    sent = (
        block(SEND).replace("TOKEN=…", f"TOKEN={token}").replace("http://127.0.0.1:8000", address)
    )
    said = shell(sent, tmp_path, variables)
    assert said.startswith("HTTP/1.1 202")
    task_id = json.loads(said[said.index("{") :])["task_id"]

    shell(block(CONFIGURE), tmp_path, variables)
    told = json.loads(
        shell("fairlane configure aa:bb:cc:00:11:22 --resume --json", tmp_path, variables)
    )
    assert (told["weight"], told["max_running"], told["rate_per_s"]) == (4, 2, 10)
    with Client(Settings(store_url=f"embedded://{tmp_path}/.fairlane/store")) as client:
        eventually(lambda: client.task(task_id).state is TaskState.DONE, 60.0)


def test_the_device_of_the_examples_sends_and_waits(
    tmp_path: Path, variables: dict[str, str], url: str
) -> None:
    address, _, token = url.partition("/?token=")
    device = f"{sys.executable} {ROOT}/examples/device.py"
    texts = "printf 'call 138-1234-5678\\nnothing here\\n'"
    said = shell(f"{texts} | {device} {address} {token} 02:00:00:00:00:01", tmp_path, variables)
    first, second = said.splitlines()
    assert "PHONE" in first
    assert " done " in second
    assert "PHONE" not in second
    wrong = f"! {device} {address} {token} nonsense <<< text 2>&1"
    assert shell(wrong, tmp_path, variables).startswith("INVALID_MAC: ")


def test_a_handler_of_ones_own_runs(tmp_path: Path, variables: dict[str, str]) -> None:
    (module,) = (code for code in blocks(README, "python") if code.startswith("# resize.py"))
    (tmp_path / "resize.py").write_text(module, "utf-8")
    command = ["bash", "-c", block(WORKER)]
    with (
        Program(command, tmp_path / "worker.log", variables, watched=False) as worker,
        Client(Settings(store_url=f"embedded://{tmp_path}/.fairlane/store")) as client,
    ):
        eventually(lambda: "ready" in worker.output(), 60.0)
        task_id = client.enqueue("02:00:00:00:00:01", "resize", {"width": 640}).task_id
        eventually(lambda: client.task(task_id).state is TaskState.DONE, 60.0)
        assert json.loads(client.task(task_id).result) == {"width": 320}
