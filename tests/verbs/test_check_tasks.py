"""Find tasks that are not where their records say."""

from __future__ import annotations

from fairlane import verbs
from fairlane.errors import InvalidData, InvalidMac, InvalidTaskId, UnknownLane
from fairlane.flaw import Flaw
from support.store import LANE, Store, mac


def test_tasks_that_are_where_their_records_say(store: Store) -> None:
    dead = store.bury(2)
    waits, runs = store.enqueue(1, 2)
    store.claim(1)
    assert store.run(verbs.CheckTasks([waits, runs, dead, "unknown"])) == (4, ())


def test_what_is_wrong_is_named_with_what_would_be_right(store: Store) -> None:
    (task,) = store.enqueue(1)
    store.redis.delete(store.keys.device("QUEUE", mac(1), LANE))
    store.redis.zadd(store.keys.name("DELAYED"), {task: 5})
    store.is_spoilt = True
    with store.unchanged():
        assert store.run(verbs.CheckTasks([task])) == (
            1,
            (
                Flaw(task, "pending, in delayed", "1", "0"),
                Flaw(task, "pending, in its queue", "0", "1"),
            ),
        )


def test_a_task_seen_in_a_queue_that_is_not_its_own(store: Store) -> None:
    (task,) = store.enqueue(1)
    store.redis.rpush(store.keys.device("QUEUE", mac(2), LANE), task)
    store.is_spoilt = True
    assert store.run(verbs.CheckTasks([task])) == (1, ())
    _, flaws = store.run(verbs.CheckTasks([task], mac(2), LANE))
    assert flaws == (Flaw(task, "pending, in a queue of another", "1", "0"),)


def test_long_queues_are_looked_through_for_a_few_tasks_at_a_time(store: Store) -> None:
    ids = store.enqueue(1, 10)
    store.redis.rpush(store.keys.device("QUEUE", mac(1), LANE), *["x"] * 60_000)
    store.is_spoilt = True
    assert store.run(verbs.CheckTasks(ids))[0] == 2


def test_what_cannot_be_asked(store: Store) -> None:
    store.refuses(InvalidTaskId, verbs.CheckTasks(["no id"]))
    store.refuses(InvalidMac, verbs.CheckTasks(["a"], "nobody", LANE))
    store.refuses(UnknownLane, verbs.CheckTasks(["a"], mac(1), "no-lane"))
    store.refuses(InvalidData, verbs.CheckTasks(["a"], "", LANE))
    store.refuses(InvalidData, verbs.CheckTasks(["a"] * 1_001))
