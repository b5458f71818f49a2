"""Compare the store with what this process last saw of it; a loss is recorded."""

from __future__ import annotations

import asyncio
import logging

import pytest

from fairlane import AsyncClient, Client, verbs
from fairlane.errors import InvalidData, InvalidTaskId
from fairlane.model import Seen
from fairlane.services.janitor import Janitor
from support.store import LANE, Store, mac


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [row.message for row in caplog.records if row.levelno == logging.ERROR]
    caplog.clear()
    return found


def flush(store: Store) -> None:
    """Let the store come back with nothing but the mark that lets the tests send a clock."""
    store.clock.advance(1_000)
    store.redis.flushall()
    store.redis.set(store.keys.clock, "virtual")


def backup(store: Store) -> dict[str, bytes]:
    return {name: store.client._wire.send(("DUMP", name)) for name in store.redis.keys("*")}


def restore(store: Store, copy: dict[str, bytes]) -> None:
    store.redis.flushall()
    for name, value in copy.items():
        store.client._wire.send(("RESTORE", name, 0, value))


def test_returns_what_to_remember(store: Store) -> None:
    first = store.client.check_epoch()
    assert (first.sweeps, first.at_ms, first.lost) == (0, store.clock.now_ms, "")
    assert store.client.check_epoch(is_sweep=True).sweeps == 1
    again = store.client.check_epoch()
    assert (again.epoch_id, again.sweeps) == (first.epoch_id, 1)


def test_a_healthy_store_is_never_told_lost(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    other = store.other()
    for is_sweep in (True, False, True):
        for client in (store.client, other):
            store.clock.advance(5_000)
            assert client.check_epoch(is_sweep=is_sweep).lost == ""
    assert errors(caplog) == []
    assert store.run(verbs.InspectEpoch()).lost == ""


def test_a_store_that_came_back_empty_is_told_once_by_each_process_and_recorded(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    other = store.other()
    other.check_epoch()
    store.client.enqueue(mac(1), LANE, {})
    flush(store)
    lost_at = store.clock.now_ms
    store.client.enqueue(mac(1), LANE, {})
    (said,) = errors(caplog)
    assert "came back empty" in said
    assert "acknowledge" in said
    store.clock.advance(9_000)
    other.check_epoch()
    (said,) = errors(caplog)
    assert "came back empty" in said
    for client in (store.client, other):
        client.check_epoch(is_sweep=True)
    assert errors(caplog) == []
    epoch = store.run(verbs.InspectEpoch())
    assert (epoch.lost, epoch.lost_at_ms) == ("empty", lost_at)


def test_whoever_joins_an_empty_store_first_need_not_have_known_it(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    store.client.check_epoch()
    flush(store)
    store.other().ping()
    assert store.run(verbs.InspectEpoch()).lost == ""
    store.client.check_epoch()
    assert store.run(verbs.InspectEpoch()).lost == "empty"
    assert len(errors(caplog)) == 1


def test_a_restored_backup_is_told_and_recorded(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    janitor, other = Janitor(store.client), store.other()
    copy = backup(store)
    for _ in range(3):
        store.clock.advance(5_000)
        janitor.step()
    other.check_epoch()
    restore(store, copy)
    janitor.step()
    (said,) = errors(caplog)
    assert "came back older" in said
    epoch = store.run(verbs.InspectEpoch())
    assert (epoch.lost, epoch.began_at_ms) == ("older", store.clock.now_ms)
    assert other.check_epoch().lost == "older"
    (said,) = errors(caplog)
    assert "came back older" in said
    janitor.step()
    assert errors(caplog) == []


def test_a_backup_of_an_earlier_epoch_is_older_not_empty(store: Store) -> None:
    copy = backup(store)
    flush(store)
    assert store.client.check_epoch().lost == "empty"
    store.clock.advance(1_000)
    store.client.check_epoch()
    restore(store, copy)
    assert store.client.check_epoch().lost == "older"


def test_a_process_that_slept_through_a_loss_does_not_bring_it_back(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    sleeper = store.other()
    sleeper.check_epoch()
    flush(store)
    store.client.check_epoch()
    store.run(verbs.Acknowledge())
    errors(caplog)
    assert sleeper.check_epoch().lost == "empty"
    assert len(errors(caplog)) == 1
    assert store.run(verbs.InspectEpoch()).lost == ""


def test_ids_of_the_past_are_bounded(store: Store) -> None:
    for _ in range(40):
        store.client.check_epoch(is_sweep=True)
        store.redis.hset(store.keys.name("EPOCH"), "sweeps", 0)
        assert store.client.check_epoch().lost == "older"
        store.client.check_epoch(is_sweep=True)
    assert len(store.redis.hget(store.keys.name("EPOCH"), "before")) <= 272


def test_an_async_client_notices_too(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with AsyncClient(store.settings, clock=store.clock) as client:
            await client.check_epoch()
            flush(store)
            assert (await client.check_epoch()).lost == "empty"

    asyncio.run(run())
    assert len(errors(caplog)) == 1


@pytest.mark.parametrize(
    "seen", [None, Seen("a b"), Seen("a", -1), Seen("a", 1, True), Seen("a", 10**16)], ids=str
)
def test_what_was_never_seen(store: Store, seen: Seen) -> None:
    with store.unchanged(), pytest.raises((InvalidData, InvalidTaskId)):
        store.run(verbs.CheckEpoch(seen))


def test_twice_compares_again_and_records_a_loss_once(store: Store) -> None:
    verb = verbs.CheckEpoch(Seen("gone", 5, store.clock.now_ms - 1))
    assert store.run(verb).lost == "empty"
    store.run(verbs.Acknowledge())
    with store.unchanged():
        assert store.run(verb).lost == "empty"


def test_a_client_that_saw_nothing_yet_has_nothing_to_compare(store_url: str) -> None:
    with Client.from_url(store_url) as client:
        assert client.check_epoch().lost == ""
