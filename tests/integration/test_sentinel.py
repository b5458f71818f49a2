"""A store under sentinels: both clients find the primary, and the next one after a failover."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from fairlane import AsyncClient, Client, Settings
from fairlane.celery import make_app
from fairlane.errors import StoreError, StoreReadOnly, StoreUnavailable
from fairlane.verbs import Claim, Finish, Start
from support.eventually import eventually
from support.sentinels import SERVICE, Watched, watched
from support.servers import KINDS
from support.store import mac


@pytest.fixture(scope="module", params=list(KINDS))
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Watched]:
    with watched(request.param, tmp_path_factory.mktemp("watched")) as store:
        yield store


def accepted(client: Client, timeout_s: float = 60.0) -> str:
    """Enqueue as a caller does who tries again; return the id of the task."""

    def enqueue() -> str:
        try:
            return client.enqueue(mac(1), "text", {}).task_id
        except (StoreUnavailable, StoreReadOnly):
            return ""

    return eventually(enqueue, timeout_s, 0.2)


def test_a_client_finds_the_next_primary_by_itself(store: Watched) -> None:
    before, after = store.primary(), store.replica()
    with Client.from_url(store.url) as client:
        first = accepted(client)
        store.replicated()
        libraries = after.redis.execute_command("FUNCTION", "LIST")
        assert libraries, "functions are replicated"
        store.fails_over()
        store.becomes_primary(after)
        eventually(lambda: before.role() == "slave", 60.0)
        second = accepted(client)
        for task_id in (first, second):
            assert client.task(task_id).state == "pending"
            assert after.redis.exists(client.keys.task(task_id))
        for leased in client.run(Claim("text", 2)).leased:
            client.run(Start(leased.task_id, leased.attempt, "worker", "run"))
            client.run(Finish(leased.task_id, leased.attempt))
        assert client.task(first).state == client.task(second).state == "done"
    store.replicated(60.0)


def test_an_async_client_does_the_same(store: Watched) -> None:
    after = store.replica()

    async def accepted_async(client: AsyncClient) -> str:
        for _ in range(300):
            try:
                return (await client.enqueue(mac(1), "text", {})).task_id
            except (StoreUnavailable, StoreReadOnly):
                await asyncio.sleep(0.2)
        raise AssertionError("not accepted for a minute")

    async def talk() -> None:
        async with AsyncClient.from_url(store.url) as client:
            first = await accepted_async(client)
            store.replicated()
            store.fails_over()
            store.becomes_primary(after)
            second = await accepted_async(client)
            for task_id in (first, second):
                assert (await client.task(task_id)).state == "pending"

    asyncio.run(talk())
    store.replicated(60.0)


def test_a_sentinel_that_is_away_is_passed_over(store: Watched) -> None:
    with Client.from_url(store.url.replace("//", "//127.0.0.1:1,", 1)) as client:
        accepted(client, 5.0)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_service_that_nobody_knows_is_told(store: Watched, is_async: bool) -> None:
    settings = Settings(store_url=store.url.replace(SERVICE, "other"))

    def ask() -> None:
        if is_async:
            asyncio.run(AsyncClient(settings).task("a"))
        else:
            Client(settings).ping()

    with pytest.raises(StoreUnavailable, match=r"no primary of the service other.*it knows no"):
        ask()


def test_a_demoted_server_that_the_sentinels_still_name_is_not_written_to(store: Watched) -> None:
    """A15: what is demoted by hand is told as read only; then it is found again."""
    primary, other = store.primary(), store.replica()
    with Client.from_url(store.url) as client:
        accepted(client)
        store.replicated()
        # Nobody must mend it meanwhile: a server that follows itself is no case for sentinels.
        primary.redis.replicaof("127.0.0.1", "1")
        with pytest.raises(StoreError) as told:
            client.enqueue(mac(1), "text", {})
        assert isinstance(told.value, StoreReadOnly), told.value
        with pytest.raises(StoreReadOnly, match=r"no primary of the service|replica"):
            client.enqueue(mac(1), "text", {})
        primary.redis.replicaof("NO", "ONE")
        accepted(client)
    eventually(lambda: {primary.role(), other.role()} == {"master", "slave"}, 60.0)


def test_what_counts_as_accepted_is_on_a_replica_if_that_is_wanted(store: Watched) -> None:
    settings = Settings(store_url=store.url, min_replicas=1, socket_timeout_ms=1_000)
    replica = store.replica()

    async def both(task_id: str) -> None:
        async with AsyncClient(settings) as client:
            await client.enqueue(mac(1), "text", {}, task_id=f"async-{task_id}")
        with Client(settings) as client:
            client.enqueue(mac(1), "text", {}, task_id=task_id)

    asyncio.run(both("kept"))
    with Client(settings) as client:
        for task_id in ("kept", "async-kept"):
            assert replica.redis.exists(client.keys.task(task_id))
        with replica.frozen():
            with pytest.raises(StoreUnavailable, match="0 of 1 replicas"):
                asyncio.run(both("alone"))
            assert client.task("async-alone").state == "pending", "nobody takes it back"
            with pytest.raises(StoreUnavailable, match="0 of 1 replicas"):
                client.enqueue_many([(mac(1), "text", {})])
        store.replicated(60.0)
        asyncio.run(both("alone"))


def test_passwords_of_both(tmp_path: Path) -> None:
    words = {"password": "of the store", "sentinel_password": "of the sentinels"}
    with watched("valkey9", tmp_path, **words) as store:
        with Client.from_url(store.url) as client:
            accepted(client)
        for word in words.values():
            wrong = store.url.replace(quote(word), "wrong")
            assert wrong != store.url
            with pytest.raises(StoreUnavailable, match=r"(?i)password|auth"):
                Client.from_url(wrong).ping()
        app = make_app(Settings(store_url=store.url))
        with app.connection_for_write() as broker:
            broker.connect()
        app.fairlane.client.close()
