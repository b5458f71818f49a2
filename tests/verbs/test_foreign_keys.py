"""Another program's value under one of our keys is an error that names the key, and changes
nothing; what no verb on every task's way can look for beforehand stands in `PARTIAL`, exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from fairlane.errors import FairlaneError, ForeignKey
from fairlane.keys import TABLE, Key
from fairlane.scripts import HOT
from fairlane.verbs import Verb, every_verb
from support.cases import case_of
from support.store import LANE, Store, mac

#: The keys whose foreign value a verb meets only after it has written: for these calls it is told
#: by its name too, but what was written stays, and `Reconcile` counts it anew.
PARTIAL: Final[Mapping[str, str]] = {
    "claim": "FINISH MACS DEADLINES INFLIGHT GLOBAL_PENDING CAPACITY EVENTS",
    "enqueue": "SCHEDULE WAITING BACKOFF TURNS VIRTUAL FINISH SITES SITES_FINISH MACS DEADLINES "
    "TOTALS DOORBELL EVENTS",
    "enqueue_many": "SCHEDULE WAITING BACKOFF TURNS VIRTUAL FINISH MACS DEADLINES TOTALS DOORBELL "
    "EVENTS",
    "finish": "SCHEDULE VIRTUAL SITES CAPACITY TIMES TOTALS DOORBELL EVENTS",
    "pop": "SCHEDULE FINISH SITES DEADLINES INFLIGHT GLOBAL_PENDING CAPACITY EVENTS",
    "start": "EVENTS",
    # A queue or a hash of a device that the call does not name.
    "redrive": "QUEUE META",
    "sweep": "QUEUE",
}


def name_of(store: Store, row: Key) -> str:
    keys = store.keys
    return {
        "TASK": keys.task("a"),
        "META": keys.device("META", mac(1)),
        "QUEUE": keys.device("QUEUE", mac(1), LANE),
        "ACTIVE": keys.device("ACTIVE", mac(1), LANE),
        "WORKER": keys.name("WORKER") + "host:1:a",
        "PROCESS": keys.name("PROCESS") + "host:1:a",
    }.get(row.lua) or keys.lane(row.lua, LANE if "<lane>" in row.shape else "main")


def plant(store: Store, row: Key) -> str:
    """Put a value of a foreign type in the place of a key's own; return the key's name."""
    name = name_of(store, row)
    store.redis.delete(name)
    if row.type.startswith("String"):
        store.redis.hset(name, "foreign", "value")
    else:
        store.redis.set(name, "foreign")
    return name


@pytest.mark.parametrize("kind", every_verb(), ids=lambda verb: verb.SCRIPT)
def test_a_foreign_value_is_told_by_its_key_and_changes_nothing(
    store_url: str, kind: type[Verb[Any]]
) -> None:
    partial, told = set(), {}
    for row in TABLE:
        store = Store(store_url)
        try:
            store.is_spoilt = True
            verb = case_of(kind)(store)
            name = plant(store, row)
            before = store.digest()
            (result,) = store.client.run_many([verb])
            if isinstance(result, FairlaneError):
                told[name] = result
                partial |= {row.lua} if store.digest() != before else set()
            store.redis.flushall()
        finally:
            store.close()
    assert told
    for name, error in told.items():
        assert type(error) is ForeignKey, name
        assert f"key: {name} is a " in str(error)
    assert partial == set(PARTIAL.get(kind.SCRIPT, "").split())


def test_what_writes_before_it_looks_is_on_every_tasks_way_or_meets_a_device() -> None:
    assert set(PARTIAL) == {*HOT, "redrive", "sweep"}


def test_a_key_that_is_mended_is_no_error_any_more(store: Store) -> None:
    store.enqueue(1)
    (row,) = (row for row in TABLE if row.lua == "EVENTS")
    name = plant(store, row)
    with pytest.raises(ForeignKey, match=name):
        store.client.cancel("a")
    store.redis.delete(name)
    assert len(store.claim()) == 1
