"""What goes to the broker: the message that Celery would send, made faster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from celery import signals

from fairlane.celery import make_app
from fairlane.celery.publish import publisher
from fairlane.errors import StoreUnavailable
from fairlane.ids import new_task_id
from fairlane.model import Leased
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


def leased(count: int) -> list[Leased]:
    return [Leased(new_task_id(), 1 + n, "text", "02:00:00:00:00:01") for n in range(count)]


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


def test_a_broker_that_is_full_is_told_and_used_again() -> None:
    with running() as system:
        app = make_app(system.settings)
        publish = publisher(app)
        first, refused, after = leased(1), leased(2), leased(1)
        publish(first)
        system.redis.config_set("maxmemory", 1)
        with pytest.raises(StoreUnavailable, match="broker"):
            publish(refused)
        system.redis.config_set("maxmemory", 0)
        publish(after)
        ids = [message.payload[0][0] for message in taken(app)]
        assert ids == [first[0].task_id, after[0].task_id]


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
