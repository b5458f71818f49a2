"""Beside a hundred thousand keys of others nothing is slower, and nothing walks them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.foreign import check_that_nothing_walks
from support.servers import KINDS, Server


@pytest.fixture(params=list(KINDS))
def own(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Give a server whose statistics are this test's own."""
    server = Server.start(request.param)
    yield server
    server.stop()


def test_no_verb_and_no_doctor_walks_the_keys_of_others(own: Server) -> None:
    """A21: foreign keys beside ours: no SCAN or KEYS in `INFO commandstats`; stats < 100 ms."""
    check_that_nothing_walks(own, 100_000)
