"""Celery tasks of an application of one's own go through fairlane: `fairlane.celery.install`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery, chain, chord, group
from celery.exceptions import ChordError, TaskRevokedError
from redis import Redis

from fairlane import Settings, TaskType, verbs
from fairlane.celery import TaskDead, install
from fairlane.celery.recorder import Recorder
from fairlane.embedded import Embedded
from fairlane.errors import InvalidSettings, Refused, TaskNotFound
from fairlane.model import TaskState
from support.citizen import make
from support.eventually import eventually
from support.store import mac
from support.system import System, running

WAIT_S = 20.0


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    """Give a system whose worker is that of a user's application."""
    kinds = (TaskType("work", "work", "work"),)
    with running(task_types=kinds, max_per_mac_pending=20, retry_backoff_base_ms=100) as system:
        backend = system.settings.broker_url.replace("/1", "/2").replace("db=1", "db=2")
        system.environ["CITIZEN_BACKEND"] = backend
        system.worker("citizen", "work", "sensitive.dispatch", app="support.citizen", slots=2)
        yield system


@pytest.fixture(scope="module")
def citizen(system: System) -> Iterator[Celery]:
    """Give the application as a producer has it."""
    app = make(system.settings.broker_url, system.environ["CITIZEN_BACKEND"], system.settings)
    yield app
    app.pool.force_close_all()
    app.fairlane.client.close()


def test_a_task_with_a_device_keeps_its_id_and_its_result(system: System, citizen: Celery) -> None:
    sent = citizen.tasks["add"].apply_async((1, 2), device=mac(1))
    assert sent.get(timeout=WAIT_S) == 3
    record = system.client.task(sent.id)
    assert (record.mac, record.lane) == (mac(1), "work")
    assert system.becomes(sent.id, TaskState.DONE)
    by_header = citizen.tasks["who"].apply_async(headers={"device": "0200.0000.0002"})
    assert by_header.get(timeout=WAIT_S) == [by_header.id, mac(2), by_header.id]


def test_a_task_without_a_device_goes_straight_to_its_queue(
    system: System, citizen: Celery
) -> None:
    sent = citizen.tasks["add"].delay(2, 3)
    assert sent.get(timeout=WAIT_S) == 5
    with pytest.raises(TaskNotFound):
        system.client.task(sent.id)


def test_retries_are_celerys_and_keep_the_id(system: System, citizen: Celery) -> None:
    sent = citizen.tasks["flaky"].apply_async((2,), device=mac(3))
    assert sent.get(timeout=WAIT_S) == 2
    for task_id in (sent.id, f"{sent.id}:r1", f"{sent.id}:r2"):
        assert system.client.task(task_id).mac == mac(3)


def test_a_failure_is_one_in_both(system: System, citizen: Celery) -> None:
    sent = citizen.tasks["boom"].apply_async(("no such page",), device=mac(4))
    with pytest.raises(ValueError, match="no such page"):
        sent.get(timeout=WAIT_S)
    record = eventually(lambda: system.client.task(sent.id))
    system.becomes(sent.id, TaskState.FAILED)
    assert "no such page" in system.client.task(record.task_id).error


def test_chains_and_groups_stay_with_the_device(system: System, citizen: Celery) -> None:
    add = citizen.tasks["add"]
    sent = chain(add.s(1, 2).set(device=mac(5)), add.s(10), add.s(100)).apply_async()
    assert sent.get(timeout=WAIT_S) == 113
    node = sent
    while node is not None:
        assert system.client.task(node.id).mac == mac(5)
        node = node.parent
    several = group(add.s(n, n).set(device=mac(6)) for n in range(3)).apply_async()
    assert several.get(timeout=WAIT_S) == [0, 2, 4]


def test_a_task_that_is_replaced_and_a_chord_stay_with_the_device(
    system: System, citizen: Celery
) -> None:
    sent = citizen.tasks["swap"].apply_async((20, 3), device=mac(10))
    assert sent.get(timeout=WAIT_S) == 23
    add, total = citizen.tasks["add"], citizen.tasks["total"]
    several = chord(
        [add.s(n, 1).set(device=mac(11)) for n in range(3)], total.s().set(device=mac(11))
    ).apply_async()
    assert several.get(timeout=WAIT_S) == 6
    assert system.client.task(several.id).mac == mac(11)


def test_what_was_cancelled_is_revoked_in_the_result_backend(
    system: System, citizen: Celery
) -> None:
    system.client.run(verbs.Configure(mac(12), paused=True))
    add = citizen.tasks["add"]
    sent = chain(add.s(1, 2).set(device=mac(12)), add.s(10), add.s(100)).apply_async()
    first = sent.parent.parent
    assert first.state == "PENDING"
    assert system.client.cancel(first.id)
    with pytest.raises(TaskRevokedError, match="cancelled"):
        first.get(timeout=WAIT_S)
    # What follows it never runs, and whoever waits for the end is told.
    with pytest.raises(TaskRevokedError):
        sent.get(timeout=WAIT_S)


def test_what_has_expired_is_revoked_and_its_chord_fails(system: System, citizen: Celery) -> None:
    system.client.run(verbs.Configure(mac(13), paused=True))
    add, total = citizen.tasks["add"], citizen.tasks["total"]
    late = add.s(1, 1).set(device=mac(13), expires=1)
    sent = chord(
        [add.s(2, 2).set(device=mac(14)), late], total.s().set(device=mac(14))
    ).apply_async()

    def expired() -> bool:
        return bool(system.client.run(verbs.Purge()))

    eventually(expired, WAIT_S)
    with pytest.raises((ChordError, TaskRevokedError)):
        sent.get(timeout=WAIT_S)
    assert sorted(child.state for child in sent.parent.children) == ["REVOKED", "SUCCESS"]


def test_what_was_given_up_has_failed_with_its_cause(system: System, citizen: Celery) -> None:
    sent = citizen.tasks["die"].apply_async(device=mac(15))
    with pytest.raises(TaskDead, match="worker_lost"):
        sent.get(timeout=3 * WAIT_S)
    assert system.client.task(sent.id).state is TaskState.DEAD


@pytest.mark.filterwarnings("ignore:Call to deprecated setex")  # by Celery
def test_who_leads_next_writes_nothing_twice(system: System, citizen: Celery) -> None:
    """He looks back an hour: at what has a result by now, and at what lives again."""
    system.client.run(verbs.Configure(mac(16), paused=True))
    known, redriven = (
        citizen.tasks["add"].apply_async((1, 1), device=mac(16)).id for _ in range(2)
    )
    system.client.cancel(known)
    eventually(lambda: citizen.AsyncResult(known).state == "REVOKED", WAIT_S)
    citizen.backend.store_result(known, 7, "SUCCESS")
    raw = system.redis
    raw.xadd(system.client.keys.events, {"event": "dead", "mac": "", "lane": "", "tasks": redriven})
    raw.xadd(system.client.keys.events, {"event": "dead", "mac": "", "lane": "", "tasks": "gone"})
    Recorder(citizen, lambda: False).step()
    Recorder(citizen, lambda: True).step()
    assert citizen.AsyncResult(known).get(timeout=WAIT_S) == 7
    assert citizen.AsyncResult(redriven).state == "PENDING"


@pytest.mark.filterwarnings("ignore:Call to deprecated setex")  # by Celery
def test_a_result_that_cannot_be_written_does_not_keep_back_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with running(task_types=(TaskType("work", "work", "work"),)) as system:
        backend = system.settings.broker_url.replace("/1", "/2").replace("db=1", "db=2")
        app = make(system.settings.broker_url, backend, system.settings)
        add, mark, tried = app.tasks["add"], app.backend.mark_as_failure, []
        spoilt, other = (add.apply_async((1, 1), device=mac(1)).id for _ in range(2))

        def refuse(task_id: str, *args: Any, **options: Any) -> Any:
            if task_id == spoilt:
                tried.append(task_id)
                raise ValueError("spoilt")
            return mark(task_id, *args, **options)

        monkeypatch.setattr(app.backend, "mark_as_failure", refuse)
        for task_id in (spoilt, other):
            system.client.cancel(task_id)
        recorder = Recorder(app, lambda: True)
        for _ in range(20):
            recorder.step()
        assert 1 < len(tried) < 20
        assert app.AsyncResult(other).state == "REVOKED"
        app.pool.force_close_all()
        app.fairlane.client.close()


@pytest.mark.filterwarnings("ignore:Call to deprecated setex")  # by Celery
def test_a_backend_that_is_full_is_waited_for(system: System, tmp_path: Path) -> None:
    system.client.run(verbs.Configure(mac(19), paused=True))
    with (
        Embedded(tmp_path, extra={"maxmemory-policy": "noeviction"}) as backend,
        Redis.from_url(backend.url) as raw,
    ):
        app = make(system.settings.broker_url, backend.celery_url, system.settings)
        task_id = app.tasks["add"].apply_async((1, 1), device=mac(19)).id
        raw.config_set("maxmemory", "1")
        system.client.cancel(task_id)
        recorder = Recorder(app, lambda: True)
        for _ in range(20):
            recorder.step()
        raw.config_set("maxmemory", "0")
        recorder.step()
        assert app.AsyncResult(task_id).state == "REVOKED"
        app.fairlane.client.close()


@pytest.mark.filterwarnings("ignore:Call to deprecated setex")  # by Celery
def test_a_task_that_names_anothers_id_writes_no_result(system: System, citizen: Celery) -> None:
    for number in (17, 18):
        system.client.run(verbs.Configure(mac(number), paused=True))
    other = citizen.tasks["add"].apply_async((1, 1), device=mac(17)).id
    data = json.loads(system.client.task(other).payload)
    false = system.client.enqueue(mac(18), "work", data).task_id
    last = citizen.tasks["add"].apply_async((1, 1), device=mac(18)).id
    for task_id in (false, last):
        system.client.cancel(task_id)
    Recorder(citizen, lambda: True).step()
    assert [citizen.AsyncResult(each).state for each in (other, last)] == ["PENDING", "REVOKED"]


def test_a_countdown_is_waited_for(system: System, citizen: Celery) -> None:
    add = citizen.tasks["add"]
    sent = add.apply_async((4, 5), device=mac(7), countdown=1)
    assert sent.get(timeout=WAIT_S) == 9
    assert system.client.task(sent.id).mac == mac(7)


def test_a_full_device_is_refused(system: System, citizen: Celery) -> None:
    system.client.run(verbs.Configure(mac(8), paused=True))
    add = citizen.tasks["add"]
    for _ in range(20):
        add.apply_async((1, 1), device=mac(8))
    with pytest.raises(Refused, match="device_full"):
        add.apply_async((1, 1), device=mac(8))


def test_a_queue_without_a_lane_is_named(citizen: Celery) -> None:
    with pytest.raises(InvalidSettings, match="queue 'other'"):
        citizen.tasks["add"].apply_async((1, 1), device=mac(9), queue="other")


def test_every_queue_becomes_a_lane_unless_task_types_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAIRLANE_STORE_URL", "redis://127.0.0.1:1/0")
    app = Celery("plain", set_as_current=False)
    app.conf.update(task_routes={"a.*": {"queue": "images.large"}}, task_default_queue="mail")
    assert install(app) is app
    kinds = app.fairlane.client.settings.task_types
    assert [(kind.name, kind.queue) for kind in kinds] == [
        ("mail", "mail"), ("images-large", "images.large"),
    ]  # fmt: skip
    assert install(app) is app
    named = Celery("named", set_as_current=False)
    install(
        named, Settings(task_types=(TaskType("mail", "slow", "mail"),), store_url="redis://x:1")
    )
    assert [kind.lane for kind in named.fairlane.client.settings.task_types] == ["slow"]
    assert {queue.name for queue in named.conf.task_queues} >= {"celery", "sensitive.dispatch"}


def test_the_store_is_the_brokers_unless_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """One in the folder of whoever starts was another for who sends and for who works."""
    monkeypatch.delenv("FAIRLANE_STORE_URL", raising=False)
    broker = "redis://127.0.0.1:1/5"
    app = install(Celery("shop", broker=broker, set_as_current=False))
    assert app.fairlane.client.settings.store_url == broker
    for other in ("amqp://guest@127.0.0.1//", "sentinel://127.0.0.1:1"):
        with pytest.raises(InvalidSettings, match="FAIRLANE_STORE_URL"):
            install(Celery("other", broker=other, set_as_current=False))
    monkeypatch.setenv("FAIRLANE_STORE_URL", "redis://127.0.0.1:1/6")
    app = install(Celery("named", broker=broker, set_as_current=False))
    assert app.fairlane.client.settings.store_url == "redis://127.0.0.1:1/6"


def test_inspect_tells_what_a_worker_knows(system: System, citizen: Celery) -> None:
    def told() -> dict[str, dict[str, object]]:
        return citizen.control.inspect(timeout=5.0)._request("fairlane_stats") or {}

    ((name, stats),) = eventually(told, WAIT_S).items()
    assert name.startswith("citizen@")
    assert stats["lanes"]["work"]["slots"] == 2  # type: ignore[index]
    assert stats["worker"]["lanes"] == ["work"]  # type: ignore[index]
