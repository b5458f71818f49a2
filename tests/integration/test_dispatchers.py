"""Dispatchers: one leads, another takes over, and nothing goes out that nobody can take."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import replace

import pytest

from fairlane import TaskType
from fairlane.embedded import Embedded
from fairlane.model import TERMINAL, Lane, TaskState
from fairlane.services.dispatcher import Dispatcher
from fairlane.tasktype import DEFAULT_TASK_TYPES
from fairlane.verbs import InspectLanes
from support.eventually import eventually
from support.processes import COMMAND, Program
from support.store import mac
from support.system import TEXT, System, running

TYPES = (TaskType("text", "text", TEXT),)


def dispatcher(system: System, name: str) -> Program:
    """Start a dispatcher of its own."""
    return system.start(name, *COMMAND, "-v", "dispatcher")


def lanes(system: System) -> tuple[Lane, ...]:
    """Return the lanes that the store has now."""
    return system.client.run(InspectLanes())


def leader(system: System) -> int:
    """Return the process id of the dispatcher that leads, 0 without one."""
    holder: str | None = system.redis.get(system.client.keys.name("LEADER"))
    return int(holder.split(":")[1]) if holder else 0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """Give a broker apart from the store, which can be stopped and started again."""
    with Embedded(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture(scope="module")
def system(broker: Embedded) -> Iterator[System]:
    with running(
        task_types=TYPES, broker_url=broker.celery_url, lease_ms=4_000, heartbeat_every_ms=1_000,
        sweep_every_ms=500,
    ) as system:  # fmt: skip
        yield system


def test_tasks_wait_without_workers_and_the_first_heartbeat_wakes_them(system: System) -> None:
    first, second = dispatcher(system, "first"), dispatcher(system, "second")
    eventually(lambda: leader(system) in (first.pid, second.pid))
    waiting = [system.do(mac(number)) for number in range(5)]
    assert system.lane().credits == 0
    assert {record.state for record in system.records(waiting)} == {TaskState.PENDING}
    assert not system.events("claimed")

    system.worker("worker", TEXT)
    offered_ms = system.events("worker")[0].at_ms
    assert {record.state for record in system.ended(waiting)} == {TaskState.DONE}
    assert system.events("claimed")[0].at_ms - offered_ms < 1_000


def test_no_more_is_leased_than_slots_and_what_they_end_within_the_target_delay(
    system: System,
) -> None:
    seen = []
    with system.gated([mac(1)]):
        flood = [system.do(mac(number % 3)) for number in range(300)]

        def is_over() -> bool:
            lane = system.lane()
            seen.append((lane.leased, lane.slots + 2 * lane.slots))
            return all(record.state in TERMINAL for record in system.records(flood))

        system.explained(is_over, 30.0)
    assert all(leased <= most for leased, most in seen), seen
    assert max(leased for leased, _ in seen) > 1
    system.at_rest()


def test_a_leader_that_is_killed_is_followed_within_its_lease(system: System) -> None:
    dispatchers = {program.pid: program for program in system.programs}
    before = leader(system)
    dispatchers[before].kill()
    task_id = system.do(mac(1))
    (record,) = system.ended([task_id], 30.0)
    assert record.state is TaskState.DONE
    assert leader(system) not in (0, before)


def test_a_leader_that_stops_gives_up_its_lead(system: System) -> None:
    stopped = next(program for program in system.programs if program.pid == leader(system))
    stopped.send(signal.SIGTERM)
    assert stopped.wait() == 0
    assert leader(system) == 0


def test_a_broker_that_goes_away_for_a_while_costs_no_task(
    system: System, broker: Embedded
) -> None:
    last = dispatcher(system, "last")
    eventually(lambda: leader(system) == last.pid)
    broker.stop()
    missed = [system.do(mac(number)) for number in range(5)]
    system.explained(lambda: "broker: " in last.output())
    broker.start()
    assert {record.state for record in system.ended(missed, 40.0)} == {TaskState.DONE}
    system.at_rest()


def test_a_type_that_is_migrated_to_under_a_running_dispatcher_is_served() -> None:
    with running() as system:
        led = dispatcher(system, "dispatcher")
        system.worker("texts", TEXT)
        assert system.ended([system.do(mac(1))])[0].state is TaskState.DONE

        brief = TaskType("brief", "brief", "sensitive.brief")
        wanted = replace(system.settings, task_types=(*DEFAULT_TASK_TYPES, brief))
        system.start("migrate", *COMMAND, "migrate", **wanted.environ())
        system.explained(lambda: "brief" in {lane.name for lane in lanes(system)})
        system.worker("briefs", "sensitive.brief")
        both = [system.do(mac(1), task_type=name) for name in ("brief", "text")]
        assert {record.state for record in system.ended(both)} == {TaskState.DONE}
        assert "broker: " not in led.output()
        assert len(system.starts(both[0])) == 1
        system.check()


def test_without_any_worker_devices_back_off_if_the_document_is_followed() -> None:
    with running(task_types=TYPES, on_no_capacity="defer") as system:
        task_id = system.do(mac(1))
        Dispatcher(system.client, lambda tasks: pytest.fail(f"published {tasks}"), "me").dispatch()
        record = system.client.task(task_id)
        assert (record.state, record.defers) == (TaskState.PENDING, 1)
        (deferred,) = system.events("deferred")
        assert deferred.detail == "no worker in the lane"
        (lane,) = system.client.device(mac(1)).lanes
        assert (lane.held_by, system.lane().backoffs) == ("backoff", 1)
        assert 29_950 <= lane.until_ms - deferred.at_ms <= 33_050
        system.check()
