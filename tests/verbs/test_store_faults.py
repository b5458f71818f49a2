"""What a broken store or network does to a call: a typed error, and nothing done twice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fairlane import AsyncClient, Client, TaskState, verbs
from fairlane.errors import (
    StoreFull,
    StoreNotDurable,
    StoreReadOnly,
    StoreUnavailable,
    StoreUnsupported,
)
from fairlane.scripts import library_of
from fairlane.verbs import Verb, every_verb
from support.cases import case_of
from support.eventually import eventually
from support.ports import free_ports
from support.proxy import Proxy
from support.servers import KINDS, Server
from support.store import LANE, Store, mac, receipt_of

each_verb = pytest.mark.parametrize("kind", every_verb(), ids=lambda verb: verb.SCRIPT)


@pytest.fixture
def proxy(store: Store, tmp_path: Path) -> Iterator[Proxy]:
    with Proxy(store.url, tmp_path) as proxy:
        yield proxy


@pytest.fixture
def client(store: Store, proxy: Proxy) -> Iterator[Client]:
    """Give a client that has joined through the proxy."""
    with store.other(store_url=proxy.url) as client:
        client.ping()
        yield client


def runs(store: Store) -> int:
    """Return how many verbs the server has run."""
    calls: int = store.redis.info("commandstats").get("cmdstat_fcall", {}).get("calls", 0)
    return calls


def knows(store: Store, kind: type[Verb[Any]]) -> None:
    """Let the server know a verb's library, so that the first reply is its own."""
    settings = store.client.settings
    library = library_of(kind.SCRIPT, store.keys, (settings, settings.digest))
    store.redis.function_load(library.source, replace=True)


@each_verb
def test_a_verb_whose_reply_is_lost_goes_again_only_if_it_may(
    store: Store, proxy: Proxy, client: Client, kind: type[Verb[Any]]
) -> None:
    verb = case_of(kind)(store)
    knows(store, kind)
    before = runs(store)
    proxy.lose_replies(1)
    if kind.REPEATABLE:
        client.run(verb)
    else:
        with pytest.raises(StoreUnavailable):
            client.run(verb)
    assert runs(store) - before == 1 + kind.REPEATABLE


def test_a_lost_reply_of_an_enqueue_is_one_task(store: Store, proxy: Proxy, client: Client) -> None:
    knows(store, verbs.Enqueue)
    proxy.lose_replies(1)
    receipt = client.enqueue(mac(1), LANE, {"a": 1})
    assert receipt.known, "the first run had stored it"
    assert store.client.devices() == ((mac(1), 1),)
    assert store.run(verbs.InspectTotals()).counts["accepted"] == 1


def test_a_reply_that_is_lost_twice_is_told(store: Store, proxy: Proxy, client: Client) -> None:
    knows(store, verbs.Enqueue)
    proxy.lose_replies(2)
    with pytest.raises(StoreUnavailable):
        client.enqueue(mac(1), LANE, {}, task_id="a")
    assert store.state("a") is TaskState.PENDING
    assert receipt_of(client.run(verbs.Enqueue(mac(1), LANE, {}, task_id="a"))).known


def test_an_async_client_does_the_same(store: Store, proxy: Proxy) -> None:
    async def run() -> None:
        settings = store.other(store_url=proxy.url).settings
        async with AsyncClient(settings, clock=store.clock) as client:
            await client.run(verbs.Overload())
            knows(store, verbs.Enqueue)
            proxy.lose_replies(1)
            assert (await client.enqueue(mac(1), LANE, {}, task_id="a")).known
            await client.enqueue(mac(1), LANE, {})
            knows(store, verbs.Claim)
            proxy.lose_replies(1)
            with pytest.raises(StoreUnavailable):
                await client.run(verbs.Claim(LANE, 1))

    asyncio.run(run())
    assert store.run(verbs.InspectTotals()).leased == 1


def test_a_pipeline_whose_replies_are_lost_is_told(
    store: Store, proxy: Proxy, client: Client
) -> None:
    task = verbs.Enqueue(mac(1), LANE, {}, task_id="a")
    proxy.lose_replies(1)
    assert receipt_of(*client.run_many([task])).known, "it was sent once more"
    proxy.lose_replies(1)
    with pytest.raises(StoreUnavailable):
        client.run_many([task, verbs.Claim(LANE, 1)])
    assert store.state("a") is TaskState.LEASED


def test_idle_connections_that_died_are_no_reason_to_fail(
    store: Store, proxy: Proxy, client: Client
) -> None:
    together = threading.Barrier(8)

    def wait() -> None:
        together.wait()
        client.wait(0.05)

    threads = [threading.Thread(target=wait) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    proxy.cut()
    client.enqueue(mac(1), LANE, {})


def test_no_store_at_all(store: Store, tmp_path: Path) -> None:
    absent = store.other(store_url=f"unix://{tmp_path}/nothing.sock")
    with pytest.raises(StoreUnavailable, match="is it running"):
        absent.ping()


@pytest.mark.parametrize("name", KINDS)
def test_a_cluster_is_refused_in_one_sentence(name: str) -> None:
    """A18: of one node, too."""
    (bus,) = free_ports(1)
    server = Server.start(name, "--cluster-enabled", "yes", "--cluster-port", str(bus))
    try:
        with Client.from_url(server.url) as client:
            with pytest.raises(StoreUnsupported, match="cluster"):
                client.ping()
            assert server.client.dbsize() == 0
    finally:
        server.stop()


def test_a_store_that_keeps_nothing_is_refused_by_who_is_strict(store: Store) -> None:
    with pytest.raises(StoreNotDurable, match="appendonly"):
        store.other(durability="strict").ping()


@contextmanager
def replica(store: Store) -> Iterator[None]:
    """Make the store a replica of nobody for a while."""
    store.redis.replicaof("127.0.0.1", "1")
    try:
        yield
    finally:
        store.redis.replicaof("NO", "ONE")
        eventually(lambda: store.redis.info("replication")["role"] == "master")


def test_a_replica_refuses_what_writes_and_goes_on_reading(store: Store) -> None:
    (task_id,) = store.enqueue(1)
    with replica(store):
        with pytest.raises(StoreReadOnly):
            store.client.enqueue(mac(1), LANE, {})
        with pytest.raises(StoreReadOnly):
            store.claim()
        with pytest.raises(StoreReadOnly):
            store.client.cancel(task_id)
        assert store.state(task_id) is TaskState.PENDING
        (error,) = store.client.run_many([verbs.Enqueue(mac(1), LANE, {})])
        assert isinstance(error, StoreReadOnly)
    store.client.enqueue(mac(1), LANE, {})


@contextmanager
def full(store: Store) -> Iterator[None]:
    """Leave the store no memory for a while."""
    store.redis.config_set("maxmemory", 1)
    try:
        yield
    finally:
        store.redis.config_set("maxmemory", 0)


ACCEPTS = (
    verbs.Enqueue,
    verbs.EnqueueMany,
    verbs.IssueToken,
    verbs.KeepFile,
    verbs.ReportAbnormal,
)


@each_verb
def test_a_full_store_refuses_what_comes_in_and_lets_everything_else_go_on(
    store: Store, kind: type[Verb[Any]]
) -> None:
    verb = case_of(kind)(store)
    with full(store):
        if kind in ACCEPTS:
            store.refuses(StoreFull, verb)
        else:
            store.run(verb)
    if kind in ACCEPTS:
        store.run(verb)


def test_the_backlog_of_a_full_store_drains(store: Store) -> None:
    tasks = store.enqueue(1, 5)
    with full(store):
        with pytest.raises(StoreFull):
            store.enqueue(1)
        assert len(store.served(5)) == 5
    assert {store.state(task) for task in tasks} == {TaskState.DONE}
    store.enqueue(1)


def test_a_client_connects_anew_as_often_as_it_is_cut_off(store: Store) -> None:
    for _ in range(150):
        store.redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        store.client.ping()


def test_a_wait_may_be_longer_than_a_hung_store_is_waited_for(store: Store) -> None:
    with store.other(socket_timeout_ms=600) as client:
        client.ping()
        assert not client.wait(0.7)
        store.enqueue(1)
        assert client.wait(0.7)


def hang_up(store: Store) -> None:
    """Let the server close every connection but the one that says so."""
    store.redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


def test_many_calls_on_a_connection_that_died_idle_are_sent_once_more(store: Store) -> None:
    """As one call is: a firewall or a restart closes what was not used for long."""
    repeatable = [verbs.Enqueue(mac(n), LANE, {}) for n in range(3)]

    async def at_once() -> list[Any]:
        async with AsyncClient(store.settings, clock=store.clock) as client:
            await client.ping()
            hang_up(store)
            results = await client.run_many(repeatable)
            hang_up(store)
            with pytest.raises(StoreUnavailable):
                await client.run_many([*repeatable, verbs.Claim(LANE)])
            return results

    client = store.other()
    client.ping()
    hang_up(store)
    first = [receipt_of(verdict) for verdict in client.run_many(repeatable)]
    assert [receipt.known for receipt in first] == [False] * 3
    assert [receipt_of(verdict).known for verdict in asyncio.run(at_once())] == [True] * 3
    hang_up(store)
    with pytest.raises(StoreUnavailable):
        client.run_many([*repeatable, verbs.Claim(LANE)])
    assert store.client.run_many([verbs.InspectTotals()])[0].pending == 3
