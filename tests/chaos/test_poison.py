"""Tasks and messages that harm whoever takes them: the neighbours never notice."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from fairlane import TaskType
from fairlane.model import TaskRecord, TaskState
from support.ledger import Judge
from support.stage import SLACK_S, Stage, staged
from support.store import mac
from support.system import TEXT
from support.tally import History, now_ms

LIMITED = TaskType("text", "text", TEXT, soft_limit_ms=300, hard_limit_ms=1_000)
NEIGHBOURS = "the others are done, with no failure"


def served(stage: Stage) -> Stage:
    """Start what serves a stage."""
    stage.worker()
    stage.dispatcher()
    return stage


def neighbours_are_done(stage: Stage, ids: list[str]) -> None:
    """Prove that what other devices sent was not harmed."""
    records = stage.system.ended(ids, 90.0)
    assert {(r.state, r.failures) for r in records} == {(TaskState.DONE, 0)}


def dead_of(stage: Stage, deed: str, **data: Any) -> TaskRecord:
    """Let a device send poison among its neighbours' tasks; return its dead letter."""
    before = stage.send(20)
    poison = stage.system.do(mac(99), deed, **data)
    after = stage.send(20)
    record = stage.system.becomes(poison, TaskState.DEAD, 90.0)
    neighbours_are_done(stage, before + after)
    assert len(stage.system.starts(poison)) == stage.system.settings.max_attempts
    return record


@pytest.mark.fault("X1", "a task that SIGKILLs its own process, once", "attempt 2 runs; done")
def test_a_task_kills_its_process_once(judge: Judge) -> None:
    """A04."""
    with staged() as stage:
        served(stage)
        ids = stage.send(20)
        sent_ms = now_ms(stage.system)
        poison = stage.system.do(mac(99), "die", times=1)
        (record,) = stage.system.ended([poison], 60.0)
        assert (record.state, record.attempt, record.failures) == (TaskState.DONE, 2, 1)
        neighbours_are_done(stage, ids)
        first_ms, _ = History.of(stage.system).starts(poison)
        assert first_ms >= sent_ms
        judge.judge(
            stage.system, recovery_s=History.of(stage.system).restarted_s([poison], first_ms)
        )


@pytest.mark.smoke
@pytest.mark.fault(
    "X2", "a task that always SIGKILLs its own process",
    f"exactly max_attempts starts, dead (worker_lost); {NEIGHBOURS}",
)  # fmt: skip
def test_a_task_always_kills_its_process(judge: Judge) -> None:
    """A05."""
    with staged() as stage:
        record = dead_of(served(stage), "die", times=99)
        assert (record.cause, record.failures) == ("worker_lost", 3)
        assert b'"do":"die"' in record.payload.replace(b" ", b"")
        judge.judge(stage.system)


@pytest.mark.fault(
    "X3", "a task that loops for ever and ignores the soft limit",
    f"ended at the hard limit, max_attempts starts, dead (time_limit); {NEIGHBOURS}",
)  # fmt: skip
def test_a_task_loops_for_ever(judge: Judge) -> None:
    """A05: by the time limit of its type."""
    with staged(task_types=(LIMITED,)) as stage:
        assert dead_of(served(stage), "overrun_deaf").cause == "time_limit"
        judge.judge(stage.system)


@pytest.mark.fault(
    "X4", "an exception that cannot be pickled", f"max_attempts starts, dead; {NEIGHBOURS}"
)
def test_an_exception_cannot_be_pickled(judge: Judge) -> None:
    """A05: what was raised is kept as text."""
    with staged() as stage:
        record = dead_of(served(stage), "poison", how="raise what cannot be pickled")
        assert record.cause == "UnpicklableError"
        assert "UnpicklableError" in record.error
        judge.judge(stage.system)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(message, marks=pytest.mark.fault(
            identity, f"{words} in the list of the broker, five times", "lost 0; the worker lives"
        ), id=identity)
        for identity, words, message in (
            ("X5", "an item that is no JSON", b"\xff\xfe no message"),
            ("X6", "an item that is JSON and no message", b'{"body": 7, "headers": null}'),
        )
    ],
)  # fmt: skip
def test_an_item_cannot_be_decoded(judge: Judge, message: bytes) -> None:
    """A05: a message can only harm itself."""
    with staged() as stage:
        served(stage)
        (worker, _), system = stage.system.programs[:2], stage.system
        broker = system.settings.store_url.replace("db=0", "db=1")
        with redis.Redis.from_url(broker) as queues:
            ids = []
            for _ in range(5):
                ids += stage.send(10)
                queues.lpush(TEXT, message)
                ids += stage.send(10)
        neighbours_are_done(stage, ids)
        assert worker.is_running(), worker.output()[-2000:]
        judge.judge(system)


@pytest.mark.fault(
    "X7", "records that cannot be read: no hash, a missing field, data that is no JSON",
    f"dead (corrupt) with all that was there; {NEIGHBOURS}",
)  # fmt: skip
def test_records_cannot_be_read(judge: Judge) -> None:
    """A05: quarantined before anybody runs them."""
    with staged() as stage:
        system, keys = stage.system, stage.system.client.keys
        ids = stage.send(20)
        foreign, holed, garbled = (system.do(mac(at), "note") for at in (1, 2, 3))
        system.redis.delete(keys.task(foreign))
        system.redis.set(keys.task(foreign), "somebody else's")
        system.redis.hdel(keys.task(holed), "created_at")
        system.redis.hset(keys.task(garbled), "payload", '{"do":')
        served(stage)
        neighbours_are_done(stage, ids)
        for poison in (foreign, holed, garbled):
            record = system.becomes(poison, TaskState.DEAD, SLACK_S)
            assert record.cause == "corrupt"
        judge.judge(system)
