"""`fairlane simulate`: the same seed tells the same, and a bad file is told where it is bad."""

from __future__ import annotations

import json
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fairlane.cli import cli
from fairlane.sim.report import measure
from fairlane.sim.simulation import POLICIES, simulate
from fairlane.sim.workload import Arrival, mac_of
from fairlane.sim.workloads import KNOWN, workload
from support.eventually import eventually
from support.processes import COMMAND, Program, environment

SMALL = ("flood", "--devices", "20", "--tasks", "200", "--slots", "4")


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "simulate", *arguments],
        env=environment(environ),
        capture_output=True,
        text=True,
        check=False,
    )


def told(*arguments: str) -> Any:
    done = CliRunner().invoke(cli, ["simulate", *arguments, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_the_same_seed_tells_the_same_bytes_in_any_process() -> None:
    arguments = (*SMALL, "--policy", "fair", "--policy", "aging", "--seed", "3", "--json")
    one = run(*arguments, PYTHONHASHSEED="1")
    other = run(*arguments, PYTHONHASHSEED="2")
    assert (one.returncode, one.stderr) == (0, "")
    assert one.stdout == other.stdout
    assert run(*SMALL, "--seed", "4", "--json").stdout != one.stdout


def test_policies_stand_side_by_side_and_fair_ones_serve_the_light_first() -> None:
    report = told(*SMALL, *(word for policy in POLICIES for word in ("--policy", policy)))
    light = {row["policy"]: row["groups"][1] for row in report["reports"]}
    assert list(light) == list(POLICIES)
    assert all(row["done"] == 200 for row in report["reports"])
    for fair in ("fair", "rr"):
        for unfair in ("aging", "fifo"):
            assert light[fair]["wait_p99_ms"] < light[unfair]["wait_p50_ms"]


def test_a_table_for_people_and_a_page(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = run(*SMALL, "--policy", "fair", "--html", str(page))
    assert done.returncode == 0, done.stderr
    assert "│ fair   │ light" in done.stdout
    assert "200 done" in done.stdout
    assert "jain: 1 is perfectly fair" in done.stdout
    assert done.stderr == f"plots: {page}\n"
    assert page.read_text("utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_every_workload_runs_on_the_real_scripts(name: str) -> None:
    made = workload(name, devices=12, tasks=120, slots=2)
    report = measure(made, "fair", simulate(made, "fair"))
    assert (report.refused, report.expired, report.dead) == (0, 0, 0)
    assert report.done > 0
    if made.until_ms is None:
        assert report.done == report.tasks == 120


@pytest.mark.parametrize("policy", ["fair", "aging"])
def test_how_much_goes_in_one_round_trip_changes_nothing(policy: str) -> None:
    made = workload("flood", devices=20, tasks=200, slots=3)
    whole = simulate(made, policy)
    # A task of a millisecond makes every window a millisecond long; it comes when all is over.
    late = Arrival(10**6, mac_of(1), "text", 1)
    narrow = simulate(replace(made, arrivals=[*made.arrivals, late]), policy)
    assert list(narrow.ended_ms)[:-1] == list(whole.ended_ms)


def test_a_limit_of_the_store_refuses_in_a_simulation_too() -> None:
    made = replace(workload("flood", devices=10, tasks=200), settings={"max_per_mac_pending": 50})
    record = simulate(made, "fair")
    assert (record.refused, record.done) == (2 * 46, 108)


def test_a_traffic_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    rows = [f"gateway-{at % 3},{at / 10},0.5,ocr" for at in range(60)]
    path.write_text("tenant,arrival_s,service_s,kind\n" + "\n".join(rows), "utf-8")
    report = told("--csv", str(path), "--slots", "2", "--policy", "fair", "--speed", "2")
    assert (report["workload"], report["slots"]) == ("mine.csv", {"ocr": 2})
    assert report["reports"][0]["done"] == 60
    still = run("--csv", str(path), "--speed", "0")
    assert (still.returncode, still.stdout) == (2, "")
    assert still.stderr.startswith("error: speed: 0.0; give a number above 0")
    path.write_text("tenant,arrival_s,service_s,kind\na,0,1,text\na,x,1,text\n", "utf-8")
    done = run("--csv", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {path}:3: column arrival_s: 'x'; write seconds")


def test_the_list_names_workloads_and_policies() -> None:
    listed = told("--list")
    assert {"flood", "servegen-mixed"} <= set(listed["workloads"])
    assert list(listed["policies"]) == list(POLICIES)
    shown = CliRunner().invoke(cli, ["simulate", "--list"])
    assert all(name in shown.stdout for name in (*listed["workloads"], *POLICIES))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name a WORKLOAD"),
        (("flood", "--csv", __file__), "not both"),
        (("--csv", __file__, "--tasks", "5"), "--devices and --tasks are the file's"),
        (("nothing",), "'nothing' is unknown; `fairlane simulate --list` has all"),
        (("flod",), "'flod' is unknown; `fairlane simulate --list` has all. Did you mean flood?"),
        (("flood", "--devices", "20", "--tasks", "20"), "or fewer devices"),
        (("flood", "--policy", "lottery"), "'lottery' is not one of"),
        (("flood", "--html", "no/such/folder/page.html"), "no/such/folder is no folder"),
    ],
)
def test_wrong_usage_is_told(arguments: tuple[str, ...], said: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in " ".join(done.stderr.replace("│", "").split())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whatever_stops_it_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    log, temporary = tmp_path / "log", tmp_path / "tmp"
    temporary.mkdir()
    command = [*COMMAND, "simulate", "flood", "--policy", "fair", "--tasks", "100000"]
    with Program(command, log, {"TMPDIR": str(temporary)}) as program:
        eventually(lambda: any(temporary.glob("*/valkey.pid")))
        program.send(number)
        eventually(lambda: not any(temporary.iterdir()))
        eventually(lambda: "stopped; nothing was left behind" in program.output())
