"""The command line against a store: data on standard output, talk beside it, honest exit codes."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fairlane import TaskType
from fairlane.cli import cli
from fairlane.verbs import Heartbeat
from support.processes import COMMAND, environment
from support.store import mac
from support.system import TEXT, System, running

WORKER = "far.example:42:nonce"
NO_LIMITS = "weight 1, site default\n"


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    """Give a system with two devices' tasks and the report of one worker."""
    with running() as system:
        for number in (1, 1, 2):
            system.do(mac(number))
        report = {"hostname": "far.example", "pid": "42", "nonce": "nonce", "cpu": "12.5"}
        report |= {"name": "far", "queues": TEXT}
        system.client.run(Heartbeat(WORKER, ["text"], 3, report=report))
        yield system


def run(environ: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the installed program: what it says where, and how it exits."""
    return subprocess.run(
        [*COMMAND, *arguments],
        env=environment(environ),
        capture_output=True,
        text=True,
        check=False,
    )


def shown(environ: Mapping[str, str], *arguments: str) -> str:
    """Return what a command shows, run in this process: much faster."""
    done = CliRunner(env=environ).invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def told(system: System, *arguments: str) -> Any:
    """Return what a command answers with --json."""
    return json.loads(shown(system.settings.environ(), *arguments, "--json"))


def test_stats_counts_what_waits_and_has_ended(system: System) -> None:
    stats = told(system, "stats")
    assert (stats["pending"], stats["leased"], stats["accepted"]) == (3, 0, 3)
    assert stats["overloaded"] is False


def test_lanes_shows_what_each_can_take(system: System) -> None:
    lanes = {lane["name"]: lane for lane in told(system, "lanes")}
    assert (lanes["text"]["pending"], lanes["text"]["slots"]) == (3, 3)
    assert (lanes["ocr"]["pending"], lanes["ocr"]["credits"]) == (0, 0)
    assert lanes["text"]["next_mac"] == mac(1)


def test_workers_shows_what_each_offers(system: System) -> None:
    (worker,) = told(system, "workers")
    assert (worker["worker_id"], worker["lanes"], worker["slots"]) == (WORKER, ["text"], 3)
    row = shown(system.settings.environ(), "workers").splitlines()[-2]
    assert [cell.strip() for cell in row.strip("│").split("│")][:6] == [
        "far", "far.example", "42", "sensitive.text", "text", "3",
    ]  # fmt: skip


def test_devices_shows_who_waits(system: System) -> None:
    devices = told(system, "devices")
    assert {device["mac"]: device["pending"] for device in devices} == {mac(1): 2, mac(2): 1}
    assert all(device["score"] >= 0 for device in devices)
    table = shown(system.settings.environ(), "devices")
    assert "text 2 (rank 0)" in table
    assert re.search(r"│ \d[\d,]*\.\d s +│", table)
    assert "only policy aging" in shown({}, "devices", "--help")


def test_configure_sets_what_it_names_and_tells_what_is_in_force(system: System) -> None:
    limited = ["--weight", "3", "--max-running", "2", "--rate", "0.5", "--site", "home"]
    assert told(system, "configure", mac(7), *limited) == {
        "weight": 3.0,
        "paused": False,
        "min_running": 0,
        "max_running": 2,
        "rate_per_s": 0.5,
        "site": "home",
    }
    environ = system.settings.environ()
    paused = shown(environ, "configure", "02-00-00-00-00-07", "--pause", "--rate", "0")
    assert paused == "weight 3, site home, paused max_running=2\n"
    lifted = ["--weight", "1", "--resume", "--max-running", "0", "--site", ""]
    assert shown(environ, "configure", mac(7), *lifted) == NO_LIMITS
    refused = run(environ, "configure", mac(7), "--weight", "0")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "weight: 0.0; send 0.001 to 1,000" in refused.stderr


def test_migrate_names_what_it_changed_and_a_second_time_nothing() -> None:
    with running() as system:
        environ = system.settings.environ() | {"FAIRLANE_MAX_ATTEMPTS": "5"}
        first, second = run(environ, "migrate"), run(environ, "migrate")
        assert (first.returncode, first.stdout) == (0, "max_attempts: 3 -> 5\n")
        assert (second.returncode, second.stdout) == (0, "")
        assert second.stderr == "nothing changed\n"


TWO = (
    '[{"name": "video", "lane": "video", "queue": "my.video"}, '
    '{"name": "x", "lane": "x", "queue": "x"}]'
)
VIDEO = '[{"name": "video", "lane": "video", "queue": "my.video"}]'


def stored(environ: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the value and the source of every setting that the store has."""
    rows = json.loads(shown(environ, "settings", "--store", "--json"))
    return {row["setting"]: (row["value"], row["source"]) for row in rows}


def test_migrate_leaves_what_the_environment_does_not_name() -> None:
    with running(batch_size=5, task_types=(TaskType("video", "video", "my.video"),)) as system:
        store = {"FAIRLANE_STORE_URL": system.settings.store_url}
        told = shown({**store, "FAIRLANE_SITES": "02:42=lab,3c:5a:b4=west"}, "migrate")
        assert told == "sites: none -> 02:42=lab, 3c:5a:b4=west\n"
        values = stored(store)
        assert values["batch_size"] == ("5", "the store")
        assert values["sites"] == ("02:42=lab,3c:5a:b4=west", "the store")
        assert values["max_attempts"] == ("3", "default")
        assert json.loads(values["task_types"][0])[0]["queue"] == "my.video"
        assert "store_url" not in values
        lanes = run({**store, "FAIRLANE_TASK_TYPES": TWO}, "migrate")
        assert "restart `fairlane up`, or the workers" in lanes.stderr
        assert run({**store, "FAIRLANE_TASK_TYPES": VIDEO}, "migrate").returncode == 0
        nothing = run(store, "migrate")
        assert "restart" not in nothing.stderr
        assert (nothing.returncode, nothing.stdout) == (0, "")
        assert "name what is to change" in nothing.stderr
        # A default that is named is a value like others.
        again = shown({**store, "FAIRLANE_BATCH_SIZE": "10"}, "migrate", "--json")
        assert json.loads(again) == {"batch_size": {"before": "5", "after": "10"}}
        assert shown(store, "migrate", "--all").splitlines() == [
            "task_types: video -> ocr, text",
            "sites: 02:42=lab, 3c:5a:b4=west -> none",
        ]


def test_a_preset_that_is_named_brings_its_values_and_leaves_others() -> None:
    with running(max_attempts=7) as system:
        store = {"FAIRLANE_STORE_URL": system.settings.store_url}
        there = shown({**store, "FAIRLANE_PRESET": "seed", "FAIRLANE_ORDER": "fifo"}, "migrate")
        lines = dict(line.split(": ", 1) for line in there.splitlines())
        assert lines["preset"] == "default -> seed"
        assert lines["policy"] == "fair -> aging"
        # The same names; what differs is told.
        assert '"lane": "main"' in lines["task_types"]
        assert not {"order", "max_attempts"} & set(lines)
        assert stored(store)["policy"] == ("aging", "preset seed")
        assert stored(store)["max_attempts"] == ("7", "the store")
        back = shown({**store, "FAIRLANE_PRESET": "default"}, "migrate")
        assert {line.split(": ")[0] for line in back.splitlines()} == set(lines)


def test_who_removes_a_lane_that_has_tasks_is_told_how_not_to(system: System) -> None:
    store = {"FAIRLANE_STORE_URL": system.settings.store_url, "FAIRLANE_TASK_TYPES": VIDEO}
    done = run(store, "migrate")
    assert (done.returncode, done.stdout) == (1, "")
    assert "text still has tasks; drain it first, or, if you did not mean" in done.stderr
    assert "ocr (lane ocr), text (lane text)" in done.stderr
    kinds = json.loads(stored(system.settings.environ())["task_types"][0])
    assert [kind["name"] for kind in kinds] == ["ocr", "text"]


def test_a_process_that_insists_on_another_setting_is_told_both_values(system: System) -> None:
    environ = system.settings.environ() | {"FAIRLANE_MAX_ATTEMPTS": "7"}
    done = run(environ, "stats")
    assert done.returncode == 1
    assert "7" in done.stderr
    assert "3" in done.stderr
    assert not done.stdout


def test_settings_tells_every_value_and_its_source() -> None:
    environ = {
        "FAIRLANE_PRESET": "seed",
        "FAIRLANE_MAX_ATTEMPTS": "5",
        "FAIRLANE_SITES": "02:42=lab",
    }
    rows = {row["setting"]: row for row in json.loads(shown(environ, "settings", "--json"))}
    assert (rows["policy"]["value"], rows["policy"]["source"]) == ("aging", "preset seed")
    assert rows["max_attempts"]["value"] == "5"
    assert rows["max_attempts"]["source"] == "FAIRLANE_MAX_ATTEMPTS"
    assert rows["lease_ms"]["source"] == "default"
    assert rows["sites"]["value"] == "02:42=lab"
    assert "02:42=lab" in shown(environ, "settings")
    assert all(row["about"] for row in rows.values())


@pytest.mark.parametrize(
    "url",
    [
        "redis://user:hunter2@host:6379/0",
        "redis://:hunter2@host:6379/0",
        "redis://host:6379/0?username=user&password=hunter2",
        "redis://host:6379/0?password=x@hunter2&health_check_interval=1",
    ],
)
def test_settings_shows_no_password(url: str) -> None:
    table = shown({"FAIRLANE_STORE_URL": url, "FAIRLANE_BROKER_URL": url}, "settings")
    assert "hunter2" not in table
    assert table.count("host:6379/0") == 2


@pytest.mark.parametrize(
    ("arguments", "environ", "status", "says"),
    [
        (["no-such-command"], {}, 2, "No such command"),
        (["stats", "--no-such-option"], {}, 2, "No such option"),
        (["stats"], {"FAIRLANE_POLICY": "random"}, 2, "policy: 'random' is none of fair, aging"),
        (["stats"], {"FAIRLANE_POLICI": "fair"}, 2, "FAIRLANE_POLICI: no such setting"),
        (
            ["stats"],
            {"FAIRLANE_TASK_TYPES": "resize"},
            2,
            "'resize' is no JSON list; write one, as [",
        ),
        (["stats"], {"FAIRLANE_TASK_TYPES": '{"name": "a"}'}, 2, "is no JSON list; write one"),
        (["stats"], {"FAIRLANE_STORE_URL": "unix://nowhere.sock"}, 69, "is it running"),
        (["up"], {"FAIRLANE_STORE_URL": "unix://nowhere.sock"}, 69, "is it running"),
    ],
)
def test_a_failure_is_one_line_with_an_exit_code_of_its_own(
    arguments: list[str], environ: dict[str, str], status: int, says: str, tmp_path: Path
) -> None:
    done = run(environ, *arguments)
    assert done.returncode == status
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


def test_no_dispatcher_runs_beside_the_documents_flow(tmp_path: Path) -> None:
    store = {"FAIRLANE_STORE_URL": f"embedded://{tmp_path}/store", "FAIRLANE_PRESET": "seed"}
    refused = run(store, "dispatcher")
    assert refused.returncode == 2
    assert "Beat dispatches" in refused.stderr


def test_who_looks_is_not_told_each_time_what_the_store_could_lose(store_url: str) -> None:
    store = {"FAIRLANE_STORE_URL": store_url}
    assert run(store, "stats").stderr == ""
    assert "appendonly is off" in run(store, "--verbose", "stats").stderr
