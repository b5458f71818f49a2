"""The benches measure, and say what they measured beside what."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fairlane.cli import cli
from fairlane.cli.bench import told_slow

BENCH = Path(__file__).parents[2] / "bench" / "bench.py"


def test_it_tells_rates_and_ratios_of_every_pair() -> None:
    done = CliRunner().invoke(
        cli,
        ["bench", "--rounds", "1", "--calls", "20", "--devices", "2", "--devices", "50", "--json"],
    )
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    besides = [
        "bare EVALSHA (plain driver)",
        "bare EVALSHA (driver)",
        "bare EVALSHA (our wire)",
        "RPUSH (driver)",
    ]
    of_100 = [f"{beside.replace(' (', ' of 100 (')}: tasks" for beside in besides]
    alone = [
        "claim of 1",
        "start",
        "finish",
        "claim of 10: tasks",
        "sweep of 50 lost: tasks",
        "sweep, nothing due",
        "purge of 50: tasks",
    ]
    assert [(row["what"], row["beside"]) for row in rows] == [
        *(("enqueue", beside) for beside in besides),
        *(("enqueue_many of 100, one device: tasks", beside) for beside in of_100),
        *(("enqueue_many of 100, 100 devices: tasks", beside) for beside in of_100),
        *((f"{what}, {count} devices", "2 devices") for what in alone for count in (2, 50)),
    ]
    assert all(number > 0 for row in rows for number in row.values() if type(number) is not str)
    assert "came back empty" not in done.stderr, "the bench empties its own store"
    assert not logging.root.manager.disable, "the logs of others are theirs"


def test_calls_that_kept_the_store_are_told_by_their_verbs() -> None:
    def call(command: str, us: int) -> dict[str, Any]:
        return {"command": command.encode(), "duration": us}

    assert told_slow([]) == "0 calls kept the store for over 10 ms; 0 is the aim"
    slow = [
        call("FCALL fairlane_0123456789abcdef_enqueue_many 1 x:config 0", 11_340),
        call("FCALL fairlane_fedcba9876543210_enqueue_many 1 y:config 0", 12_000),
        call("FLUSHDB", 20_000),
    ]
    told = told_slow(slow)
    assert told.endswith("the longest enqueue_many 12.0 ms, FLUSHDB 20.0 ms")


@pytest.mark.parametrize("option", ["--rounds", "--calls"])
def test_nothing_cannot_be_measured(option: str) -> None:
    done = CliRunner().invoke(cli, ["bench", option, "0"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "0 is not in the range x>=1" in done.stderr


def on_real_workers(*arguments: str, cache: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCH), "--quick", "--rounds", "1", "--cache", str(cache)]
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=110, check=False
    )


@pytest.mark.parametrize(
    ("names", "part", "tasks"),
    [
        (("throughput-celery", "throughput-fairlane"), "throughput", 60),
        (("fairlane", "celery", "celery-queues"), "fairness", 35),
        (("fairlane-aging", "fairlane-5000", "fairlane-known"), "fairness", 35),
        (("latency-celery", "latency-fairlane"), "latency", 5),
    ],
)
def test_every_task_runs_on_real_workers(
    names: tuple[str, ...], part: str, tasks: int, tmp_path: Path
) -> None:
    wanted = [word for name in names for word in ("--case", name)]
    done = on_real_workers(*wanted, "--json", cache=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert {"date", "command", "machine", "size", "parts"} == set(report)
    assert {"cores", "Python", "Valkey", "celery"} <= set(report["machine"])
    assert list(report["parts"]) == [part]
    rows = {row["case"]: row for row in report["parts"][part]}
    assert set(rows) == set(names)
    for name, row in rows.items():
        assert row["error"] == ""
        assert row["ran"] == tasks
        assert row["tasks_per_s"] > 0
        assert set(row["wait_ms"]) == (set() if part == "throughput" else {"p50", "p99", "max"})
        # Who did the work is told; only fairlane has a dispatcher.
        parts = {"server", "work"} | ({"dispatcher"} if "fairlane" in name else set())
        assert set(row["cpu_us"]) == parts


def test_a_peer_that_cannot_be_had_is_named(tmp_path: Path) -> None:
    # A file where the peer's environment would be made: nothing can be installed there.
    (tmp_path / "rq").touch()
    done = on_real_workers("--case", "rq", "--case", "celery", cache=tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = (line for line in done.stdout.splitlines() if line.startswith("| RQ"))
    assert "not measured: " in row
    assert "**quick: not for comparison**" in done.stdout.splitlines()
    assert any(line.startswith("| plain Celery") for line in done.stdout.splitlines())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--setting", "nosuch=3"), "nosuch: no such setting; `fairlane settings` lists them"),
        (("--setting", "policy"), "policy: write name=value"),
        (("--rounds", "0"), "0 is not in the range x>=1"),
    ],
)
def test_wrong_usage_is_told_before_anything_runs(
    arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    done = on_real_workers("--case", "fairlane", *arguments, cache=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in " ".join(done.stderr.replace("│", "").split())


def test_a_system_of_this_environment_that_fails_is_a_failure(tmp_path: Path) -> None:
    done = on_real_workers("--case", "fairlane", "--setting", "policy=none", cache=tmp_path)
    assert done.returncode != 0
    assert "policy" in done.stderr
