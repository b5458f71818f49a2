"""The Celery application: the document's names, what it accepts, and what the clock starts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from fairlane import Settings
from fairlane.celery import beat
from fairlane.celery.app import make_app
from fairlane.celery.scheduler import MOST_WAITING, BoundedScheduler
from fairlane.embedded import Embedded
from fairlane.model import TaskState
from fairlane.verbs import Claim
from support.eventually import eventually
from support.store import mac
from support.system import DISPATCH, OCR, TEXT, System, running

NAMES = {
    "dispatch_next_mac_sensitive_tasks",
    "process_mac_sensitive_tasks",
    "execute_ocr_sensitive_job",
    "execute_text_sensitive_job",
    "purge_expired_mac_tasks",
    "publish_watermark",
    "sweep_mac_tasks",
}


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    with running(
        socket_timeout_ms=1_500, dispatch_every_ms=400, watermark_every_ms=300,
        sweep_every_ms=200, purge_every_ms=500,
    ) as system:  # fmt: skip
        yield system


@pytest.fixture(scope="module")
def app(system: System) -> Iterator[Celery]:
    app = make_app(system.settings)
    yield app
    app.pool.force_close_all()
    app.fairlane.client.close()


def test_the_names_are_those_of_the_document(app: Celery) -> None:
    assert {name for name in app.tasks if not name.startswith("celery.")} == NAMES
    assert {queue.name for queue in app.conf.task_queues} == {OCR, TEXT, DISPATCH}


def test_two_applications_of_a_process_keep_to_their_stores(app: Celery) -> None:
    with running() as other:
        second = make_app(other.settings)
        assert {task.app for task in app.tasks.values()} == {app}
        assert {task.app for task in second.tasks.values()} == {second}
        for system in (app.fairlane.client, other.client):
            system.enqueue(mac(1), "text", {"of": system.store_url})
        assert second.tasks[beat.WATERMARK]() == 1
        assert app.tasks[beat.WATERMARK]() == 1
        app.fairlane.client.cancel(app.fairlane.client.run(Claim("text", 1)).leased[0].task_id)
        assert (app.tasks[beat.WATERMARK](), second.tasks[beat.WATERMARK]()) == (0, 1)
        second.fairlane.client.close()


def test_each_task_goes_to_its_queue(app: Celery) -> None:
    routes = {name: app.amqp.router.route({}, name)["queue"].name for name in NAMES}
    own = {"execute_ocr_sensitive_job": OCR, "execute_text_sensitive_job": TEXT}
    assert routes == {name: own.get(name, DISPATCH) for name in NAMES}


def test_a_message_is_a_hint_and_is_acknowledged_last(app: Celery) -> None:
    conf = app.conf
    assert conf.task_acks_late
    assert conf.worker_prefetch_multiplier == 1
    assert conf.task_ignore_result
    assert not conf.task_reject_on_worker_lost
    assert conf.accept_content == ["json"]
    assert (conf.task_serializer, conf.result_serializer) == ("json", "json")
    assert conf.broker_transport_options["socket_timeout"] == 1.5
    assert conf.broker_transport_options["socket_connect_timeout"] == 1.5


def test_every_entry_of_beat_expires_before_it_would_run_twice_in_a_row() -> None:
    settings = Settings()
    periods = {
        beat.DISPATCH: 15.0,
        beat.WATERMARK: 15.0,
        beat.PURGE: 300.0,
        beat.SWEEP: 5.0,
    }
    entries = beat.schedule(settings)
    assert {entry["task"]: entry["schedule"] for entry in entries.values()} == periods
    for entry in entries.values():
        assert entry["options"] == {"queue": DISPATCH, "expires": entry["schedule"]}


def test_beat_sends_each_task_within_its_period(system: System, app: Celery) -> None:
    program = system.beat()
    with app.connection_for_read() as link:
        queue = link.SimpleQueue(DISPATCH)
        seen: dict[str, list[Any]] = {}

        def all_came_twice() -> bool:
            message = queue.get(timeout=30.0)
            message.ack()
            seen.setdefault(message.headers["task"], []).append(message.headers["expires"])
            return len(seen) == 4 and all(len(times) > 1 for times in seen.values())

        eventually(all_came_twice, 60.0)
        queue.close()
    assert set(seen) == {beat.DISPATCH, beat.WATERMARK, beat.PURGE, beat.SWEEP}
    assert all(expires for times in seen.values() for expires in times)
    program.stop()


def test_a_broker_that_is_away_is_told_once_by_beat(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A stack for each entry that was due filled a disk."""
    broker = Embedded(tmp_path).start()
    app = make_app(Settings(store_url=broker.url, broker_url=broker.celery_url))
    app.conf.task_publish_retry = False
    scheduler = BoundedScheduler(app)
    (entry, *_) = scheduler.schedule.values()

    def told() -> list[str]:
        scheduler.apply_entry(entry, scheduler.producer)
        return [record.message for record in caplog.records if record.levelname != "INFO"]

    assert told() == []
    broker.stop()
    for _ in range(3):
        (away,) = told()
        assert away.endswith("it is tried again with each entry that is due")
    broker.start()
    eventually(lambda: told()[1:] == ["beat: the broker takes messages again"], 30.0)
    scheduler.close()
    broker.stop()


def test_beat_holds_back_while_nobody_takes_what_it_sends(system: System) -> None:
    """Beat alone left 22,000 messages a day in the broker: they expire when a worker sees them."""
    system.broker.delete(DISPATCH)
    program = system.beat()
    system.explained(lambda: "no worker takes them" in program.output(), 60.0)
    # Entries go on to be due; none of them is sent.
    assert system.broker.llen(DISPATCH) == MOST_WAITING
    watermark = system.client.keys.name("WATERMARK")
    before = system.redis.get(watermark)
    worker = system.worker("late", DISPATCH, slots=1)
    system.explained(lambda: "sending goes on" in program.output(), 60.0)
    eventually(lambda: system.redis.get(watermark) not in (None, before), 30.0)
    worker.stop()
    program.stop()


def test_a_pickle_is_refused_and_the_worker_lives_on(system: System, app: Celery) -> None:
    worker = system.worker("worker", TEXT, DISPATCH, slots=1)
    with app.producer_or_acquire() as producer:
        app.send_task(
            beat.execute_name("text"), args=("any", 1), queue=TEXT, serializer="pickle",
            producer=producer,
        )  # fmt: skip
    system.explained(lambda: "ContentDisallowed" in worker.output())
    (record,) = system.ended([system.do(mac(1))])
    assert record.state is TaskState.DONE
