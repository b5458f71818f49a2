"""A store that can lose what it accepted: told at the start, or refused by who is strict."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from fairlane import Client, Settings
from fairlane.errors import StoreNotDurable
from support.processes import COMMAND
from support.servers import KINDS, Server
from support.system import running

DURABLE = {"appendonly": "yes", "appendfsync": "everysec", "maxmemory-policy": "noeviction"}


@pytest.fixture(scope="module", params=list(KINDS))
def durable(request: pytest.FixtureRequest) -> Iterator[Server]:
    server = Server.start(request.param)
    yield server
    server.stop()


def set_up(server: Server, **options: str) -> None:
    for name, value in {**DURABLE, **options}.items():
        server.client.config_set(name.replace("_", "-"), value)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("maxmemory_policy", "allkeys-lru"),
        ("maxmemory_policy", "volatile-lru"),
        ("maxmemory_policy", "allkeys-random"),
        ("appendonly", "no"),
        ("appendfsync", "no"),
    ],
)
def test_a_risk_is_refused_by_who_is_strict_and_told_to_the_others(
    durable: Server, option: str, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A17, A20: eviction and persistence."""
    set_up(durable, **{option: value})
    strict = Settings(store_url=durable.url, durability="strict")
    with Client(strict) as client, pytest.raises(StoreNotDurable, match=option.replace("_", "-")):
        client.ping()
    place = f"{durable.url}&client_name={option}{value}"
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            with Client.from_url(place) as client:
                client.ping()
    told = [record.getMessage() for record in caplog.records if record.name == "fairlane.store"]
    assert len(told) == (option != "appendfsync"), told
    set_up(durable)
    with Client(strict) as client:
        client.ping()


def test_a_server_without_config_is_checked_by_what_it_tells(durable: Server) -> None:
    """A17: managed servers have no CONFIG for their users."""
    set_up(durable)
    raw: Any = durable.client
    raw.execute_command("ACL", "SETUSER", "plain", "on", ">word", "~*", "+@all", "-config")
    url = durable.url.replace("unix://", "unix://plain:word@")
    with Client(Settings(store_url=url, durability="strict")) as client:
        client.ping()
    set_up(durable, maxmemory_policy="allkeys-lru")
    with (
        Client(Settings(store_url=url, durability="strict")) as client,
        pytest.raises(StoreNotDurable, match="allkeys-lru"),
    ):
        client.ping()


def test_a_command_that_is_strict_ends_with_one_line() -> None:
    """A20: what is refused is said by the command that was to start."""
    with running() as system:
        program = system.start("strict", *COMMAND, "dispatcher", FAIRLANE_DURABILITY="strict")
        assert program.wait(30.0) != 0
        assert "appendonly" in program.output()
        assert "Traceback" not in program.output()
