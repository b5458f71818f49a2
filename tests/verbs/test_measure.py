"""Note how full the store's memory is; over the high mark no task is taken in."""

from __future__ import annotations

import logging

import pytest

from fairlane import Receipt, Refusal, Refused, verbs
from fairlane.errors import InvalidData
from fairlane.model import Fullness
from fairlane.services.janitor import Janitor
from support.store import LANE, Store, mac
from verbs.conftest import Open


def verdict(store: Store) -> Receipt | Refusal:
    return store.run(verbs.Enqueue(mac(1), LANE, {}))


def test_over_the_high_mark_a_task_is_refused_and_at_the_low_one_taken_again(store: Store) -> None:
    assert store.run(verbs.Measure(90, 100)) == Fullness(False, 90, False)
    assert isinstance(verdict(store), Receipt)
    assert store.run(verbs.Measure(901, 1_000)) == Fullness(True, 91, True)
    refusal = store.run(verbs.Enqueue(mac(1), LANE, {}, task_id="no"))
    assert refusal == Refusal("no", mac(1), "store_full", 91, 90, 15_000)
    assert not store.redis.exists(store.keys.task("no"))
    assert store.run(verbs.Measure(82, 100)) == Fullness(True, 82, False)
    assert isinstance(verdict(store), Refusal)
    assert store.run(verbs.Measure(81, 100)) == Fullness(False, 81, True)
    assert isinstance(verdict(store), Receipt)
    assert store.run(verbs.InspectTotals()).counts["refused_store_full"] == 2
    told = [event.event for event in store.client.events() if event.event.startswith("store_")]
    assert told == ["store_full", "store_has_room"]


def test_a_mark_is_believed_for_its_time_only(store: Store) -> None:
    """A keeper that dies must not shut the door for good."""
    store.run(verbs.Measure(95, 100, lasts_ms=10_000))
    store.clock.advance(9_999)
    assert isinstance(verdict(store), Refusal)
    store.clock.advance(1)
    assert isinstance(verdict(store), Receipt)


@pytest.mark.parametrize("admission", ["fair", "system"])
def test_every_way_in_is_shut(open_store: Open, admission: str) -> None:
    store = open_store(admission=admission)
    store.client.enqueue(mac(1), LANE, {}, task_id="known")
    store.run(verbs.Measure(95, 100))
    batch = [verbs.Enqueue(mac(at), LANE, {}) for at in (1, 2)]
    assert [getattr(each, "reason", "") for each in store.run(verbs.EnqueueMany(batch))] == [
        "store_full"
    ] * 2
    keyed = store.run(verbs.Enqueue(mac(3), LANE, {}, idempotency_key="k"))
    assert isinstance(keyed, Refusal)
    assert store.client.enqueue(mac(1), LANE, {}, task_id="known").known, "what is stored is told"
    assert len(store.claim()) == 1, "the drain goes on"


def test_no_limit_is_never_full(store: Store) -> None:
    store.run(verbs.Measure(95, 100))
    assert store.run(verbs.Measure(10**12, 0)) == Fullness(False, 0, True)
    assert isinstance(verdict(store), Receipt)


def test_the_marks_are_settings(open_store: Open) -> None:
    store = open_store(store_full_percent=50, low_mark_percent=50)
    assert store.run(verbs.Measure(51, 100)).is_full
    assert store.run(verbs.Measure(26, 100)).is_full
    assert not store.run(verbs.Measure(25, 100)).is_full


def test_the_janitor_measures(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    janitor = Janitor(store.client)
    used = store.redis.info("memory")["used_memory"]
    store.redis.config_set("maxmemory", int(used * 1.06))
    try:
        janitor.step()
        assert isinstance(verdict(store), Refusal)
        store.redis.config_set("maxmemory", 100 * used)
        janitor.step()
        assert isinstance(verdict(store), Receipt)
    finally:
        store.redis.config_set("maxmemory", 0)
    told = [row.levelno for row in caplog.records if "maxmemory is used" in row.message]
    assert told == [logging.ERROR, logging.WARNING]


@pytest.mark.parametrize(
    "verb",
    [
        verbs.Measure(-1, 100),
        verbs.Measure(1, 1.5),  # type: ignore[arg-type]
        verbs.Measure(10**16, 100),
        verbs.Measure(1, 100, 0),
    ],
    ids=str,
)
def test_what_is_no_measure(store: Store, verb: verbs.Measure) -> None:
    store.refuses(InvalidData, verb)


def test_twice_notes_it_again(store: Store) -> None:
    assert store.run(verbs.Measure(95, 100)).has_changed
    with store.unchanged():
        assert not store.run(verbs.Measure(95, 100)).has_changed


def test_a_full_store_says_when_to_come_back_by_what_drains(open_store: Open) -> None:
    """Of what waits, the part that is over the low mark must go first."""
    store = open_store()
    store.enqueue(1, 20)
    store.run(verbs.Measure(100, 100))
    with pytest.raises(Refused) as refused:
        store.enqueue(2)
    assert refused.value.refusal.retry_after_ms == 15_000, "nothing was measured"
    store.redis.hset(store.keys.name("CAPACITY"), "drained_per_hour", 3_600)
    with pytest.raises(Refused) as refused:
        store.enqueue(2)
    # 20 wait, and 81 % is the low mark: 3.8 tasks at one a second.
    assert 3_800 <= refused.value.refusal.retry_after_ms <= 3_801
