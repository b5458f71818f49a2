"""Tasks from the command line: sent, searched, explained, cancelled, brought back, deleted."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
import redis
from click.testing import CliRunner, Result

from fairlane import Client, Settings, verbs
from fairlane.cli import cli
from fairlane.cli.duration import Duration
from fairlane.cli.output import short
from support.eventually import eventually
from support.processes import COMMAND, environment
from support.store import mac

ROOT = Path(__file__).parents[2]


class Shell:
    """The commands, on a store."""

    def __init__(self, url: str) -> None:
        self.settings = Settings(store_url=url, max_attempts=1)
        self.client = Client(self.settings)
        self.environ = self.settings.environ()

    def run(self, *arguments: str, stdin: str | None = None) -> Result:
        return CliRunner(env=self.environ).invoke(cli, arguments, input=stdin)

    def told(self, *arguments: str) -> Any:
        done = self.run(*arguments, "--json")
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    def bury(self, device: int, cause: str = "boom") -> str:
        task_id = self.client.enqueue(mac(device), "text", {"of": device}).task_id
        (leased,) = self.client.run(verbs.Claim("text", 1)).leased
        self.client.run(verbs.Start(task_id, leased.attempt, "worker", "run"))
        self.client.run(verbs.Fail(task_id, leased.attempt, cause, "Traceback: boom"))
        return task_id


@pytest.fixture
def shell(store_url: str) -> Iterator[Shell]:
    shell = Shell(store_url)
    yield shell
    shell.client.close()


def test_a_task_is_sent_and_read(shell: Shell) -> None:
    sent = shell.run("enqueue", "AA-BB-CC-00-11-22", "text", '{"text": "你好"}', "--task-id", "one")
    assert (sent.exit_code, sent.stdout) == (0, "one\n")
    task = shell.told("task", "one")
    assert (task["state"], task["mac"], task["data"]) == (
        "pending",
        "aa:bb:cc:00:11:22",
        {"text": "你好"},
    )
    assert [each["event"] for each in task["timeline"]] == ["accepted"]
    assert "你好" in shell.run("task", "one").stdout
    again = shell.run("enqueue", "aa:bb:cc:00:11:22", "text", "-", "--task-id", "one", "--json",
                      stdin='{"text": "你好"}')  # fmt: skip
    assert json.loads(again.stdout)["verdict"] == "known"


def test_a_file_is_sent_a_verdict_a_line(shell: Shell, tmp_path: Path) -> None:
    lines = [
        {"mac": mac(1), "task_type": "text", "data": {"n": n}, "ttl_seconds": 60}
        for n in range(205)
    ]
    file = tmp_path / "tasks.ndjson"
    file.write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    done = shell.run("enqueue", "--file", str(file), "--json")
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.exit_code == 1
    assert [verdict["verdict"] for verdict in verdicts] == ["accepted"] * 200 + ["refused"] * 5
    assert verdicts[-1]["reason"] == "device_full"
    assert "200 accepted, 0 known, 5 refused, 0 failed (device_full 5)" in done.stderr
    task = shell.client.task(verdicts[0]["task_id"])
    assert task.expires_at_ms - task.created_at_ms == 60_000
    piped = shell.run(
        "enqueue", "--file", "-", stdin=json.dumps({"mac": mac(2), "task_type": "text"})
    )
    assert (piped.exit_code, piped.stdout) == (0, "1 accepted, 0 known, 0 refused, 0 failed\n")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "line 2: it is no JSON"),
        ("[]", "line 2: it is no JSON object"),
        ('{"mac": "02:00:00:00:00:01"}', "line 2: it lacks task_type"),
        ('{"mac": "zz", "task_type": "text"}', "line 2: mac:"),
        ('{"mac": "02:00:00:00:00:01", "task_type": "speech"}', "line 2: task_type:"),
        ('{"mac": "02:00:00:00:00:01", "task_type": "text", "colour": 1}', "line 2: colour:"),
    ],
)
def test_a_bad_line_is_named_and_nothing_of_its_batch_is_sent(
    shell: Shell, line: str, says: str
) -> None:
    good = json.dumps({"mac": mac(1), "task_type": "text"})
    done = shell.run("enqueue", "--file", "-", stdin=f"{good}\n{line}\n")
    assert says in str(done.exception)
    assert shell.client.run(verbs.InspectTotals()).pending == 0


def test_of_a_file_with_a_bad_line_nothing_is_sent(shell: Shell, tmp_path: Path) -> None:
    good = json.dumps({"mac": mac(1), "task_type": "text"})
    file = tmp_path / "tasks.ndjson"
    file.write_text(f"{good}\n" * 1_500 + '{"mac": "zz", "task_type": "text"}\n')
    done = shell.run("enqueue", "--file", str(file))
    assert "line 1501: mac:" in str(done.exception)
    assert "nothing was sent" in str(done.exception)
    assert shell.client.run(verbs.InspectTotals()).counts.get("accepted", 0) == 0


def test_of_a_stream_it_is_told_what_was_sent_before_a_bad_line(shell: Shell) -> None:
    good = json.dumps({"mac": mac(1), "task_type": "text"})
    command = f"(yes '{good}' | head -n 1500; echo nonsense) | {' '.join(COMMAND)} enqueue --file -"
    done = subprocess.run(
        ["bash", "-c", command],
        env=environment(shell.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "line 1501: it is no JSON" in done.stderr
    assert "sent before: 200 accepted, 0 known, 800 refused, 0 failed" in done.stderr
    assert shell.client.run(verbs.InspectTotals()).pending == 200


def test_tasks_are_searched(shell: Shell) -> None:
    shell.bury(2)
    shell.client.enqueue(mac(1), "text", {}, task_id="first")
    (found,) = shell.told("tasks", "fir")["tasks"]
    assert (found["task_id"], found["state"]) == ("first", "pending")
    assert shell.told("tasks", "--state", "dead")["tasks"][0]["cause"] == "boom"
    assert len(shell.told("tasks", "--newer", "1h")["tasks"]) == 2
    assert shell.told("tasks", "--older", "1h") == {"tasks": [], "looked": 2, "finished": True} or (
        shell.told("tasks", "--older", "1h")["tasks"] == []
    )
    table = shell.run("tasks", "--mac", "0200.0000.0001")
    assert "first" in table.stdout
    assert shell.run("tasks", "--limit", "1").stderr.startswith("there may be more")
    nothing = shell.run("tasks", "nothing-such")
    assert (nothing.exit_code, nothing.stdout, nothing.stderr) == (0, "", "no such task\n")


def test_a_task_explains_itself(shell: Shell) -> None:
    dead = shell.bury(2)
    shell.client.enqueue(mac(1), "text", {}, task_id="one")
    assert shell.told("explain", "one")["reason"] == "no_worker"
    table = shell.run("explain", "one").stdout
    assert "no worker offers a slot in lane text" in table
    shell.client.run(verbs.Heartbeat("host:1:a", ["text"], 1))
    table = shell.run("explain", "one").stdout
    assert "nine times in ten within" in table
    assert "its own is next" in table
    assert f"fairlane dead redrive {dead}" in shell.run("explain", dead).stdout


def test_tasks_are_cancelled(shell: Shell) -> None:
    shell.client.enqueue(mac(1), "text", {}, task_id="one")
    assert shell.told("cancel", "one") == [{"task_id": "one", "state": "cancelled"}]
    several = shell.run("cancel", "one", "none", "--json")
    assert several.exit_code == 1
    assert [row.get("code", "") for row in json.loads(several.stdout)] == ["", "TASK_NOT_FOUND"]


def test_many_tasks_are_cancelled_by_a_filter(shell: Shell) -> None:
    for at in range(7):
        shell.client.enqueue(mac(at % 2), ("text", "ocr")[at == 0], {}, task_id=f"t{at}")
    (leased,) = shell.client.run(verbs.Claim("ocr", 1)).leased
    shell.client.run(verbs.Start("t0", leased.attempt, "worker", "run"))
    dry = shell.told("cancel", "--device", mac(1), "--dry-run")
    assert dry == {"matched": 3, "done": 0, "dry_run": True}
    for unsaid in ([], ["t1", "--mac", mac(1)], ["--all", "--mac", mac(1)], ["t1", "--dry-run"]):
        assert shell.run("cancel", *unsaid).exit_code == 2
    unasked = shell.run("cancel", "--all")
    assert (unasked.exit_code, "cancel 6 tasks? Say --yes" in unasked.stderr) == (2, True)
    assert shell.run("cancel", "--mac", "0200.0000.0001", "--yes").stdout == "3 of 3 cancelled\n"
    assert [shell.client.device(mac(at)).pending for at in (0, 1)] == [3, 0]
    forced = shell.run("cancel", "--lane", "ocr", "--state", "running", "--yes")
    assert (forced.exit_code, "--force" in forced.stderr) == (2, True)
    assert (
        shell.told("cancel", "--state", "running", "--lane", "ocr", "--force", "--yes")["done"] == 1
    )
    assert shell.told("cancel", "--all", "--yes") == {"matched": 3, "done": 3, "dry_run": False}
    ended = shell.run("cancel", "--state", "done", "--yes")
    assert "cancel pending, delayed, leased, running" in str(ended.exception)


def test_dead_letters_by_filter(shell: Shell) -> None:
    one, other = shell.bury(1, "boom"), shell.bury(2, "crash")
    assert [row["task_id"] for row in shell.told("dead", "list")] == [other, one]
    assert [row["task_id"] for row in shell.told("dead", "list", "--cause", "boom")] == [one]
    assert shell.told("dead", "list", "--older", "1h") == []
    assert shell.told("dead", "list", "--by-cause") == {"crash": 1, "boom": 1}
    dry = shell.told("dead", "redrive", "--mac", "0200.0000.0002", "--dry-run")
    assert dry == {"matched": 1, "done": 0, "dry_run": True}
    unsaid = shell.run("dead", "drop")
    assert (unsaid.exit_code, "or --all" in unsaid.stderr) == (2, True)
    unasked = shell.run("dead", "drop", "--all")
    assert (unasked.exit_code, "--yes" in unasked.stderr) == (2, True)
    assert shell.told("dead", "redrive", "--cause", "crash", "--yes")["done"] == 1
    assert shell.client.task(other).state == "pending"
    assert shell.run("dead", "drop", one).stdout == "1 of 1 dropped\n"
    again = shell.run("dead", "drop", one, "nope")
    assert (again.exit_code, again.stdout) == (1, "0 of 2 dropped\n")
    assert again.stderr == f"no dead letters, or none any more: {one}, nope\n"
    none = shell.run("dead", "redrive", "--cause", "boom")
    assert (none.exit_code, "dead list --by-cause" in none.stderr) == (0, True)
    assert shell.told("dead", "list") == []


def test_a_letter_behind_a_record_that_is_gone_is_listed_once(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["fairlane.cli.dead"], "_AT_ONCE", 2)
    first, gone, last = (shell.bury(device) for device in (1, 2, 3))
    with redis.Redis.from_url(shell.settings.store_url) as raw:
        raw.delete(shell.client.keys.task(gone))
    assert [row["task_id"] for row in shell.told("dead", "list")] == [last, first]


def test_250_dead_letters_are_redriven_at_once(shell: Shell) -> None:
    for number in range(250):
        shell.bury(number)
    assert shell.told("dead", "redrive", "--all", "--yes") == {
        "matched": 250, "done": 250, "dry_run": False,
    }  # fmt: skip
    assert shell.client.run(verbs.InspectTotals()).dead_letters == 0


def test_the_history_is_told(shell: Shell) -> None:
    assert shell.told("history") == []
    assert "no minute is recorded yet" in shell.run("history").stderr
    assert shell.run("history", "--minutes", "2000").exit_code == 2


@contextmanager
def watching(shell: Shell, *arguments: str) -> Iterator[IO[str]]:
    """Give what a command prints that goes on until it is stopped."""
    program = subprocess.Popen(
        [*COMMAND, *arguments, "--watch"],
        env=environment(shell.environ),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    with program, program.stdout as lines:
        try:
            yield lines
        finally:
            program.kill()


def test_what_is_watched_is_a_line_of_json_each(shell: Shell) -> None:
    with watching(shell, "stats") as lines:
        assert [json.loads(lines.readline())["pending"] for _ in range(2)] == [0, 0]
    with watching(shell, "tasks") as lines:

        def is_told() -> bool:
            # It begins when it has joined: what comes after is told.
            shell.client.enqueue(mac(1), "text", {})
            return bool(select.select([lines], [], [], 1.0)[0])

        eventually(is_told)
        assert json.loads(lines.readline())["event"] == "accepted"


@pytest.mark.parametrize(
    "which",
    [["--type", "ocr"], ["--lane", "ocr"], ["--cause", "boom"], ["--mac", "0200.0000.0009"]],
    ids=lambda which: which[0],
)
def test_only_what_is_asked_for_is_watched(shell: Shell, which: list[str]) -> None:
    with watching(shell, "tasks", *which) as lines:

        def is_told() -> bool:
            if "--cause" in which:
                shell.bury(2)
            else:
                shell.client.enqueue(mac(1), "text", {})
                shell.client.cancel(shell.client.enqueue(mac(9), "ocr", {}).task_id)
            return bool(select.select([lines], [], [], 1.0)[0])

        eventually(is_told)
        told = json.loads(lines.readline())
        if "--cause" in which:
            assert (told["event"], told["detail"]) == ("dead", "boom")
        else:
            assert (told["mac"], told["lane"]) == (mac(9), "ocr")


def test_what_is_watched_has_no_past(shell: Shell) -> None:
    refused = shell.run("tasks", "--watch", "--newer", "1h")
    assert (refused.exit_code, "from now on" in refused.stderr) == (2, True)


def test_help_is_in_groups_and_a_cut_error_says_so(shell: Shell) -> None:
    assert "Look at it" in shell.run("--help").stdout
    for command in (["tasks"], ["cancel"], ["dead", "redrive"]):
        assert "Which" in shell.run(*command, "--help").stdout
    assert short("a\nb" * 40) == "b"
    assert short("x" * 60) == "x" * 60
    assert short("x" * 61) == "x" * 59 + "…"


def test_who_looks_makes_no_store(tmp_path: Path) -> None:
    for arguments in (
        ["stats"],
        ["lanes"],
        ["tasks"],
        ["enqueue", mac(1), "text"],
        ["dead", "list"],
        ["doctor"],
    ):
        done = subprocess.run(
            [*COMMAND, *arguments],
            env=environment({"FAIRLANE_DATA_DIR": str(tmp_path / ".fairlane")}),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 69, done.stderr
        assert "there is none in" in done.stderr
        assert "`fairlane up`" in done.stderr
        assert done.stdout == ""
    assert not (tmp_path / ".fairlane").exists()


def test_completion_for_every_shell(shell: Shell) -> None:
    for name in ("bash", "zsh", "fish"):
        done = shell.run("completion", name)
        assert done.exit_code == 0
        assert "_FAIRLANE_COMPLETE" in done.stdout
    completed = subprocess.run(
        COMMAND,
        env=environment(
            {"_FAIRLANE_COMPLETE": "bash_complete", "COMP_WORDS": "fairlane exp", "COMP_CWORD": "1"}
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "explain" in completed.stdout


def test_within_celery_by_its_own_command(shell: Shell, tmp_path: Path) -> None:
    shell.client.enqueue(mac(1), "text", {}, task_id="one")
    # As an installation has it, whatever is installed here.
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (point,) = declared["entry-points"]["celery.commands"].items()
    info = tmp_path / "declared-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: declared\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[celery.commands]\n{' = '.join(point)}\n")
    environ = environment(shell.environ)
    environ["PYTHONPATH"] = f"{tmp_path}:{environ.get('PYTHONPATH', '')}"
    celery = [sys.executable, "-m", "celery", "-A", "fairlane.celery", "fairlane"]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*celery, *arguments], env=environ, capture_output=True, text=True, check=False
        )

    done = run("task", "one", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] == "pending"
    unknown = run("task", "none")
    assert (unknown.returncode, "error: " in unknown.stderr) == (1, True)
    assert "Traceback" not in unknown.stderr


@pytest.mark.parametrize(("text", "ms"), [("90s", 90_000), ("30m", 1_800_000), ("12h", 43_200_000)])
def test_durations(text: str, ms: int) -> None:
    assert Duration().convert(text, None, None) == ms
