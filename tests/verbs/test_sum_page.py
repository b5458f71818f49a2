"""Add up a page of the devices with tasks, or of leases, beside what is stored."""

from __future__ import annotations

from fairlane import verbs
from fairlane.errors import InvalidData, UnknownLane
from support.store import LANE, Store, mac


def test_pages_add_up_to_what_is_stored(store: Store) -> None:
    store.enqueue(1, 2)
    store.enqueue(2, site="lab")
    store.enqueue(3, 3)
    first = store.run(verbs.SumPage("macs", limit=2))
    rest = store.run(verbs.SumPage("macs", offset=2, limit=2))
    assert first.total == rest.total == 3
    assert first.last_event == rest.last_event != ""
    assert first.stored == rest.stored
    assert first.counted[f"{LANE} pending"] + rest.counted[f"{LANE} pending"] == 6
    assert first.stored[f"{LANE} pending"] == 6
    assert first.counted["pending of site lab"] == first.stored["pending of site lab"] == 1


def test_leases_by_site(store: Store) -> None:
    store.enqueue(1, 2)
    store.enqueue(2, site="lab")
    store.claim(3)
    page = store.run(verbs.SumPage("inflight", LANE))
    leased = sum(page.counted.values())
    assert page.total == leased > 0
    assert {what: count for what, count in page.stored.items() if count} == page.counted


def test_every_event_shows(store: Store) -> None:
    store.enqueue(1)
    before = store.run(verbs.SumPage("macs")).last_event
    store.claim(1)
    assert store.run(verbs.SumPage("macs")).last_event != before


def test_what_cannot_be_read_has_no_total(store: Store) -> None:
    store.enqueue(1)
    store.claim(1)
    store.enqueue(1)
    store.redis.set(store.keys.device("META", mac(1)), "foreign")
    store.is_spoilt = True
    assert store.run(verbs.SumPage("macs")).total is None
    assert store.run(verbs.SumPage("inflight", LANE)).total is None


def test_what_cannot_be_asked(store: Store) -> None:
    store.refuses(InvalidData, verbs.SumPage("delayed"))
    store.refuses(InvalidData, verbs.SumPage("macs", limit=1_001))
    store.refuses(UnknownLane, verbs.SumPage("inflight", "none"))


def test_twice_reads_again(store: Store) -> None:
    store.enqueue(1)
    with store.unchanged():
        assert store.run(verbs.SumPage("macs")) == store.run(verbs.SumPage("macs"))
