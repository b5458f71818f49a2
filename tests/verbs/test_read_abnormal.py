"""Read abnormal data, oldest first, and leave it there."""

from __future__ import annotations

from fairlane import verbs
from fairlane.errors import InvalidData
from support.store import Store


def test_returns_records_as_they_came(store: Store) -> None:
    records = ({"mac": "x", "a": []}, {"文": "\u0000"}, {"f": 1.0, "big": 130775545883395173})
    assert store.run(verbs.ReadAbnormal()) == ()
    store.run(verbs.ReportAbnormal(records))
    assert store.run(verbs.ReadAbnormal()) == records
    assert store.run(verbs.ReadAbnormal(1, 1)) == records[1:2]


def test_what_cannot_be_asked(store: Store) -> None:
    for offset, limit in ((-1, 1), (0, 0), (0, 1_001)):
        store.refuses(InvalidData, verbs.ReadAbnormal(offset, limit))


def test_twice_reads_again(store: Store) -> None:
    store.run(verbs.ReportAbnormal([{"n": 1}]))
    with store.unchanged():
        assert store.run(verbs.ReadAbnormal()) == store.run(verbs.ReadAbnormal())
