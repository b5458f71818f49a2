"""What every test can ask for: a real, empty store.

The rule: a test that takes `server` or `store_url` runs on each server of the matrix; they are
started when first asked for, once a session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support import servers
from support.servers import KINDS, Server


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the file that the fault suite (tests/chaos) writes its rows to."""
    parser.addoption(
        "--report", type=Path, metavar="FILE", help="write each fault and its figures as JSON"
    )
    parser.addoption(
        "--fault", action="append", default=[], metavar="ID", help="inject only these faults"
    )


@pytest.fixture(scope="session")
def _started() -> Iterator[dict[str, Server]]:
    started: dict[str, Server] = {}
    yield started
    for server in started.values():
        server.stop()


@pytest.fixture(scope="session", params=list(KINDS))
def server(request: pytest.FixtureRequest, _started: dict[str, Server]) -> Server:
    """Give a running server; it holds whatever the test before left in it."""
    name: str = request.param
    if name not in _started:
        _started[name] = Server.start(name)
    return _started[name]


@pytest.fixture
def store_url(server: Server) -> str:
    """Give the URL of a store without data."""
    server.empty()
    return server.url


@pytest.fixture
def digest() -> Callable[[str], str]:
    """Give `digest(url)`, the store's digest: equal before and after, if nothing was changed."""
    return servers.digest
