"""Read the history: a row for each of the last minutes that has one, oldest first."""

from __future__ import annotations

import pytest

from fairlane import verbs
from fairlane.errors import InvalidData
from fairlane.verbs.history import MOST_MINUTES
from support.store import Store

MINUTE_MS = 60_000


def record(store: Store, count: int) -> None:
    for _ in range(count):
        store.enqueue(1, cost_ms=1)
        store.run(verbs.RecordMinute())
        store.clock.advance(MINUTE_MS)


def test_the_last_minutes_oldest_first(store: Store) -> None:
    record(store, 5)
    store.clock.advance(-MINUTE_MS)
    told = store.run(verbs.ReadHistory(3))
    assert [minute.pending for minute in told] == [3, 4, 5]
    assert [minute.at_ms for minute in told] == sorted(minute.at_ms for minute in told)
    assert len(store.run(verbs.ReadHistory(60))) == 4


def test_a_minute_that_nobody_recorded_is_part_of_the_next(store: Store) -> None:
    record(store, 1)
    store.clock.advance(4 * MINUTE_MS)
    record(store, 1)
    (minute,) = store.run(verbs.ReadHistory())
    assert (minute.seconds, minute.enqueued) == (300.0, 1)


def test_rows_of_the_day_before_are_not_todays(store: Store) -> None:
    record(store, 3)
    store.clock.advance(1_440 * MINUTE_MS - 2 * MINUTE_MS)
    assert store.run(verbs.ReadHistory(MOST_MINUTES)) == ()


def test_a_store_that_came_back_older_counts_from_where_it_is(store: Store) -> None:
    store.is_spoilt = True
    store.redis.hset(store.keys.name("TOTALS"), "accepted", 1_000)
    store.run(verbs.RecordMinute())
    store.redis.hset(store.keys.name("TOTALS"), "accepted", 10)
    store.clock.advance(MINUTE_MS)
    store.run(verbs.RecordMinute())
    assert store.run(verbs.ReadHistory())[0].enqueued == 0


@pytest.mark.parametrize("row", ["{minute} no JSON", "{minute} {{}}", "{minute}", b"{minute} \xff"])
def test_a_row_that_cannot_be_read_darkens_no_other(store: Store, row: str | bytes) -> None:
    record(store, 4)
    spoilt = (store.clock.now_ms - 2 * MINUTE_MS) // MINUTE_MS
    written = row.decode("latin-1") if isinstance(row, bytes) else row
    store.redis.hset(
        store.keys.name("HISTORY"),
        str(spoilt % 1_440),
        written.format(minute=spoilt).encode("latin-1"),
    )
    assert [minute.enqueued for minute in store.run(verbs.ReadHistory())] == [1, 2]


@pytest.mark.parametrize("minutes", [0, 1_440, 1.5])
def test_what_cannot_be_asked(store: Store, minutes: int) -> None:
    store.refuses(InvalidData, verbs.ReadHistory(minutes))


def test_twice_reads_again(store: Store) -> None:
    record(store, 3)
    with store.unchanged():
        assert store.run(verbs.ReadHistory()) == store.run(verbs.ReadHistory())
