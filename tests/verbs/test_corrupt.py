"""What cannot be read is set aside by whoever meets it first, and the neighbours never notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairlane import TaskState, verbs
from fairlane.model import TaskRecord
from support.store import LANE, Store, mac
from verbs.conftest import Open

#: What was done to a record, and the payload that its dead letter must keep.
Deed = Callable[[Store, str], bytes | None]
BODY = b'{"n":0}'


def to_string(store: Store, task_id: str) -> bytes:
    store.redis.delete(store.keys.task(task_id))
    store.redis.set(store.keys.task(task_id), "foreign bytes")
    return b"foreign bytes"


def to_list(store: Store, task_id: str) -> None:
    store.redis.delete(store.keys.task(task_id))
    store.redis.rpush(store.keys.task(task_id), "a", "b")


def to_other_hash(store: Store, task_id: str) -> bytes:
    store.redis.delete(store.keys.task(task_id))
    store.redis.hset(store.keys.task(task_id), "foreign", "value")
    return b""


def without(*fields: str) -> Deed:
    def deed(store: Store, task_id: str) -> bytes:
        store.redis.hdel(store.keys.task(task_id), *fields)
        return BODY

    return deed


def with_value(field: str, value: str) -> Deed:
    def deed(store: Store, task_id: str) -> bytes:
        store.redis.hset(store.keys.task(task_id), field, value)
        return BODY

    return deed


DEEDS: dict[str, Deed] = {
    "a string": to_string,
    "a list": to_list,
    "another hash": to_other_hash,
    "no state": without("state"),
    "no mac": without("mac"),
    "no lane": without("lane"),
    "no type": without("task_type"),
    "no age": without("created_at"),
    "no end": without("expires_at"),
    "an age that is none": with_value("created_at", "yesterday"),
    "an age of nan": with_value("created_at", "nan"),
    "an end of nan": with_value("expires_at", "nan"),
    "an end of inf": with_value("expires_at", "inf"),
    "a state that is none": with_value("state", "nonsense"),
    "another lane": with_value("lane", "ocr"),
    "a lane that is none": with_value("lane", "nonsense"),
    "another device": with_value("mac", mac(9)),
    "a device that is none": with_value("mac", "nonsense"),
}
each_deed = pytest.mark.parametrize("deed", DEEDS.values(), ids=DEEDS)
#: Once it has left its queue, only the record says whose a task is.
TOLD = {name: deed for name, deed in DEEDS.items() if name != "another device"}
TOLD_OF_DELAYED = {name: deed for name, deed in TOLD.items() if name != "another lane"}


def letters(store: Store) -> dict[str, TaskRecord]:
    return {letter.task_id: letter for letter in store.run(verbs.DeadLetters())}


def assert_letter(store: Store, task_id: str, payload: bytes | None) -> None:
    letter = letters(store)[task_id]
    assert (letter.state, letter.cause) == (TaskState.DEAD, "corrupt")
    assert letter.error
    assert payload is None or letter.payload == payload
    assert payload is not None or letter.payload, "what DUMP told is kept"
    assert store.run(verbs.InspectTotals()).counts["corrupt"] >= 1


def test_a_letter_is_whole_whatever_its_record_lacked(store: Store) -> None:
    no_age, no_end, short, foreign = store.enqueue(1, 4)
    for task_id, field in ((no_age, "created_at"), (no_end, "expires_at"), (short, "state")):
        store.redis.hdel(store.keys.task(task_id), field)
    store.redis.expire(store.keys.task(short), 1_000)
    to_string(store, foreign)
    store.clock.advance(10)
    assert store.claim(4) == ()
    now_ms, found = store.clock.now_ms, letters(store)
    assert (found[no_age].created_at_ms, found[no_end].created_at_ms) == (now_ms, now_ms - 10)
    assert {letter.expires_at_ms for letter in found.values()} == {now_ms}
    assert store.redis.ttl(store.keys.task(short)) == -1, "it would end by itself"
    assert store.run(verbs.Redrive([foreign])) == (True,)
    assert store.claim() == (), "it has no type that anybody could run"
    assert_letter(store, foreign, b"foreign bytes")


def all_done(store: Store, tasks: list[str]) -> None:
    for task in tasks:
        assert store.state(task) is TaskState.DONE


@each_deed
@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("settings", [{}, {"policy": "aging", "order": "lifo"}], ids=str)
def test_a_claim_goes_on_to_the_next_task(
    open_store: Open, deed: Deed, at: int, settings: dict[str, Any]
) -> None:
    store = open_store(**settings)
    tasks = store.enqueue(1, 3)
    neighbour = store.enqueue(2, 2)
    store.redis.hset(store.keys.task(tasks[at]), "payload", BODY)
    payload = deed(store, tasks[at])
    assert sorted(store.served(6)) == sorted([mac(1), mac(1), mac(2), mac(2)])
    all_done(store, [*tasks[:at], *tasks[at + 1 :], *neighbour])
    assert_letter(store, tasks[at], payload)
    assert store.client.devices() == ()
    assert store.run(verbs.InspectTotals()).lost() == 0


@each_deed
def test_a_batch_has_no_hole(store: Store, deed: Deed) -> None:
    tasks = store.enqueue(1, 4)
    store.redis.hset(store.keys.task(tasks[1]), "payload", BODY)
    payload = deed(store, tasks[1])
    assert [leased.task_id for leased in store.claim(3)] == [tasks[0], tasks[2], tasks[3]]
    assert_letter(store, tasks[1], payload)


@each_deed
def test_a_two_step_turn_goes_on(store: Store, deed: Deed) -> None:
    tasks = store.enqueue(1, 2)
    store.redis.hset(store.keys.task(tasks[0]), "payload", BODY)
    payload = deed(store, tasks[0])
    turn = store.client.run(verbs.ClaimDevice(LANE))
    assert turn is not None
    popped = store.run(verbs.Pop(turn.mac, LANE, turn.token)).leased
    assert [leased.task_id for leased in popped] == [tasks[1]]
    assert store.run(verbs.Release(turn.mac, LANE, turn.token)).remaining == 0
    assert_letter(store, tasks[0], payload)


def is_nobodys(store: Store, task_id: str) -> bool:
    """Whether nobody can say whose a task was: the counts of its device are for a repair."""
    key = store.keys.task(task_id)
    return bool(store.redis.type(key) != "hash" or store.redis.hget(key, "mac") != mac(1))


@pytest.mark.parametrize("deed", TOLD.values(), ids=TOLD)
def test_a_sweep_sets_aside_what_was_leased_and_goes_on(store: Store, deed: Deed) -> None:
    (task_id,) = store.enqueue(1)
    (other,) = store.enqueue(2)
    store.claim(2)
    store.redis.hset(store.keys.task(task_id), "payload", BODY)
    payload = deed(store, task_id)
    store.clock.advance(store.settings.lease_ms)
    store.is_spoilt = is_nobodys(store, task_id)
    assert f"{other}.1" in store.run(verbs.Sweep()).lost
    assert store.state(other) is TaskState.PENDING
    if deed is DEEDS["no type"]:
        store.claim(2)  # a sweep has no use for it
    assert_letter(store, task_id, payload)
    with store.unchanged():
        store.run(verbs.Sweep())


@pytest.mark.parametrize("deed", TOLD_OF_DELAYED.values(), ids=TOLD_OF_DELAYED)
def test_a_delayed_one_is_set_aside_when_it_falls_due(store: Store, deed: Deed) -> None:
    (task_id,) = store.enqueue(1)
    (other,) = store.enqueue(2)
    due_ms = 0
    for leased in store.claim(2):
        due_ms = max(due_ms, store.run(verbs.Defer(leased.task_id, 1)).due_ms)
    key = store.keys.task(task_id)
    store.redis.hset(key, "payload", BODY)
    payload = deed(store, task_id)
    store.clock.now_ms = due_ms
    lane = store.redis.hget(key, "lane") if store.redis.type(key) == "hash" else None
    store.is_spoilt = is_nobodys(store, task_id) or lane != LANE
    store.run(verbs.Sweep())
    assert store.state(other) is TaskState.PENDING
    if deed is DEEDS["no type"]:
        store.claim(2)
    assert_letter(store, task_id, payload)


@each_deed
def test_a_purge_goes_on(store: Store, deed: Deed) -> None:
    tasks = store.enqueue(1, 3)
    deed(store, tasks[1])
    store.clock.advance(store.settings.task_ttl_ms + 1)
    store.is_spoilt = True
    for _ in range(5):
        store.run(verbs.Purge())
    assert store.state(tasks[0]) is TaskState.EXPIRED
    assert store.state(tasks[2]) is TaskState.EXPIRED


@each_deed
def test_a_worker_is_not_silenced(store: Store, deed: Deed) -> None:
    one = store.running(1)
    other = store.running(2)
    deed(store, one.task_id)
    store.is_spoilt = True
    store.clock.advance(store.settings.lease_ms - 1)
    store.offer(2, active=[(one.task_id, 1), (other.task_id, 1)])
    store.clock.advance(1)
    assert f"{other.task_id}.1" not in store.run(verbs.Sweep()).lost
    store.finish(other)


def test_an_id_without_a_record_is_counted_and_told(store: Store) -> None:
    tasks = store.enqueue(1, 3)
    store.redis.delete(store.keys.task(tasks[0]))
    store.redis.zrem(store.keys.name("DEADLINES"), tasks[0])
    # It is lost, and nothing here can change that: the checks are to look at the others.
    store.redis.hincrby(store.keys.name("TOTALS"), "accepted", -1)
    assert len(store.claim(3)) == 2
    assert store.client.devices() == ()
    assert store.run(verbs.InspectTotals()).counts["corrupt"] == 1
    (told,) = [event for event in store.client.events() if event.event == "corrupt"]
    assert (told.mac, told.tasks) == (mac(1), (tasks[0],))
    assert letters(store) == {}


@pytest.mark.parametrize("delayed", [False, True])
def test_an_id_that_was_planted_moves_no_counter(store: Store, delayed: bool) -> None:
    if delayed:
        store.enqueue(1)
        (leased,) = store.claim()
        store.run(verbs.Defer(leased.task_id, 1))
    (task_id,) = store.enqueue(1)
    store.redis.lpush(store.keys.device("QUEUE", mac(1), LANE), "planted", "planted too")
    assert [leased.task_id for leased in store.claim(1)] == [task_id]
    assert store.client.device(mac(1)).pending == delayed
    assert store.run(verbs.InspectTotals()).counts["corrupt"] == 2


def test_an_id_that_stands_twice_runs_once(store: Store) -> None:
    (task_id,) = store.enqueue(1)
    store.redis.rpush(store.keys.device("QUEUE", mac(1), LANE), task_id)
    (leased,) = store.claim(5)
    store.start(leased)
    store.finish(leased)
    assert store.claim(5) == ()
    assert store.state(task_id) is TaskState.DONE


def test_an_id_in_a_foreign_queue_stays_in_its_own(store: Store) -> None:
    (task_id,) = store.enqueue(2)
    (own,) = store.enqueue(1)
    store.redis.lpush(store.keys.device("QUEUE", mac(1), LANE), task_id)
    assert {leased.task_id for leased in store.claim(5)} == {task_id, own}
    assert letters(store) == {}


def test_a_dead_letter_of_nobody_is_listed_and_dropped(store: Store) -> None:
    (task_id,) = store.enqueue(1)
    store.claim()
    to_string(store, task_id)
    store.clock.advance(store.settings.lease_ms)
    store.is_spoilt = True
    store.run(verbs.Sweep())
    assert letters(store)[task_id].mac == ""
    assert store.run(verbs.Redrive([task_id])) == (False,)
    assert store.run(verbs.Drop([task_id])) == (True,)


def test_a_letter_that_another_program_spoilt_hides_no_other(store: Store) -> None:
    one, other = store.bury(1), store.bury(2)
    store.redis.delete(store.keys.task(one))
    store.redis.set(store.keys.task(one), "foreign")
    store.is_spoilt = True
    assert list(letters(store)) == [other]
    assert store.run(verbs.Redrive([one, other])) == (False, True)
