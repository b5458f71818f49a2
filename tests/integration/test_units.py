"""The systemd units: what they start exists, with every option, and systemd understands them."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from fairlane import Settings
from fairlane.cli import cli
from fairlane.embedded import server_program
from support.eventually import eventually

FOLDER = Path(__file__).parents[2] / "deploy" / "systemd"
UNITS = sorted(FOLDER.glob("*.service"))
#: Keys of systemd 254 that an older one ignores, with a word.
NEWER = re.compile(r"Unknown key( name)? '(RestartSteps|RestartMaxDelaySec)'")


def command_of(unit: Path) -> list[str]:
    """Return what a unit starts, as words."""
    (line,) = re.findall(r"^ExecStart=(.*)$", unit.read_text(), re.MULTILINE)
    return shlex.split(line)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_every_unit_restarts_without_end_and_is_confined(unit: Path) -> None:
    lines = unit.read_text().splitlines()
    for line in (
        "Restart=always", "StartLimitIntervalSec=0", "RestartSteps=6", "RestartMaxDelaySec=30s",
        "NoNewPrivileges=yes", "ProtectSystem=strict", "PrivateTmp=yes", "PartOf=fairlane.target",
    ):  # fmt: skip
        assert line in lines


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_every_command_and_option_is_there(unit: Path) -> None:
    program, *words = command_of(unit)
    if not program.endswith("/fairlane"):
        return
    name, *options = words
    command = cli.commands[name]
    known = {text for option in command.params for text in option.opts}
    assert {word for word in options if word.startswith("--")} <= known
    assert CliRunner().invoke(cli, [name, "--help"]).exit_code == 0
    if not any(word.startswith("$") for word in options):
        # Values, too: what click refuses it refuses before the command runs.
        with command.make_context(name, [word.replace("%i", "text") for word in options]):
            pass
    assert isinstance(command, click.Command)


def test_a_worker_is_stopped_by_its_main_process() -> None:
    """By the default a stop would end the children, and the tasks that they run."""
    worker = (FOLDER / "fairlane-worker@.service").read_text()
    assert "KillMode=mixed" in worker
    (stop_s,) = re.findall(r"TimeoutStopSec=(\d+)s", worker)
    assert all(int(stop_s) * 1000 > kind.hard_limit_ms for kind in Settings().task_types)


def test_the_settings_of_the_example_are_settings() -> None:
    lines = (FOLDER / "fairlane.env.example").read_text().splitlines()
    given = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    assert Settings.from_env(given).durability == "strict"


@pytest.fixture
def moved(tmp_path: Path) -> list[str]:
    """Give the units, as files whose programs exist."""
    for unit in [*UNITS, *FOLDER.glob("*.target")]:
        text = re.sub(r"(ExecStart=)\S+", rf"\1{sys.executable}", unit.read_text())
        (tmp_path / unit.name).write_text(text)
    return [str(path) for path in tmp_path.iterdir()]


def test_systemd_understands_them(moved: list[str]) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze on this machine")
    done = subprocess.run([analyze, "verify", *moved], capture_output=True, text=True, check=False)
    about_ours = [line for line in done.stderr.splitlines() if "fairlane" in line]
    assert [line for line in about_ours if not NEWER.search(line)] == []


def test_the_store_of_the_unit_starts(tmp_path: Path) -> None:
    _, *options = command_of(FOLDER / "fairlane-store.service")
    socket = tmp_path / "store.sock"
    places = {"/run/fairlane/store.sock": str(socket), "/var/lib/fairlane": str(tmp_path)}
    command = [str(server_program()), *(places.get(word, word) for word in options)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            eventually(socket.exists, 30.0)
        finally:
            server.terminate()
        assert server.wait(30.0) == 0
