"""A16: a store at its maxmemory refuses, drains, sweeps, and takes tasks in again; none is lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fairlane import Refused, verbs
from fairlane.errors import StoreFull
from fairlane.services.janitor import Janitor
from support.eventually import eventually
from support.servers import KINDS, Server
from support.store import LANE, Store, mac

ROOM_BYTES = 8 * 1024 * 1024
DATA = {"text": "x" * 100_000}


@pytest.fixture(params=list(KINDS))
def full_store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """Give a store on a server of its own that has room for some eighty tasks."""
    server = Server.start(request.param)
    try:
        # A done task's record goes at once, as it does an hour later in earnest.
        store = Store(server.url, result_ttl_ms=1, max_per_mac_pending=1_000)
        try:
            store.is_spoilt = True  # the checks would meet records in the moment that they go
            store.run(verbs.Overload())
            used = store.redis.info("memory")["used_memory"]
            store.redis.config_set("maxmemory", used + ROOM_BYTES)
            yield store
        finally:
            store.close()
    finally:
        server.stop()


def fill(store: Store) -> list[str]:
    """Enqueue until the server itself refuses; return the ids that were accepted."""
    accepted: list[str] = []

    def send() -> None:
        accepted.extend(store.client.enqueue(mac(1), LANE, DATA).task_id for _ in range(200))

    with pytest.raises(StoreFull):
        send()
    assert len(accepted) > 10
    return accepted


def drain(store: Store) -> int:
    """Run all that is queued, with results; return how many that were."""
    done = 0
    for _ in range(300):
        leased = store.client.run(verbs.Claim(LANE, 10)).leased
        if not leased:
            return done
        for task in leased:
            store.start(task)
            store.finish(task, {"kept": "y" * 1_000})
        done += len(leased)
    pytest.fail("it does not end")


def test_a_full_store_drains_sweeps_and_takes_tasks_in_again(full_store: Store) -> None:
    store, janitor = full_store, Janitor(full_store.client)
    accepted = fill(store)
    (lost,) = store.claim()
    store.start(lost)
    store.clock.advance(store.settings.lease_ms)
    janitor.step()
    assert store.client.task(lost.task_id).state == "pending", "the sweep goes on"
    with pytest.raises((Refused, StoreFull)):
        store.client.enqueue(mac(2), LANE, DATA)
    # Between the mark and the server's own limit it is we who refuse, and say when to come back.
    store.redis.config_set("maxmemory", int(store.redis.info("memory")["used_memory"] * 1.06))
    janitor.step()
    with pytest.raises(Refused) as refused:
        store.client.enqueue(mac(2), LANE, {})
    assert refused.value.refusal.reason == "store_full"
    assert refused.value.refusal.retry_after_ms > 0
    store.offer(1)
    assert drain(store) == len(accepted)
    assert store.run(verbs.InspectTotals()).lost() == 0
    eventually(lambda: not store.redis.exists(*map(store.keys.task, accepted)))

    def has_room() -> bool:
        janitor.step()
        return not store.client.measure().is_full

    eventually(has_room)
    again = store.client.enqueue(mac(2), LANE, DATA)
    assert drain(store) == 1
    assert not again.known
    totals = store.run(verbs.InspectTotals())
    assert (totals.counts["done"], totals.pending, totals.leased) == (len(accepted) + 1, 0, 0)
    assert totals.lost() == 0


def test_a_refused_task_of_a_full_store_is_not_there(full_store: Store) -> None:
    store = full_store
    accepted = fill(store)
    store.redis.config_set("maxmemory", 1)
    before = store.digest()
    for verb in (
        verbs.Enqueue(mac(3), LANE, {}, idempotency_key="k", task_id="no"),
        verbs.EnqueueMany([verbs.Enqueue(mac(3), LANE, {}, task_id="no")]),
    ):
        with pytest.raises(StoreFull):
            store.client.run(verb)
    assert store.digest() == before
    assert store.run(verbs.InspectTotals()).pending == len(accepted)
