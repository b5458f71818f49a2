"""JSON logs of real processes: the service, a worker, Beat and a dispatcher."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairlane import Settings
from support.eventually import eventually
from support.processes import COMMAND, Program

#: A line of each, which it says by itself.
SAID = {"worker": "ready", "beat": "beat: Starting", "dispatcher": "leads"}


def objects(text: str) -> list[dict[str, Any]]:
    """Return the lines that are JSON objects: a banner is for people."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


@pytest.mark.parametrize("role", list(SAID))
def test_every_role_speaks_json(store_url: str, tmp_path: Path, role: str) -> None:
    settings = Settings(store_url=store_url, data_dir=tmp_path, log_format="json")
    command = [*COMMAND, *(["-v"] if role == "dispatcher" else []), role]
    with Program(command, tmp_path / "log", settings.environ(), watched=False) as program:
        eventually(
            lambda: any(SAID[role] in line["event"] for line in objects(program.output())), 60.0
        )
        told = objects(program.output())
    assert {line["role"] for line in told} == {role}
    assert all(line["timestamp"] and line["level"] and line["logger"] for line in told)
    assert not [line for line in program.output().splitlines() if line.startswith("[20")]
