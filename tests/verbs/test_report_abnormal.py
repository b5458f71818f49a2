"""Store abnormal data for another service to read; the oldest makes room."""

from __future__ import annotations

from fairlane import verbs
from fairlane.errors import InvalidData, PayloadTooLarge
from support.store import Store
from verbs.conftest import Open


def test_returns_how_many_are_kept_and_dropped(open_store: Open) -> None:
    store = open_store(abnormal_cap=3)
    assert store.run(verbs.ReportAbnormal([{"n": 1}, {"n": 2}])) == (2, 0)
    assert store.run(verbs.ReportAbnormal([{"n": 3}, {"n": 4}])) == (3, 1)
    assert store.run(verbs.ReadAbnormal()) == ({"n": 2}, {"n": 3}, {"n": 4})
    assert store.run(verbs.InspectTotals()).counts == {"abnormal_dropped": 1}


def test_never_more_than_5_000(store: Store) -> None:
    batch = verbs.ReportAbnormal([{"n": n} for n in range(1_000)])
    for _ in range(5):
        store.run(batch)
    assert store.run(verbs.ReportAbnormal([{"n": -1}])) == (5_000, 1)
    assert store.run(verbs.ReadAbnormal(4_999)) == ({"n": -1},)
    assert store.run(verbs.ReadAbnormal(0, 1)) == ({"n": 1},)


def test_it_ends_20_s_after_the_last_report(store: Store) -> None:
    name = store.keys.name("ABNORMAL")
    store.run(verbs.ReportAbnormal([{}]))
    assert 19_000 < store.redis.pttl(name) <= 20_000
    store.redis.pexpire(name, 5_000)
    store.run(verbs.ReportAbnormal([{}]))
    assert 19_000 < store.redis.pttl(name) <= 20_000


def test_what_cannot_be_stored(store: Store) -> None:
    store.refuses(InvalidData, verbs.ReportAbnormal([]))
    store.refuses(InvalidData, verbs.ReportAbnormal([{}] * 1_001))
    store.refuses(InvalidData, verbs.ReportAbnormal([{}, {"x": float("inf")}]))
    store.refuses(InvalidData, verbs.ReportAbnormal([{}, "text"]))  # type: ignore[list-item]
    long = {"x": "x" * store.settings.max_payload_bytes}
    store.refuses(PayloadTooLarge, verbs.ReportAbnormal([{}, long]))


def test_twice_stores_it_twice(store: Store) -> None:
    verb = verbs.ReportAbnormal([{"n": 1}])
    assert (store.run(verb), store.run(verb)) == ((1, 0), (2, 0))
