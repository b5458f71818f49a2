"""Read the last published watermark."""

from __future__ import annotations

from fairlane import verbs
from support.store import Store


def test_none_before_the_first(store: Store) -> None:
    assert store.run(verbs.ReadWatermark()) is None


def test_returns_what_was_published(store: Store) -> None:
    store.enqueue(1)
    published = store.run(verbs.Watermark())
    store.enqueue(1)
    assert store.run(verbs.ReadWatermark()) == published


def test_none_once_it_has_ended(store: Store) -> None:
    store.run(verbs.Watermark())
    store.redis.delete(store.keys.name("WATERMARK"))
    assert store.run(verbs.ReadWatermark()) is None


def test_twice_reads_again(store: Store) -> None:
    store.run(verbs.Watermark())
    with store.unchanged():
        assert store.run(verbs.ReadWatermark()) == store.run(verbs.ReadWatermark())
