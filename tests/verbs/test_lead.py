"""Take or keep the lead among dispatchers, so that one of them does the work."""

from __future__ import annotations

from fairlane import verbs
from support.eventually import eventually
from support.store import Store


def test_one_leads_at_a_time(store: Store) -> None:
    assert store.run(verbs.Lead("a"))
    with store.unchanged():
        assert not store.run(verbs.Lead("b"))


def test_another_leads_once_the_lease_has_ended(store: Store) -> None:
    assert store.run(verbs.Lead("a", lease_ms=1))
    eventually(lambda: store.run(verbs.Lead("b")))
    assert not store.run(verbs.Lead("a"))


def test_twice_keeps_the_lead(store: Store) -> None:
    store.run(verbs.Lead("a", lease_ms=100))
    assert store.run(verbs.Lead("a", lease_ms=60_000))
    assert store.redis.pttl(store.keys.name("LEADER")) > 1_000
