"""Publish the system's level: pending tasks, devices, workers, and the measured drain rate."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fairlane import verbs
from support.store import Store


def test_returns_the_level(store: Store) -> None:
    store.bury(4)
    store.enqueue(1, 3)
    store.enqueue(2)
    store.offer(2)
    (leased,) = store.claim()
    store.run(verbs.Defer(leased.task_id, 1))
    store.claim()
    level = store.run(verbs.Watermark())
    assert (level.total_pending, level.mac_count, level.active_workers) == (3, 2, 1)
    assert (level.delayed, level.leased, level.dead_letters) == (1, 1, 1)
    assert level.overloaded_macs == 0


@pytest.mark.parametrize(
    "moment",
    ["1970-01-01T00:00:01", "2000-02-29T23:59:59", "2024-12-31T12:00:00", "2100-03-01T00:00:00"],
)
def test_the_timestamp_is_rfc_3339_in_utc(store: Store, moment: str) -> None:
    store.clock.now_ms = int(datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp() * 1000)
    assert store.run(verbs.Watermark()).timestamp == moment + "Z"


def test_a_watermark_ends_20_s_after_it_was_published(store: Store) -> None:
    store.run(verbs.Watermark())
    assert 19_000 < store.redis.pttl(store.keys.name("WATERMARK")) <= 20_000


def test_the_drain_rate_is_measured_from_what_ended(store: Store) -> None:
    store.enqueue(1)
    store.run(verbs.Watermark())
    for _ in range(10):
        store.finish(store.running())
    store.clock.advance(60_000)
    assert store.run(verbs.Watermark()).drained_per_hour == 600
    store.clock.advance(60_000)
    assert store.run(verbs.Watermark()).drained_per_hour == 420, "30 % of the new, 70 % of the old"


def test_who_has_nothing_to_do_is_not_slow(store: Store) -> None:
    store.run(verbs.Watermark())
    store.finish(store.running())
    store.clock.advance(60_000)
    assert store.run(verbs.Watermark()).drained_per_hour == 0, "nobody knows yet"

    store.enqueue(1, 100)
    store.clock.advance(15_000)
    store.run(verbs.Watermark())
    for _ in range(10):
        store.finish(store.running())
    store.clock.advance(60_000)
    assert store.run(verbs.Watermark()).drained_per_hour == 600
    for leased in store.claim(100):
        store.start(leased)
        store.finish(leased)
    store.clock.advance(15_000)
    busy = store.run(verbs.Watermark()).drained_per_hour
    store.clock.advance(600_000)
    assert store.run(verbs.Watermark()).drained_per_hour == busy > 600


def test_twice_publishes_again_from_the_later_clock(store: Store) -> None:
    first = store.run(verbs.Watermark())
    with store.unchanged():
        assert store.run(verbs.Watermark()) == first
    store.clock.advance(1_000)
    assert store.run(verbs.Watermark()).timestamp > first.timestamp
