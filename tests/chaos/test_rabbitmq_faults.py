"""A RabbitMQ as broker that goes away under load: it carries hints, and the store has the tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.clock import Clock, has_lived
from support.eventually import passes
from support.ledger import Judge
from support.producer import Producer
from support.rabbitmq import rabbit
from support.stage import staged

PROMISE = "producers notice nothing; lost 0; a task is done ≤ 20 s after it is back"


def row(identity: str, how: str, words: str) -> object:
    fault = pytest.mark.fault(identity, f"{words} RabbitMQ, the broker, twice, under load", PROMISE)
    return pytest.param(how, marks=fault, id=how)


@pytest.mark.parametrize("how", [row("M1", "stop", "restart"), row("M2", "kill", "kill -9")])
def test_the_broker_goes_away(judge: Judge, tmp_path: Path, how: str) -> None:
    """A message that went down with the broker is published again when its lease has passed."""
    slowest_s = 0.0
    with rabbit(tmp_path) as broker, staged(broker_url=broker.url) as stage:
        stage.worker()
        stage.dispatcher()
        stage.system.ended(stage.send(2), 60.0)
        # Erlang starts slowly, and what waits meanwhile must not fill the queues.
        with Producer(stage, every_s=0.15) as producer:
            for _ in range(2):
                producer.goes_on()
                broker.stop() if how == "stop" else broker.kill()
                producer.goes_on()
                passes(2.0)
                broker.start()
                took_s = Clock(stage.system).until_done()
                assert took_s < 20.0
                slowest_s = max(slowest_s, took_s)
            producer.goes_on()
        assert not producer.errors, producer.errors
        judge.judge(stage.system, recovery_s=slowest_s, receipts=producer.receipts)
        has_lived(stage.system)
