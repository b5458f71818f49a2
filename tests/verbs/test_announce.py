"""Announce a process and what it was started with; refuse a new one that disagrees."""

from __future__ import annotations

import pytest

from fairlane import verbs
from fairlane.errors import InvalidData, ProcessesDisagree
from support.store import Store

STORE = {"broker": "the store, database 0"}
OTHER = {"broker": "amqp://rabbit:5672/"}


def announce(store: Store, name: str, agreed: dict[str, str], *, is_new: bool = True) -> bool:
    report = {"role": "worker", "version": "1.0", "digest": "d"}
    return store.run(verbs.Announce(name, is_new=is_new, agreed=agreed, report=report))


def test_who_was_started_alike_is_let_in(store: Store) -> None:
    assert announce(store, "host:1:a", STORE)
    assert announce(store, "host:2:b", STORE)
    assert not announce(store, "host:2:b", STORE)
    assert announce(store, "host:3:c", {}), "one that names nothing disagrees with nobody"


def test_a_new_one_that_disagrees_is_refused_with_both_values(store: Store) -> None:
    """A24: the start is refused, naming both values."""
    announce(store, "host:1:a", STORE)
    store.refuses(
        ProcessesDisagree,
        verbs.Announce("host:2:b", is_new=True, agreed=OTHER),
        "broker: this process says amqp://rabbit:5672/, worker host:1:a says the store, database 0",
    )


def test_one_that_runs_goes_on_whatever_others_say(store: Store) -> None:
    announce(store, "host:1:a", STORE)
    announce(store, "host:2:b", OTHER, is_new=False)
    assert not announce(store, "host:1:a", STORE, is_new=False)


def test_who_is_silent_for_its_ttl_counts_no_more(store: Store) -> None:
    announce(store, "host:1:a", STORE)
    store.clock.advance(store.settings.lease_ms)
    assert announce(store, "host:2:b", OTHER)
    assert [one.process_id for one in store.run(verbs.InspectProcesses()).living] == ["host:2:b"]
    assert not store.redis.exists(store.keys.name("PROCESS") + "host:1:a"), "it was reaped"
    assert store.redis.zrange(store.keys.name("PROCESSES"), 0, -1) == ["host:2:b"]


def test_what_was_announced_ends_by_itself(store: Store) -> None:
    announce(store, "host:1:a", STORE)
    for name in (store.keys.name("PROCESSES"), store.keys.name("PROCESS") + "host:1:a"):
        assert 0 < store.redis.pttl(name) <= store.settings.lease_ms


def test_no_more_than_a_thousand_are_known(store: Store) -> None:
    raw, name = store.redis, store.keys.name("PROCESSES")
    raw.zadd(name, {f"host:{at}:x": store.clock.now_ms + 1 + at for at in range(1_000)})
    announce(store, "host:1:a", STORE)
    assert raw.zcard(name) == 1_000
    assert raw.zscore(name, "host:0:x") is None


def test_what_cannot_be_announced(store: Store) -> None:
    store.refuses(InvalidData, verbs.Announce("a", report={"announced_at": "1"}), "itself")
    many = {str(at): "" for at in range(33)}
    store.refuses(InvalidData, verbs.Announce("a", report=many), "values")


@pytest.mark.parametrize("value", ["", "a" * 2_000, "a\nb"])
def test_odd_values_are_compared_as_they_are(store: Store, value: str) -> None:
    announce(store, "host:1:a", {"broker": value})
    announce(store, "host:2:b", {"broker": value})
