"""Celery's broker may be a RabbitMQ: the store stays the truth, only hints travel elsewhere."""

from __future__ import annotations

from pathlib import Path

from fairlane import TaskType
from fairlane.model import TaskState
from support.rabbitmq import rabbit
from support.store import mac
from support.system import DISPATCH, TEXT, running


def test_a_task_goes_through_rabbitmq_to_its_end(tmp_path: Path) -> None:
    types = (TaskType("text", "text", TEXT),)
    with rabbit(tmp_path) as broker, running(broker_url=broker.url, task_types=types) as system:
        system.worker("worker", TEXT, DISPATCH)
        tasks = [system.do(mac(number % 3)) for number in range(30)]
        assert {record.state for record in system.ended(tasks)} == {TaskState.DONE}
        assert not [key for key in system.redis.keys("*") if "kombu" in key]
        system.at_rest()
