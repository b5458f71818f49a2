"""Forget files that were deleted, so that they can be stored again."""

from __future__ import annotations

from fairlane import verbs
from fairlane.errors import InvalidData
from support.store import Store

NAME = "a" * 64


def _doomed(store: Store) -> None:
    store.run(verbs.KeepFile(NAME))
    store.clock.advance(store.settings.file_ttl_ms)
    store.run(verbs.DoomFiles())


def test_returns_how_many_and_leaves_nothing(store: Store) -> None:
    before = set(store.redis.keys())
    _doomed(store)
    assert store.run(verbs.ForgetFiles([NAME, "b" * 64])) == 1
    assert set(store.redis.keys()) == before


def test_what_is_kept_is_not_forgotten(store: Store) -> None:
    store.run(verbs.KeepFile(NAME))
    with store.unchanged():
        assert store.run(verbs.ForgetFiles([NAME])) == 0


def test_what_cannot_be_asked(store: Store) -> None:
    for names in ([], ["x"], [NAME] * 1_001):
        store.refuses(InvalidData, verbs.ForgetFiles(names))


def test_twice_answers_0(store: Store) -> None:
    _doomed(store)
    store.run(verbs.ForgetFiles([NAME]))
    with store.unchanged():
        assert store.run(verbs.ForgetFiles([NAME])) == 0
