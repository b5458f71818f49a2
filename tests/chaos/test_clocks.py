"""Hosts whose clocks are wrong: only the store's counts."""

from __future__ import annotations

import json
import sys

import pytest

from fairlane.ids import new_task_id
from fairlane.model import TaskState
from support.clocks import VARIABLE
from support.ledger import Judge
from support.stage import SLACK_S, staged
from support.store import mac
from support.system import TEXT
from support.tally import History, now_ms

HOUR_S = 3_600


@pytest.mark.parametrize(
    ("producers_s", "workers_s"),
    [
        pytest.param(HOUR_S, -HOUR_S, id="ahead-behind", marks=pytest.mark.fault(
            "C1", "a producer's clock 1 h ahead, a worker's and Beat's 1 h behind",
            "order, backoff and TTL follow the store's clock",
        )),
        pytest.param(-HOUR_S, HOUR_S, id="behind-ahead", marks=pytest.mark.fault(
            "C2", "a producer's clock 1 h behind, a worker's and Beat's 1 h ahead",
            "order, backoff and TTL follow the store's clock",
        )),
    ],
)  # fmt: skip
def test_hosts_with_wrong_clocks(judge: Judge, producers_s: int, workers_s: int) -> None:
    """A32: creation times, start order, a retry's wait and a TTL are those of the store."""
    with staged() as stage:
        system, ids = stage.system, [new_task_id() for _ in range(20)]
        began_ms = now_ms(system)
        given = {"ids": ids, "mac": mac(1), "data": stage.noting()}
        stage.system.start(
            "producer", sys.executable, "-m", "support.sender", json.dumps(given),
            **{VARIABLE: str(producers_s)},
        )  # fmt: skip
        system.explained(lambda: system.client.device(mac(1)).pending == len(ids), SLACK_S)
        late = system.client.enqueue(mac(2), "text", stage.noting(), ttl_ms=1).task_id
        lasting = system.client.enqueue(mac(3), "text", stage.noting(), ttl_ms=120_000).task_id
        stage.dispatcher()
        wrong = {VARIABLE: str(workers_s)}
        system.worker("worker", TEXT, app="support.skewed", slots=1, environ=wrong)
        # Not beside the others: what a dying child has in hand comes back after them.
        system.ended([*ids, lasting], 60.0)
        retried = system.do(mac(4), "die", times=1)
        records = system.ended([*ids, lasting, retried], 60.0)
        assert {record.state for record in records} == {TaskState.DONE}
        assert system.client.task(late).state is TaskState.EXPIRED
        ended_ms = now_ms(system)
        assert all(began_ms <= record.created_at_ms <= ended_ms for record in records)
        assert all(began_ms <= record.ended_at_ms <= ended_ms for record in records)
        history = History.of(system)
        ours = [name.rpartition(".")[0] for name in history.tasks("started")]
        assert [task_id for task_id in ours if task_id in ids] == ids
        first_ms, second_ms = history.starts(retried)
        backoff_ms = system.settings.retry_backoff_base_ms
        assert backoff_ms <= second_ms - first_ms < backoff_ms + SLACK_S * 1000
        judge.judge(system)
