"""Another program wrote what is no count into a counter: no step stops half way, none is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fairlane import verbs
from fairlane.errors import ForeignKey
from fairlane.model import Leased, TaskState
from fairlane.services.dispatcher import Dispatcher, LedDispatcher
from fairlane.services.janitor import Janitor
from support.store import LANE, Store, mac

SPOILT = ("1.5", "nonsense", "nan", "99999999999999999999")


@pytest.mark.parametrize("value", SPOILT)
@pytest.mark.parametrize(
    ("key", "field"),
    [
        ("GLOBAL_PENDING", ""),
        ("TOTALS", "accepted"),
        ("TOTALS", "done"),
        (f"VIRTUAL:{LANE}", "pending"),
        (f"VIRTUAL:{LANE}", "leased"),
    ],
)
def test_every_task_ends(store: Store, key: str, field: str, value: str) -> None:
    base, _, lane = key.partition(":")
    store.is_spoilt = True  # its counts are for a repair
    name = store.keys.name(base) + (f":{lane}" if lane else "")

    def spoil() -> None:
        if field:
            store.redis.hset(name, field, value)
        else:
            store.redis.set(name, value)

    spoil()
    ids = store.enqueue(1, 3)
    spoil()
    store.client.enqueue_many([(mac(2), LANE, {}), (mac(2), LANE, {})])
    spoil()
    done, deferred, failed, *others = store.claim(10)
    assert len(others) == 2
    for leased in (done, deferred, failed, *others):
        spoil()
        store.start(leased)
    spoil()
    store.finish(done)
    spoil()
    store.run(verbs.Defer(deferred.task_id, deferred.attempt, "later", "task"))
    spoil()
    store.run(verbs.Fail(failed.task_id, failed.attempt, "boom", "it failed"))
    spoil()
    store.run(verbs.Cancel(others[0].task_id, force=True))
    for _ in range(20):
        store.clock.advance(60_000)
        spoil()
        store.run(verbs.Sweep())
        spoil()
        for leased in store.claim(10):
            store.start(leased)
            spoil()
            store.finish(leased)
    assert store.state(ids[0]) is TaskState.DONE
    ended = {store.state(task_id) for task_id in (*ids, *(each.task_id for each in others))}
    assert ended == {TaskState.DONE, TaskState.CANCELLED}
    spoil()
    store.run(verbs.RecordMinute())


def test_a_task_whose_time_was_spoiled_still_comes_back(store: Store) -> None:
    first, second = store.running(1), store.running(2)
    store.is_spoilt = True
    for leased in (first, second):
        store.redis.hset(store.keys.task(leased.task_id), "expires_at", "nonsense")
    store.run(verbs.Fail(first.task_id, first.attempt, "boom", "it failed"))
    store.run(verbs.Defer(second.task_id, second.attempt, "later", "task"))
    assert {store.state(each.task_id) for each in (first, second)} == {TaskState.DELAYED}


def test_a_list_of_dead_letters_that_names_a_live_task_does_not_delete_it(
    open_store: Callable[..., Store],
) -> None:
    store = open_store(dead_letter_cap=1, max_attempts=1)
    store.is_spoilt = True
    leased = store.running(2)
    (live,) = store.enqueue(1)
    store.redis.rpush(store.keys.name("DEAD_LETTER"), live)
    store.run(verbs.Fail(leased.task_id, leased.attempt, "boom", "no"))
    assert store.state(leased.task_id) is TaskState.DEAD
    assert store.state(live) is TaskState.PENDING


def test_what_the_janitor_cannot_do_keeps_nothing_else_from_being_done(store: Store) -> None:
    """The history is for people to look at: it must not hold up a task."""
    store.offer(1)
    store.redis.set(store.keys.name("HISTORY"), "another program's")
    (late,) = store.enqueue(1, ttl_ms=1_000)
    store.clock.advance(2_000)
    with pytest.raises(ForeignKey):
        Janitor(store.client).step()
    assert store.state(late) is TaskState.EXPIRED
    assert store.redis.exists(store.keys.name("WATERMARK"))

    (waits,) = store.enqueue(2)
    published: list[Leased] = []
    dispatcher = Dispatcher(store.client, published.extend, "led")
    LedDispatcher(store.client, dispatcher, Janitor(store.client), "led").step()
    assert [leased.task_id for leased in published] == [waits]
    store.redis.delete(store.keys.name("HISTORY"))


@pytest.mark.parametrize("value", SPOILT)
def test_a_counter_begins_anew(store: Store, value: str) -> None:
    store.is_spoilt = True
    store.redis.set(store.keys.name("GLOBAL_PENDING"), value)
    store.redis.hset(store.keys.name("TOTALS"), "accepted", value)
    store.enqueue(1, 2)
    assert store.redis.get(store.keys.name("GLOBAL_PENDING")) == "2"
    assert store.redis.hget(store.keys.name("TOTALS"), "accepted") == "2"


def test_a_count_of_leases_does_not_fall_below_none(store: Store) -> None:
    leased = store.running()
    store.is_spoilt = True
    store.redis.hset(store.keys.lane("VIRTUAL", LANE), "leased", 0)
    store.enqueue(2)  # a lane at rest would forget it
    store.finish(leased)
    assert store.redis.hget(store.keys.lane("VIRTUAL", LANE), "leased") == "0"


def test_a_lease_is_over_in_the_lane_that_it_was_in(store: Store) -> None:
    leased = store.running()
    store.redis.hset(store.keys.task(leased.task_id), "lane", "ocr")
    store.finish(leased)
    assert store.redis.zcard(store.keys.lane("INFLIGHT", LANE)) == 0
    assert store.client.task(leased.task_id).lane == LANE
