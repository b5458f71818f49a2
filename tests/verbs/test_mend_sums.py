"""Count anew the sums over all devices and tasks that are wrong."""

from __future__ import annotations

from fairlane import verbs
from fairlane.flaw import Flaw
from support.store import LANE, Store, mac


def test_what_was_wrong_is_told_and_mended(store: Store) -> None:
    store.enqueue(1, 2)
    store.redis.incr(store.keys.name("GLOBAL_PENDING"), 5)
    assert store.run(verbs.MendSums()) == ((Flaw("store", "global_pending", "7", "2"),), ())
    assert store.run(verbs.Overload()).global_pending == 2


def test_twice_changes_nothing(store: Store) -> None:
    store.enqueue(1, 2, site="lab")
    store.redis.delete(store.keys.name("SITES_PENDING"), store.keys.lane("SITES", LANE))
    assert len(store.run(verbs.MendSums())[0]) == 3
    with store.unchanged():
        assert store.run(verbs.MendSums()) == ((), ())
    assert [leased.mac for leased in store.claim(1)] == [mac(1)]
