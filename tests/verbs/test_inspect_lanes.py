"""Read every lane: pending, leased, slots, credits, and who is next."""

from __future__ import annotations

from fairlane import verbs
from support.store import Store, mac


def test_an_empty_store(store: Store) -> None:
    ocr, text = store.run(verbs.InspectLanes())
    assert (ocr.name, text.name) == ("ocr", "text")
    assert (text.next_mac, text.pending, text.slots, text.credits, text.v) == ("", 0, 0, 0, 0)


def test_returns_what_each_has(store: Store) -> None:
    store.enqueue(1, 3)
    store.enqueue(2, 2)
    store.offer(4)
    (leased,) = store.claim()
    store.run(verbs.Defer(leased.task_id, 1, "", "device"))
    store.claim()
    _, text = store.run(verbs.InspectLanes())
    assert (text.pending, text.scheduled, text.leased, text.backoffs) == (4, 1, 1, 1)
    assert (text.slots, text.credits, text.next_mac) == (4, 4, mac(2))


def test_credits_are_what_a_claim_would_take(store: Store) -> None:
    store.enqueue(1, 20)
    store.offer(3, "text", worker_id="a:1:a")
    store.offer(2, "text", "ocr", worker_id="b:1:b")
    _, text = store.run(verbs.InspectLanes())
    assert len(store.claim(0)) == text.credits


def test_twice_reads_again(store: Store) -> None:
    store.enqueue(1)
    with store.unchanged():
        assert store.run(verbs.InspectLanes()) == store.run(verbs.InspectLanes())


def test_who_starves_and_for_how_long_the_first_has_waited(store: Store) -> None:
    store.enqueue(1)
    store.clock.advance(20_000)
    store.enqueue(2)
    _, text = store.run(verbs.InspectLanes())
    assert (text.starved, text.waited_ms) == (0, 20_000)
    store.clock.advance(store.settings.starvation_after_ms - 20_000)
    _, text = store.run(verbs.InspectLanes())
    assert (text.starved, text.waited_ms) == (1, store.settings.starvation_after_ms)
