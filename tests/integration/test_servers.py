"""The test servers themselves: clean for each test, and both of the matrix."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import redis

from fairlane import Client, Settings
from fairlane.verbs import Claim, Finish, Start
from support.invariants import check_invariants
from support.servers import Server
from support.store import LANE, mac


@pytest.mark.parametrize("run", [1, 2])
def test_a_store_is_empty_when_a_test_gets_it(
    run: int, store_url: str, digest: Callable[[str], str]
) -> None:
    assert digest(store_url) == "0" * 40
    with redis.Redis.from_url(store_url) as client:
        sha = client.script_load(f"return {run}")
        client.set("left", "behind")
        assert client.script_exists(sha, "0" * 40) == [True, False]
    assert digest(store_url) != "0" * 40


def test_each_name_is_that_server(server: Server) -> None:
    info = server.client.info("server")
    assert info["tcp_port"] == 0
    assert ("valkey_version" in info) == (server.name == "valkey9")


def test_a_store_that_has_counted_to_128_can_be_checked(server: Server) -> None:
    """How long tasks take is packed: no UTF-8."""
    server.empty()
    settings = Settings(store_url=server.url, max_per_mac_pending=1_000)
    with Client(settings) as client, server.raw() as raw:
        client.enqueue_many([(mac(1), LANE, {})] * 150)
        leased = client.run(Claim(LANE, 150)).leased
        assert len(leased) == 150
        client.run_many([Start(task.task_id, task.attempt, "w", "run") for task in leased])
        client.run_many([Finish(task.task_id, task.attempt) for task in leased])
        seconds, micros = raw.time()
        check_invariants(raw, client.keys, client.settings, seconds * 1000 + micros // 1000)
    server.empty()
