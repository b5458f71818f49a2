"""A store full of other programs' keys: none of our calls may walk them (case A21)."""

from __future__ import annotations

import time
from typing import Any, Final

from click.testing import CliRunner

from fairlane.cli import cli
from fairlane.verbs import InspectTotals, Overload, every_verb
from support.cases import case_of
from support.servers import Server
from support.store import Store

#: What walks the keyspace, or a whole set or hash of it, by the names of the server's statistics.
WALKS: Final = ("keys", "scan", "hscan", "sscan", "zscan")
_AT_ONCE: Final = 100_000
_STATS_S: Final = 0.1


def check_that_nothing_walks(server: Server, count: int) -> float:
    """Run every verb, the levels and the doctor beside `count` foreign keys; nothing walks them.

    Returns how many ms `stats` takes there.
    """
    raw: Any = server.client
    for at in range(0, count, _AT_ONCE):
        raw.execute_command("DEBUG", "POPULATE", min(_AT_ONCE, count - at), f"foreign{at}", 8)
    assert raw.dbsize() >= count
    raw.config_resetstat()
    for at, kind in enumerate(every_verb()):
        # A namespace for each: their cases begin on a store without tasks.
        store = Store(server.url, namespace=f"n{at}")
        store.is_spoilt = True  # its own check does walk the keys
        store.run(case_of(kind)(store))
        store.close()
    environ = {"FAIRLANE_STORE_URL": server.url, "FAIRLANE_NAMESPACE": "n1"}
    for command in (["doctor", "--json"], ["doctor", "--repair", "--json"], ["stats"], ["lanes"]):
        done = CliRunner(env=environ).invoke(cli, command)
        assert done.exit_code in (0, 1), done.output
    stats = raw.info("commandstats")
    assert [name for name in WALKS if f"cmdstat_{name}" in stats] == []
    assert "cmdstat_fcall" in stats, "the statistics do count"
    store = Store(server.url, namespace="n1")
    took = [_seconds(store) for _ in range(5)]
    store.close()
    assert min(took) < _STATS_S, took
    return min(took) * 1_000


def _seconds(store: Store) -> float:
    began = time.perf_counter()
    store.client.run_many([InspectTotals(), Overload()])
    return time.perf_counter() - began
