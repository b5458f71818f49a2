"""How an attempt ends: by what its handler returns or raises, by a time limit, by a signal."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from fairlane import TaskType
from fairlane.celery.app import make_app
from fairlane.celery.publish import publisher
from fairlane.model import Leased, TaskState
from fairlane.payload import decode
from fairlane.verbs import Configure, DeadLetters
from support.store import mac
from support.system import DISPATCH, TEXT, System, running

TYPES = (
    TaskType("text", "text", TEXT),
    TaskType("brief", "text", TEXT, soft_limit_ms=200, hard_limit_ms=800),
)


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    with running(
        task_types=TYPES,
        max_attempts=2,
        max_defers=2,
        retry_backoff_base_ms=50,
        defer_backoff_base_ms=50,
    ) as system:
        system.worker("worker", TEXT, DISPATCH)
        yield system


@pytest.fixture(scope="module")
def deliver(system: System) -> Iterator[Callable[[str, int], None]]:
    """Give `deliver(task_id, attempt)`, which publishes a message as the dispatcher does."""
    app = make_app(system.settings)
    publish = publisher(app)
    yield lambda task_id, attempt: publish([Leased(task_id, attempt, "text", mac(1))])
    app.pool.force_close_all()
    app.fairlane.client.close()


@pytest.fixture(autouse=True)
def _balanced(system: System) -> Iterator[None]:
    yield
    system.at_rest()


def test_what_the_handler_returns_is_the_result(system: System) -> None:
    sent = {"do": "echo", "id": 130775545883395173, "a": [], "f": 1.0, "text": "中文 \u0000"}
    task_id = system.client.enqueue(mac(1), "text", sent).task_id
    (record,) = system.ended([task_id])
    assert decode(record.result) == {"attempt": 1, "echo": sent}


def test_a_message_delivered_twice_runs_once(
    system: System, deliver: Callable[[str, int], None]
) -> None:
    task_id = system.do(mac(1), "note", notes=str(system.notes))
    (record,) = system.ended([task_id])
    deliver(task_id, 1)
    # The queue is in order: once a later message was run, the second delivery was looked at.
    system.ended([system.do(mac(1))])
    assert system.noted(task_id) == [f"{task_id}.1"]
    assert system.client.task(task_id) == record


def test_while_an_attempt_runs_no_message_starts_it_again_or_another_one(
    system: System, deliver: Callable[[str, int], None]
) -> None:
    with system.gated([mac(1)]) as (task_id,):
        for attempt in (0, 1, 2):
            deliver(task_id, attempt)
        system.ended([system.do(mac(2))])
    (record,) = system.ended([task_id])
    assert (record.state, record.attempt) == (TaskState.DONE, 1)
    assert system.noted(task_id) == [f"{task_id}.1"]


def test_a_handler_that_raises_is_tried_again_and_then_dead(system: System) -> None:
    task_id = system.do(mac(1), "boom", more="payload")
    (record,) = system.ended([task_id])
    assert (record.state, record.cause, record.failures) == (TaskState.DEAD, "ValueError", 2)
    assert "ValueError: boom at attempt 2" in record.error
    assert "Traceback" in record.error
    assert decode(record.payload) == {"do": "boom", "more": "payload"}
    assert system.starts(task_id) == [f"{task_id}.1", f"{task_id}.2"]
    assert task_id in [letter.task_id for letter in system.client.run(DeadLetters())]


def test_an_attempt_is_tried_again_no_sooner_than_its_backoff(system: System) -> None:
    task_id = system.do(mac(1), "boom")
    system.ended([task_id])
    (delayed,) = (event for event in system.events("delayed") if event.tasks == (task_id,))
    again = [event for event in system.events("started") if f"{task_id}.2" in event.tasks]
    assert again[0].at_ms >= int(delayed.detail) >= delayed.at_ms + 50


def test_fail_is_final(system: System) -> None:
    task_id = system.do(mac(1), "fail")
    (record,) = system.ended([task_id])
    assert (record.state, record.cause, record.error) == (TaskState.FAILED, "handler", "never")
    assert system.starts(task_id) == [f"{task_id}.1"]


def test_fail_is_final_even_if_its_reason_cannot_be_told(system: System) -> None:
    task_id = system.do(mac(1), "fail_untellably")
    (record,) = system.ended([task_id])
    assert (record.state, record.cause) == (TaskState.FAILED, "handler")
    assert "RuntimeError" in record.error
    assert system.starts(task_id) == [f"{task_id}.1"]


def test_a_handler_that_leaves_its_process_has_failed_and_says_where(system: System) -> None:
    task_id = system.do(mac(1), "leave")
    (record,) = system.ended([task_id])
    assert (record.state, record.cause, record.failures) == (TaskState.DEAD, "SystemExit", 2)
    assert "Traceback" in record.error


def test_defer_waits_and_counts_apart_from_failures(system: System) -> None:
    task_id = system.do(mac(1), "defer")
    (record,) = system.ended([task_id])
    assert (record.state, record.cause) == (TaskState.DEAD, "defer_limit")
    assert (record.defers, record.failures) == (3, 0)
    waits = [event for event in system.events("delayed") if event.tasks == (task_id,)]
    assert len(waits) == 2


def test_an_answer_that_is_no_object_fails_the_attempt(system: System) -> None:
    (record,) = system.ended([system.do(mac(1), "answer_a_number")])
    assert (record.state, record.cause) == (TaskState.DEAD, "TypeError")
    assert "a handler returns an object or None, not int" in record.error


def test_past_the_soft_limit_the_attempt_has_failed(system: System) -> None:
    task_id = system.do(mac(1), "overrun", task_type="brief")
    (record,) = system.ended([task_id])
    assert (record.state, record.cause, record.failures) == (TaskState.DEAD, "time_limit", 2)
    assert "SoftTimeLimitExceeded" in record.error


def test_a_handler_that_ignores_the_soft_limit_is_ended_at_the_hard_one(system: System) -> None:
    deaf = system.do(mac(1), "overrun_deaf", task_type="brief")
    system.becomes(deaf, TaskState.RUNNING)
    others = [system.do(mac(2)) for _ in range(20)]
    assert {record.state for record in system.ended(others)} == {TaskState.DONE}
    (record,) = system.ended([deaf])
    assert (record.state, record.cause, record.failures) == (TaskState.DEAD, "time_limit", 2)
    assert "its process was ended" in record.error


def test_a_task_that_kills_its_process_is_tried_again_and_in_the_end_dead(system: System) -> None:
    once, always = system.do(mac(1), "die", times=1), system.do(mac(2), "die", times=99)
    others = [system.do(mac(3 + number % 3)) for number in range(20)]
    (again,) = system.ended([once])
    assert (again.state, again.attempt, again.failures) == (TaskState.DONE, 2, 1)
    (dead,) = system.ended([always])
    assert (dead.state, dead.cause, dead.failures) == (TaskState.DEAD, "worker_lost", 2)
    assert system.starts(always) == [f"{always}.1", f"{always}.2"]
    assert {(r.state, r.failures) for r in system.ended(others)} == {(TaskState.DONE, 0)}


def test_data_that_cannot_be_read_is_dead_without_another_attempt(system: System) -> None:
    one, other = mac(41), mac(42)
    system.client.run(Configure(one, paused=True))
    task_id = system.client.enqueue(one, "text", {"do": "echo"}).task_id
    system.redis.hset(system.client.keys.task(task_id), "payload", '{"do":')
    neighbour = system.client.enqueue(other, "text", {"do": "echo"}).task_id
    system.client.run(Configure(one, paused=False))
    record = system.becomes(task_id, TaskState.DEAD, 60.0)
    assert (record.cause, record.payload, record.attempt) == ("corrupt", b'{"do":', 1)
    assert system.starts(task_id) == [f"{task_id}.1"]
    system.becomes(neighbour, TaskState.DONE)
