"""Put tasks where their records say that they are."""

from __future__ import annotations

from fairlane import verbs
from fairlane.errors import InvalidData, InvalidMac, InvalidTaskId, UnknownLane
from fairlane.flaw import Flaw
from support.store import LANE, Store, mac


def test_a_task_in_no_queue_goes_to_the_end_served_next(store: Store) -> None:
    first, second = store.enqueue(1, 2)
    store.redis.lrem(store.keys.device("QUEUE", mac(1), LANE), 1, second)
    looked, flaws = store.run(verbs.MendTasks([first, second]))
    assert (looked, flaws[0]) == (2, Flaw(second, "pending, in its queue", "0", "1"))
    assert [leased.task_id for leased in store.claim(2)] == [second, first]


def test_a_lease_that_is_gone_begins_anew(store: Store) -> None:
    leased = store.running(1)
    store.redis.zrem(store.keys.lane("INFLIGHT", LANE), leased.task_id)
    store.run(verbs.MendTasks([leased.task_id]))
    ends_at = store.redis.zscore(store.keys.lane("INFLIGHT", LANE), leased.task_id)
    assert ends_at == store.clock.now_ms + store.settings.lease_ms
    assert store.finish(leased)


def test_a_record_that_cannot_be_read_leaves_every_queue(store: Store) -> None:
    (task,) = store.enqueue(1)
    store.enqueue(2)
    store.redis.lpush(store.keys.device("QUEUE", mac(2), LANE), task)
    store.redis.hdel(store.keys.task(task), "created_at")
    store.is_spoilt = True
    store.run(verbs.MendTasks([task], mac(2), LANE))
    for device in (1, 2):
        assert task not in store.redis.lrange(store.keys.device("QUEUE", mac(device), LANE), 0, -1)
    assert store.client.task(task).cause == "corrupt"


def test_a_record_that_is_over_ends_by_itself_again(store: Store) -> None:
    leased = store.running(1)
    store.finish(leased)
    store.redis.persist(store.keys.task(leased.task_id))
    assert store.run(verbs.MendTasks([leased.task_id]))[1]
    assert store.redis.ttl(store.keys.task(leased.task_id)) > 0


def test_its_device_is_mended_with_it(store: Store) -> None:
    (task,) = store.enqueue(1)
    store.redis.lrem(store.keys.device("QUEUE", mac(1), LANE), 1, task)
    store.redis.zrem(store.keys.lane("SCHEDULE", LANE), mac(1))
    store.redis.zrem(store.keys.lane("WAITING", LANE), mac(1))
    store.run(verbs.MendTasks([task]))
    assert store.client.device(mac(1)).lanes[1].rank == 0


def test_twice_changes_nothing(store: Store) -> None:
    (task,) = store.enqueue(1)
    store.redis.zadd(store.keys.name("DELAYED"), {task: 5})
    assert store.run(verbs.MendTasks([task]))[1]
    with store.unchanged():
        assert store.run(verbs.MendTasks([task])) == (1, ())


def test_what_cannot_be_mended(store: Store) -> None:
    store.refuses(InvalidTaskId, verbs.MendTasks(["no id"]))
    store.refuses(InvalidMac, verbs.MendTasks(["a"], "nobody", LANE))
    store.refuses(UnknownLane, verbs.MendTasks(["a"], mac(1), "no-lane"))
    store.refuses(InvalidData, verbs.MendTasks(["a"] * 1_001))
