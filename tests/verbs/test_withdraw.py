"""Take a process out of those announced when it stops."""

from __future__ import annotations

from fairlane import verbs
from support.store import Store


def test_it_is_gone_at_once(store: Store) -> None:
    before = store.digest()
    store.run(verbs.Announce("host:1:a", report={"role": "beat"}))
    assert store.run(verbs.Withdraw("host:1:a"))
    assert store.digest() == before


def test_twice_changes_nothing(store: Store) -> None:
    store.run(verbs.Announce("host:1:a"))
    store.run(verbs.Withdraw("host:1:a"))
    with store.unchanged():
        assert not store.run(verbs.Withdraw("host:1:a"))
