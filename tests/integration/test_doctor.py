"""`fairlane doctor`: what is not well is named with the next step, and mended if asked."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fairlane import Client, Settings, verbs
from fairlane.cli import cli
from fairlane.services import examination
from support.eventually import eventually_passes
from support.processes import COMMAND
from support.servers import Server
from support.store import mac
from support.system import DISPATCH, OCR, TEXT, System, running


@pytest.fixture
def system() -> Iterator[System]:
    with running() as system:
        yield system


@pytest.fixture
def environ(system: System) -> dict[str, str]:
    """Give the environment of the system."""
    return system.settings.environ()


def doctor(environ: dict[str, str], *arguments: str) -> Result:
    """Run the command in this process."""
    return CliRunner(env=environ).invoke(cli, ["doctor", *arguments])


def told(environ: dict[str, str], *arguments: str, status: int) -> dict[str, Any]:
    """Return what the command says with --json."""
    done = doctor(environ, "--json", *arguments)
    assert done.exit_code == status, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    found["by_name"] = {check["name"]: check for check in found["checks"]}
    return found


def test_a_system_without_workers(environ: dict[str, str]) -> None:
    found = told(environ, status=1)
    assert found["ready"], "it can accept tasks and keep them"
    assert found["by_name"]["consumers of text"]["found"] == "no consumer for lane text"
    assert found["by_name"]["invariants"]["verdict"] == "ok"
    assert found["by_name"]["accounts"]["verdict"] == "ok"
    table = doctor(environ).stdout
    for words in ("no consumer for lane text", "fairlane worker --queues sensitive.text", "warn"):
        assert words in table


def test_what_was_not_checked_is_told(system: System, environ: dict[str, str]) -> None:
    delayed = system.client.keys.name("DELAYED")
    system.redis.zadd(delayed, {f"t{at}": at for at in range(251)})
    found = told(environ, status=1)["by_name"]["invariants"]
    assert found["verdict"] == "fail", "they have no records"
    assert "; not checked: sums over 251 delayed tasks" in found["found"]


def test_what_is_wrong_in_the_store_is_named_mended_and_gone(
    system: System, environ: dict[str, str]
) -> None:
    ids = [system.do(mac(1)) for _ in range(3)]
    keys = system.client.keys
    system.redis.lrem(keys.device("QUEUE", mac(1), "text"), 1, ids[1])
    system.redis.incr(keys.name("GLOBAL_PENDING"))
    found = told(environ, status=1)
    assert found["by_name"]["invariants"]["verdict"] == "fail"
    assert "fairlane doctor --repair" in found["by_name"]["invariants"]["next_step"]
    assert {"who": "store", "what": "global_pending", "found": "4", "right": "3"} in found["flaws"]
    assert ids[1] in {flaw["who"] for flaw in found["flaws"]}
    table = doctor(environ).stdout
    assert "pending, in its queue" in table
    assert "global_pending" in table

    found = told(environ, "--repair", status=1)  # for the lanes have no workers
    assert found["by_name"]["invariants"]["verdict"] == "ok"
    assert "mended" in found["by_name"]["invariants"]["found"]
    assert found["repaired"]
    assert found["flaws"]
    system.check()
    assert told(environ, "--repair", status=1)["flaws"] == []


def test_an_accepted_task_that_is_nowhere_is_told(system: System, environ: dict[str, str]) -> None:
    task_id = system.do(mac(1))
    system.redis.delete(system.client.keys.task(task_id))
    told(environ, "--repair", status=1)
    accounts = told(environ, status=1)["by_name"]["accounts"]
    assert (accounts["verdict"], accounts["found"]) == (
        "warn",
        "of the accepted tasks, 1 is nowhere",
    )


def test_a_lost_store_is_told_until_somebody_takes_note(
    system: System, environ: dict[str, str]
) -> None:
    with Client(Settings(store_url=system.settings.store_url)) as client:
        client.check_epoch()
        system.redis.flushall()
        client.check_epoch()
    epoch = told(environ, status=1)["by_name"]["epoch"]
    assert epoch["verdict"] == "fail"
    assert "`fairlane doctor --acknowledge`" in epoch["next_step"]
    done = doctor(environ, "--acknowledge", "--json")
    assert "taken note" in done.stderr
    assert {c["name"]: c["verdict"] for c in json.loads(done.stdout)["checks"]}["epoch"] == "ok"
    assert "no loss" in doctor(environ, "--acknowledge").stderr


def test_all_is_well_beside_workers_a_dispatcher_and_beat(
    system: System, environ: dict[str, str]
) -> None:
    system.redis.config_set("appendonly", "yes")
    try:
        system.worker("worker", OCR, TEXT, app="fairlane.celery")
        system.start("dispatcher", *COMMAND, "dispatcher")
        system.beat()
        system.start("api", *COMMAND, "api", "--port=0")

        def is_well() -> None:
            found = told(environ, status=0)
            assert found["by_name"]["processes"]["found"] == (
                "1 api, 1 beat, 1 dispatcher, 1 worker, started alike"
            )
            assert found["verdict"] == "ok", found["checks"]

        eventually_passes(is_well, 60.0)
        task_id = system.client.enqueue(mac(1), "text", {"text": "call 138-1234-5678"}).task_id
        system.ended([task_id])
        assert told(environ, "--repair", status=0)["flaws"] == []
    finally:
        for program in system.programs:
            program.end()
        system.programs.clear()
        system.redis.config_set("appendonly", "no")


def test_a_store_that_is_away_is_one_line() -> None:
    environ = {"FAIRLANE_STORE_URL": "redis://worker:secret@127.0.0.1:1/0"}
    done = CliRunner(env=environ).invoke(cli, ["doctor"])
    assert type(done.exception).__name__ == "StoreUnavailable"
    assert done.stdout == ""
    found = CliRunner(env=environ).invoke(cli, ["doctor", "--json"])
    report = json.loads(found.stdout)
    assert [check["name"] for check in report["checks"]] == ["connection"]
    assert not report["ready"]
    assert "secret" not in found.output


def test_settings_that_disagree_do_not_keep_it_from_looking(
    system: System, environ: dict[str, str]
) -> None:
    system.do(mac(1))
    system.redis.incr(system.client.keys.name("GLOBAL_PENDING"))
    found = told({**environ, "FAIRLANE_BATCH_SIZE": "7"}, status=1)
    assert found["by_name"]["settings"]["verdict"] == "fail"
    assert not found["ready"]
    assert [flaw["what"] for flaw in found["flaws"]] == ["global_pending"]


def test_a_long_walk_shows_how_far_it_is(
    system: System, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The package names the command as the module is called.
    monkeypatch.setattr(sys.modules["fairlane.cli.doctor"], "_BAR_AFTER_S", 0.0)
    for number in range(5):
        system.do(mac(number))
    assert doctor(environ).stderr == "", "a log file gets no bar"
    done = doctor({**environ, "FORCE_COLOR": "1"})
    assert "deadlines" in done.stderr
    assert "devices" in done.stderr


def test_progress_tells_every_part(system: System, environ: dict[str, str]) -> None:
    for number in range(5):
        system.do(mac(number))
    parts: dict[str, tuple[int, int]] = {}
    found = examination.examine(
        system.client, progress=lambda what, done, of: parts.update({what: (done, of)})
    )
    assert parts["deadlines"] == parts["devices"] == (5, 5)
    assert parts["sums"] == (1, 1)
    assert found.devices == 5
    assert environ


@pytest.mark.parametrize("role", ["worker", "dispatcher"])
def test_only_who_dispatches_is_missed(system: System, environ: dict[str, str], role: str) -> None:
    system.client.run(verbs.Heartbeat("host:1:a", ["ocr", "text"], 2))
    if role == "dispatcher":
        system.client.run(verbs.Lead("host:2:b"))
    found = told(environ, status=0 if role == "dispatcher" else 1)
    assert found["by_name"]["dispatcher"]["verdict"] == ("ok" if role == "dispatcher" else "fail")


def test_the_seed_flow_needs_beat_and_a_worker_for_it(server: Server) -> None:
    server.empty()
    settings = Settings(store_url=server.url, preset="seed")
    found = told(settings.environ(), status=1)
    assert found["by_name"]["beat"]["verdict"] == "fail"
    assert DISPATCH in found["by_name"]["dispatcher"]["next_step"]
    assert found["by_name"]["invariants"]["verdict"] == "ok"
    server.empty()
