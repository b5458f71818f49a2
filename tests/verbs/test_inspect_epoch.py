"""Read whether the store came back empty or older, and since when it has lost nothing."""

from __future__ import annotations

from fairlane import verbs
from fairlane.model import Epoch
from support.store import Store


def test_a_whole_store(store: Store) -> None:
    seen = store.client.check_epoch(is_sweep=True)
    epoch = store.run(verbs.InspectEpoch())
    assert epoch == Epoch(seen.epoch_id, 1, store.clock.now_ms, "", 0, 0)


def test_twice_reads_again(store: Store) -> None:
    with store.unchanged():
        assert store.run(verbs.InspectEpoch()) == store.run(verbs.InspectEpoch())
