"""Whose a task is, or what a device has, was changed by another program: no count is left wrong.

The rule: no counter falls below its list, and what is left above it a `reconcile` mends.
"""

from __future__ import annotations

from typing import Any

import pytest

from fairlane import TaskState, verbs
from fairlane.errors import TaskNotFound
from support.store import LANE, Store, mac
from verbs.conftest import Open

#: What another program wrote into a task's record.
CHANGED = {
    "another lane": ("lane", "ocr"),
    "a lane that is none": ("lane", "nonsense"),
    "another device": ("mac", mac(9)),
    "a device that is none": ("mac", "nonsense"),
}


def change(store: Store, task_id: str, changed: str) -> None:
    store.redis.hset(store.keys.task(task_id), *CHANGED[changed])


def serve_all(store: Store, every_ms: int) -> None:
    """Claim, start and finish whatever there is."""
    for _ in range(10):
        for leased in store.claim(5):
            store.start(leased)
            store.finish(leased)
        store.clock.advance(every_ms)


def is_as_if_nothing_was(store: Store) -> bool:
    """Prove that nothing waits and nothing is leased, by every counter."""
    store.run(verbs.Reconcile())
    assert store.redis.get(store.keys.name("GLOBAL_PENDING")) in (None, "0")
    assert store.client.devices() == ()
    for lane in store.run(verbs.InspectLanes()):
        assert (lane.pending, lane.leased) == (0, 0), lane
    assert store.run(verbs.InspectTotals()).lost() == 0
    return True


@pytest.mark.parametrize("changed", CHANGED)
def test_a_changed_one_is_cancelled_without_a_count_too_few(store: Store, changed: str) -> None:
    """The queue still has its id, which the next claim drops."""
    task_id, other = store.enqueue(1, 2)
    store.enqueue(9)
    change(store, task_id, changed)
    store.is_spoilt = True
    store.client.cancel(task_id)
    assert store.state(task_id) is TaskState.CANCELLED
    assert int(store.redis.get(store.keys.name("GLOBAL_PENDING"))) == 3
    assert store.client.device(mac(9)).pending == 1
    assert {leased.mac for leased in store.claim(5)} == {mac(1), mac(9)}
    assert int(store.redis.get(store.keys.name("GLOBAL_PENDING"))) == 0
    assert store.state(other) is TaskState.LEASED


@pytest.mark.parametrize("changed", CHANGED)
def test_a_changed_one_is_no_count_too_few_for_a_purge(store: Store, changed: str) -> None:
    """Nobody can tell whose it is but its queue: the claim that meets it there sets it aside."""
    (task_id,) = store.enqueue(1)
    change(store, task_id, changed)
    store.is_spoilt = True
    store.clock.advance(store.settings.task_ttl_ms + 1)
    for _ in range(3):
        store.run(verbs.Purge())
    assert int(store.redis.get(store.keys.name("GLOBAL_PENDING"))) == 1
    store.enqueue(1)
    assert len(store.claim(5)) == 1
    (letter,) = store.run(verbs.DeadLetters())
    assert (letter.task_id, letter.mac, letter.cause) == (task_id, mac(1), "corrupt")
    assert int(store.redis.get(store.keys.name("GLOBAL_PENDING"))) == 0


@pytest.mark.parametrize("changed", CHANGED)
@pytest.mark.parametrize("end", ["finish", "fail", "defer", "cancel", "start"])
def test_the_lease_of_a_changed_one_ends(store: Store, changed: str, end: str) -> None:
    """Nothing is below zero, and no place is taken for ever."""
    store.offer(1)
    if end == "start":
        store.enqueue(1)
        (leased,) = store.claim()
    else:
        leased = store.running(1)
    change(store, leased.task_id, changed)
    store.is_spoilt = True
    try:
        if end == "finish":
            store.finish(leased)
        elif end == "fail":
            store.run(verbs.Fail(leased.task_id, leased.attempt, "boom", "", final=True))
        elif end == "defer":
            store.run(verbs.Defer(leased.task_id, leased.attempt))
        elif end == "cancel":
            store.run(verbs.Cancel(leased.task_id, force=True))
        else:
            store.start(leased)
    except TaskNotFound:
        assert end == "start"
    for _ in range(2):
        store.clock.advance(store.settings.defer_backoff_max_ms)
        store.run(verbs.Sweep())
        store.offer(1)
        for again in store.claim(5):
            store.run(verbs.Cancel(again.task_id))
    assert is_as_if_nothing_was(store)
    (other,) = store.enqueue(2)
    assert [leased.task_id for leased in store.claim(5)] == [other], "the slot is free"


NO_NUMBERS = ("nan", "-nan", "inf", "nonsense", "", "-3", "1.5", "1e300")


@pytest.mark.parametrize("value", NO_NUMBERS)
@pytest.mark.parametrize("settings", [{}, {"policy": "aging"}], ids=str)
@pytest.mark.parametrize(
    "field",
    ["pending_count", "oldest_created_at", "leased"]
    + [f"{LANE}.{name}" for name in ("pending_count", "oldest_created_at", "leased", "turn", "tag")]
    + [f"{LANE}.served_at", f"{LANE}.run_ms"],
)
def test_a_count_that_is_none_is_counted_anew(
    open_store: Open, field: str, value: str, settings: dict[str, Any]
) -> None:
    store = open_store(**settings)
    store.enqueue(1, 3)
    store.enqueue(2, 1)
    leased = store.claim(2)
    store.redis.hset(store.keys.device("META", mac(1)), field, value)
    store.is_spoilt = True
    store.enqueue(1)
    for one in leased:
        store.start(one)
        store.finish(one)
    serve_all(store, 1)
    assert is_as_if_nothing_was(store)


@pytest.mark.parametrize("value", NO_NUMBERS)
@pytest.mark.parametrize(
    "field", ["weight", "min_running", "max_running", "rate", "tokens", "tokens_at"]
)
def test_a_limit_that_is_none_is_no_limit(store: Store, field: str, value: str) -> None:
    store.run(verbs.Configure(mac(1), weight=2, max_running=5, min_running=1, rate_per_s=100))
    store.redis.hset(store.keys.device("META", mac(1)), field, value)
    store.is_spoilt = True
    store.enqueue(1, 3)
    store.enqueue(2, 1)
    serve_all(store, 1_000)
    assert is_as_if_nothing_was(store)
