"""Beside a million keys of others, ten times what `make test` has, nothing walks them."""

from __future__ import annotations

import pytest

from support.foreign import check_that_nothing_walks
from support.ledger import Judge
from support.servers import KINDS, Server


@pytest.mark.timeout(600)
@pytest.mark.fault(
    "S20", "a million keys of others beside ours", "nothing runs SCAN or KEYS; stats < 100 ms"
)
def test_no_verb_and_no_doctor_walks_a_million_keys_of_others(judge: Judge) -> None:
    """A21."""
    for kind in KINDS:
        server = Server.start(kind)
        try:
            took_ms = check_that_nothing_walks(server, 1_000_000)
        finally:
            server.stop()
        judge.note(f"stats on {kind}", f"{took_ms:.1f} ms")
