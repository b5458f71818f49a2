"""Give up a running task whose data cannot be read: it is dead with cause corrupt."""

from __future__ import annotations

import pytest

from fairlane import TaskState, verbs
from fairlane.errors import CorruptRecord, StaleAttempt, TaskEnded, TaskNotFound
from support.store import LANE, Store, mac

BROKEN = (b"", b"{", b"not json", b"[1]", b"7", b"\xff\xfe", b'{"a":' * 5_000, b'{"a":1}{')


@pytest.mark.parametrize("payload", BROKEN, ids=lambda value: str(value[:8]))
def test_data_that_cannot_be_read_is_told_at_the_start_and_kept_whole(
    store: Store, payload: bytes
) -> None:
    (task_id,) = store.enqueue(1)
    store.redis.hset(store.keys.task(task_id), "payload", payload)
    (leased,) = store.claim()
    with pytest.raises(CorruptRecord, match=task_id) as raised:
        store.start(leased)
    assert store.run(verbs.Quarantine(task_id, 1, str(raised.value)))
    (letter,) = store.run(verbs.DeadLetters())
    assert (letter.cause, letter.payload, letter.failures) == ("corrupt", payload, 0)
    assert task_id in letter.error
    assert store.run(verbs.InspectTotals()).counts["corrupt"] == 1
    assert store.client.devices() == ()


def test_a_payload_that_is_gone(store: Store) -> None:
    (task_id,) = store.enqueue(1)
    store.redis.hdel(store.keys.task(task_id), "payload")
    (leased,) = store.claim(with_payload=True)
    assert leased.payload == b""
    with pytest.raises(CorruptRecord):
        store.start(leased)


def test_only_the_running_attempt(store: Store) -> None:
    leased = store.running()
    store.refuses(StaleAttempt, verbs.Quarantine(leased.task_id, 2))
    store.refuses(TaskNotFound, verbs.Quarantine("unknown", 1))
    store.finish(leased)
    store.refuses(TaskEnded, verbs.Quarantine(leased.task_id, 1))
    (task_id,) = store.enqueue(2)
    store.claim()
    store.refuses(StaleAttempt, verbs.Quarantine(task_id, 1))


def test_twice_answers_false_and_changes_nothing(store: Store) -> None:
    leased = store.running()
    assert store.run(verbs.Quarantine(leased.task_id, 1, "no JSON"))
    with store.unchanged():
        assert not store.run(verbs.Quarantine(leased.task_id, 1, "no JSON"))
    assert store.state(leased.task_id) is TaskState.DEAD


def test_a_mended_payload_can_be_brought_back(store: Store) -> None:
    leased = store.running()
    store.run(verbs.Quarantine(leased.task_id, 1))
    store.redis.hset(store.keys.task(leased.task_id), "payload", '{"n":7}')
    assert store.run(verbs.Redrive([leased.task_id])) == (True,)
    (again,) = store.claim()
    assert store.start(again).task.data == {"n": 7}
    assert again.mac == mac(1)
    assert again.task_type == LANE
