"""What goes to the broker: the message that Celery would send, made faster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from celery import signals

from fairlane import Client, TaskType
from fairlane.celery import make_app
from fairlane.celery.publish import publisher
from fairlane.ids import new_task_id
from fairlane.model import Leased, TaskState
from fairlane.tasktype import DEFAULT_TASK_TYPES
from fairlane.verbs import Claim, Overload
from support.store import mac
from support.system import System, running


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    with running() as system:
        yield system


def taken(app: Any, queue: str = "sensitive.text") -> list[Any]:
    """Take all messages of a queue, oldest first."""
    messages = []
    with app.connection_for_read() as connection:
        bound = app.amqp.queues[queue](connection.default_channel)
        while (message := bound.get(no_ack=True)) is not None:
            messages.append(message)
    return messages


def leased(count: int, task_type: str = "text") -> list[Leased]:
    return [Leased(new_task_id(), 1 + n, task_type, "02:00:00:00:00:01") for n in range(count)]


def migrate(system: System, *types: TaskType) -> None:
    """Make task types the store's, as another process does."""
    settings = replace(system.settings, task_types=types)
    with Client(settings) as other:
        other.migrate(settings)


def test_a_message_is_what_send_task_would_send_without_what_is_none(system: System) -> None:
    app = make_app(system.settings)
    (task,) = leased(1)
    publisher(app)([task])
    app.send_task(
        "execute_text_sensitive_job",
        args=(task.task_id, task.attempt),
        task_id=f"{task.task_id}.{task.attempt}",
        queue="sensitive.text",
        ignore_result=True,
    )
    ours, celerys = taken(app)
    assert ours.payload == celerys.payload
    assert ours.headers == {
        name: value for name, value in celerys.headers.items() if value not in (None, {})
    }
    for name in ("correlation_id", "delivery_mode", "delivery_info", "priority"):
        assert ours.properties[name] == celerys.properties[name]
    assert ours.content_type == celerys.content_type
    assert ours.content_encoding == celerys.content_encoding


def test_each_message_has_a_delivery_tag_of_its_own(system: System) -> None:
    """A worker keeps what it has not acknowledged by its tag."""
    app = make_app(system.settings)
    task, *others = leased(3)
    publisher(app)([task, task, *others])
    tags = [message.delivery_tag for message in taken(app)]
    assert len(set(tags)) == 4
    assert "" not in tags


def test_nothing_of_the_form_is_left_in_a_message(system: System) -> None:
    app = make_app(system.settings)
    publisher(app)(leased(1))
    (message,) = taken(app)
    told = repr((message.payload, message.headers, message.properties, message.delivery_info))
    assert "nobody" not in told
    assert "987654321" not in told


def test_a_round_goes_out_in_order_and_so_does_the_next(system: System) -> None:
    app = make_app(system.settings)
    publish = publisher(app)
    first, second = leased(3), leased(2)
    publish(first)
    publish(second)
    assert [message.payload[0] for message in taken(app)] == [
        [task.task_id, task.attempt] for task in (*first, *second)
    ]


def test_who_watches_messages_on_their_way_sees_them(system: System) -> None:
    app = make_app(system.settings)
    publish = publisher(app)
    seen = []

    def watch(headers: dict[str, Any], **_: Any) -> None:
        seen.append(headers["id"])
        headers["trace"] = "of somebody"

    publish(leased(1))
    signals.before_task_publish.connect(watch)
    try:
        tasks = leased(2)
        publish(tasks)
    finally:
        signals.before_task_publish.disconnect(watch)
    assert seen == [f"{task.task_id}.{task.attempt}" for task in tasks]
    assert [message.headers.get("trace") for message in taken(app)] == [None, *["of somebody"] * 2]


@pytest.mark.parametrize("prefix", ["", "theirs:"])
def test_a_broker_that_is_full_takes_what_must_drain(prefix: str) -> None:
    """A16: what waits in a full store makes room only when it has run."""

    def app_of(system: System) -> Any:
        app = make_app(system.settings)
        app.conf.broker_transport_options["global_keyprefix"] = prefix
        return app

    with running() as system:
        publish = publisher(app_of(system))
        fresh = app_of(system)
        rounds = [leased(1), leased(2), leased(1), leased(1)]
        publish(rounds[0])
        system.redis.config_set("maxmemory", 1)
        publish(rounds[1])
        publisher(fresh)(rounds[2])
        system.redis.config_set("maxmemory", 0)
        publish(rounds[3])
        with fresh.connection_for_read() as connection:
            # kombu's client leaves this command's key as it is.
            assert connection.default_channel.client.exists(f"{prefix}sensitive.text")
        ids = [message.payload[0][0] for message in taken(fresh)]
        assert ids == [task.task_id for tasks in rounds for task in tasks]


def test_connections_that_were_cut_are_made_anew() -> None:
    with running() as system:
        app = make_app(system.settings)
        publish = publisher(app)
        first, after = leased(1), leased(1)
        publish(first)
        system.redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        publish(after)
        ids = [message.payload[0][0] for message in taken(app)]
        assert ids == [first[0].task_id, after[0].task_id]


@pytest.mark.parametrize("is_watched", [False, True])
def test_a_type_that_comes_or_moves_while_it_runs_goes_to_its_queue(is_watched: bool) -> None:
    def watch(**_: Any) -> None:
        """Want to see each message, which is then sent the slow way."""

    with running() as system:
        app = make_app(system.settings)
        publish = publisher(app)
        publish(leased(1))
        if is_watched:
            signals.before_task_publish.connect(watch)
        try:
            for queue in ("sensitive.brief", "moved.brief"):
                migrate(system, *DEFAULT_TASK_TYPES, TaskType("brief", "brief", queue))
                app.fairlane.client.run(Overload())
                (task,) = leased(1, "brief")
                publish([task])
                (message,) = taken(app, queue)
                assert message.headers["task"] == "execute_brief_sensitive_job"
                assert message.payload[0] == [task.task_id, task.attempt]
        finally:
            signals.before_task_publish.disconnect(watch)


def test_a_task_whose_type_is_gone_waits_and_says_so_and_the_others_go_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    brief = TaskType("brief", "text", "sensitive.text")
    with running(task_types=(*DEFAULT_TASK_TYPES, brief)) as system:
        gone = system.do(mac(1), task_type="brief")
        kept = system.do(mac(2))
        migrate(system, *DEFAULT_TASK_TYPES)
        app = make_app(replace(system.settings, task_types=DEFAULT_TASK_TYPES))
        claimed = app.fairlane.client.run(Claim("text", 2)).leased
        assert {task.task_id for task in claimed} == {gone, kept}
        publish = publisher(app)
        first, second = sorted(claimed, key=lambda task: task.task_id != gone)
        publish([first, second])
        publish([first])
        assert [message.payload[0][0] for message in taken(app)] == [kept]
        record = app.fairlane.client.task(gone)
        assert (record.state, record.attempt, record.defers) == (TaskState.DELAYED, 1, 1)
        assert "no task type brief" in record.error
        assert f"task {gone} of {mac(1)}" in caplog.text
        assert "fairlane migrate" in caplog.text
