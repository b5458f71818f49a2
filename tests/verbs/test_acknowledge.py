"""Take note that the store came back empty or older, so that it is not told any more."""

from __future__ import annotations

from fairlane import verbs
from fairlane.model import Seen
from support.store import Store


def test_true_when_there_was_something_to_take_note_of(store: Store) -> None:
    store.run(verbs.CheckEpoch(Seen("gone", 1, store.clock.now_ms - 1)))
    assert store.run(verbs.InspectEpoch()).lost == "empty"
    store.clock.advance(1_000)
    assert store.run(verbs.Acknowledge())
    epoch = store.run(verbs.InspectEpoch())
    assert (epoch.lost, epoch.lost_at_ms, epoch.acknowledged_at_ms) == ("", 0, store.clock.now_ms)


def test_twice_answers_false_and_changes_nothing(store: Store) -> None:
    with store.unchanged():
        assert not store.run(verbs.Acknowledge())
