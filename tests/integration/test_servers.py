"""The test servers themselves: clean for each test, and both of the matrix."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import redis

from support.servers import Server


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
