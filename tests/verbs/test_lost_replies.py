"""A reply that is lost after its verb ran: whoever asked learns nothing, and the task is done once.

Each verb that moves a task loses its reply here in the middle of a whole life of a task; what the
caller does then is what the services do: ask again if the verb may be asked again, else wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlane import Client, TaskState, verbs
from fairlane.errors import StoreUnavailable
from fairlane.model import Leased
from fairlane.scripts import load
from support.proxy import Proxy
from support.store import LANE, Store, mac

STEPS = ("enqueue", "claim", "start", "finish")


@pytest.fixture
def proxy(store: Store, tmp_path: Path) -> Iterator[Proxy]:
    with Proxy(store.url, tmp_path) as proxy:
        yield proxy


@pytest.fixture
def client(store: Store, proxy: Proxy) -> Iterator[Client]:
    """Give a client that has joined through the proxy; the server has its library."""
    with store.other(store_url=proxy.url) as client:
        client.ping()
        settings = store.client.settings
        store.redis.function_load(
            load(store.keys, (settings, settings.digest)).source, replace=True
        )
        yield client


@pytest.mark.parametrize("step", STEPS)
def test_a_lost_reply_in_the_life_of_a_task_is_one_task_and_one_run(
    store: Store, proxy: Proxy, client: Client, step: str
) -> None:
    """A11: also where the caller cannot know: a claim unheard comes back after its lease."""
    client.run(verbs.Enqueue(mac(2), LANE, {}))

    def loses(here: str) -> None:
        if here == step:
            proxy.lose_replies(1)

    loses("enqueue")
    task_id = client.enqueue(mac(1), LANE, {"a": 1}).task_id
    leased: list[Leased] = []
    unheard = 0
    for _ in range(4):
        loses("claim")
        try:
            leased += client.run(verbs.Claim(LANE, 2)).leased
        except StoreUnavailable:
            unheard += 1
            step = ""
            store.clock.advance(store.settings.lease_ms + 1)
            assert len(client.run(verbs.Sweep()).lost) == 2
    assert unheard == (step == "")
    assert len(leased) == 2
    assert {task.attempt for task in leased} == {1 + unheard}
    for task in leased:
        loses("start")
        client.run(verbs.Start(task.task_id, task.attempt, "worker", "run"))
        loses("finish")
        client.run(verbs.Finish(task.task_id, task.attempt, {"x": 1}))
    record = store.client.task(task_id)
    assert (record.state, record.failures) == (TaskState.DONE, 0), "unstarted leases cost nothing"
    totals = store.run(verbs.InspectTotals()).counts
    assert (totals["accepted"], totals["done"]) == (2, 2)
    started = [event for event in store.client.events() if event.event == "started"]
    assert len(started) == 2


@pytest.mark.parametrize("end", [verbs.Fail, verbs.Defer, verbs.Cancel], ids=lambda v: v.SCRIPT)
def test_an_end_whose_reply_is_lost_ends_it_once(
    store: Store, proxy: Proxy, client: Client, end: type
) -> None:
    """A11: the second asking finds it done, and counts nothing twice."""
    (task_id,) = store.enqueue(1)
    if end is verbs.Cancel:
        proxy.lose_replies(1)
        client.cancel(task_id)
        assert store.state(task_id) is TaskState.CANCELLED
        assert store.run(verbs.InspectTotals()).counts["cancelled"] == 1
        return
    (leased,) = store.claim()
    store.start(leased)
    proxy.lose_replies(1)
    client.run(end(task_id, leased.attempt, "why"))
    record = store.client.task(task_id)
    assert record.state is TaskState.DELAYED
    assert (record.failures, record.defers) == ((1, 0) if end is verbs.Fail else (0, 1))
