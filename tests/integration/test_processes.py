"""Processes tell of themselves; one that was started otherwise than the others does not start."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from fairlane import Client, Settings, TaskType
from fairlane.services.readiness import Verdict, readiness
from fairlane.verbs import InspectProcesses
from support.eventually import eventually, eventually_passes
from support.processes import COMMAND, Program
from support.store import mac
from support.system import DISPATCH, FAIRLANE, TEXT, System, running

LEASE_MS = 3_000
TYPES = (TaskType("text", "text", TEXT),)


@pytest.fixture
def system() -> Iterator[System]:
    with running(task_types=TYPES, lease_ms=LEASE_MS, heartbeat_every_ms=500) as system:
        yield system


def roles(system: System) -> list[str]:
    """Return what the processes that live are."""
    return sorted(one.role for one in system.client.run(InspectProcesses()).living)


def shown(system: System, name: str) -> tuple[Verdict, str]:
    check = readiness(system.client).check(name)
    assert check is not None
    return check.verdict, check.found


def celery(system: System, name: str, *arguments: str, **environ: str) -> Program:
    """Start Celery's own command."""
    command = (sys.executable, "-m", "celery", "-A", FAIRLANE, *arguments)
    return system.start(name, *command, **environ)


def test_every_process_tells_what_it_is(system: System) -> None:
    assert shown(system, "beat")[0] is Verdict.WARN
    assert shown(system, "dispatcher")[0] is Verdict.FAIL
    system.worker("worker", TEXT)
    system.start("dispatcher", *COMMAND, "dispatcher")
    beat = system.beat()
    system.explained(lambda: roles(system) == ["beat", "dispatcher", "worker"], 30.0)
    living = system.client.run(InspectProcesses()).living
    assert {one.digest for one in living} == {system.client.digest}
    assert {one.report["broker"] for one in living} == {"the store, database 1"}
    eventually(lambda: shown(system, "dispatcher")[0] is Verdict.OK)
    assert shown(system, "beat")[0] is Verdict.OK
    assert shown(system, "processes") == (
        Verdict.OK,
        "1 beat, 1 dispatcher, 1 worker, started alike",
    )
    beat.stop()
    assert roles(system) == ["dispatcher", "worker"], "who is told to stop is gone at once"
    for program in system.programs[:2]:
        program.kill()
    eventually(lambda: roles(system) == [], LEASE_MS / 1000 + 10)
    assert readiness(system.client).is_ready


OTHER = "redis+socket:///nowhere/else.sock?virtual_host=5"
STARTS = {
    "fairlane dispatcher": [*COMMAND, "dispatcher"],
    "fairlane beat": [*COMMAND, "beat"],
    "fairlane worker": [*COMMAND, "worker", f"--queues={TEXT}"],
    "celery beat": [sys.executable, "-m", "celery", "-A", FAIRLANE, "beat", "--pidfile="],
    "celery worker": [sys.executable, "-m", "celery", "-A", FAIRLANE, "worker", f"-Q{TEXT}", "-c1"],
}  # fmt: skip


def test_a_broker_that_is_another_one_keeps_a_process_from_starting(system: System) -> None:
    """A24: settings that decide who sees a message disagree: the start is refused, both named."""
    system.worker("worker", TEXT)
    names = {"FAIRLANE_BROKER_URL": OTHER}
    programs = {
        name: system.start(name.replace(" ", "-"), *command, **names)
        for name, command in STARTS.items()
    }
    for name, program in programs.items():
        assert program.wait(40.0) == 1, name
        said = program.output()
        assert "broker: this process says unix:/nowhere/else.sock/5, worker " in said, said
        assert " says the store, database 1; give both the same" in said, said
        assert "Traceback" not in said, said
    assert roles(system) == ["worker"]


def test_another_visibility_timeout_keeps_a_process_from_starting(system: System) -> None:
    """A24: how long a broker keeps what was not acked must be the same for all."""
    system.worker("worker", TEXT)
    module = system.folder / "impatient.py"
    module.write_text(
        "from fairlane.celery import make_app\n"
        "app = make_app()\n"
        "app.conf.broker_transport_options['visibility_timeout'] = 60\n"
    )
    for role in ("worker", "beat"):
        command = (sys.executable, "-m", "celery", "-A", "impatient", role)
        program = system.start(f"impatient-{role}", *command)
        assert program.wait(40.0) == 1
        assert "visibility_timeout: this process says 60, worker " in program.output()
        assert " says 3600; give both the same" in program.output()


def test_settings_of_the_store_that_disagree_keep_a_process_from_starting(system: System) -> None:
    """A24: shared settings (leases, limits, queues) are agreed with the store, which names both."""
    for command in (STARTS["fairlane worker"], STARTS["fairlane dispatcher"]):
        program = system.start("other", *command, FAIRLANE_LEASE_MS="9000")
        assert program.wait(40.0) == 1
        assert "this process says 9000, the store says 3000" in program.output()


@pytest.mark.parametrize(("command", "status"), [("worker", 0), ("dispatcher", 1)])
def test_a_process_that_insists_on_what_was_migrated_ends(
    system: System, command: str, status: int
) -> None:
    """It would take tasks and could do nothing with them, and told so once a second."""
    if command == "worker":
        program = system.worker("old", TEXT, DISPATCH)
    else:
        program = system.start("old", *COMMAND, "dispatcher")
        eventually(lambda: "dispatcher" in roles(system), 30.0)
    with Client(Settings(store_url=system.settings.store_url)) as operator:
        operator.ping()
        operator.migrate(replace(operator.settings, lease_ms=2 * LEASE_MS))
    assert program.wait(40.0) == status
    assert "this process says 3000, the store says 6000; change one" in program.output()
    assert "Traceback" not in program.output()


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL, signal.SIGTERM])
def test_a_lane_whose_only_worker_stops(system: System, number: signal.Signals) -> None:
    """A49: it is shown lost within its TTL (30 s by default), and the lane has no consumer."""
    worker = system.worker("worker", TEXT, DISPATCH)
    assert shown(system, "consumers of text")[0] is Verdict.OK
    task_id = system.do(mac(1))
    system.ended([task_id])
    worker.send(number)

    def is_told() -> None:
        assert not system.workers()
        verdict, found = shown(system, "consumers of text")
        assert (verdict, found) == (Verdict.FAIL, "no consumer for lane text")

    eventually_passes(is_told, LEASE_MS / 1000 + 10)
    assert type(system.settings)().lease_ms == 30_000
