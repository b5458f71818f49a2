"""A store in every state that it can be in, and every way to damage it by hand.

The rule: a damage is done with raw commands, as a bug, a person or a restored backup would do it;
each breaks an invariant, which the tests prove before they mend it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fairlane import verbs
from fairlane.keys import Keys
from support.store import LANE, Store, mac

Damage = Callable[[Any, Keys], object]


def busy(store: Store) -> None:
    """Bring devices and tasks into every state: device 1 waits, 5 is paused, 8 is in a site."""
    store.offer(4, LANE)
    store.bury(9)
    for device in range(7):
        store.enqueue(device, 3)
        store.clock.advance(100)
    store.served(2)
    leased = store.claim(4)
    store.start(leased[0])
    store.run(verbs.Defer(leased[1].task_id, leased[1].attempt))
    store.run(verbs.Defer(leased[2].task_id, leased[2].attempt, "", "device"))
    store.run(verbs.Configure(mac(5), paused=True))
    store.run(verbs.Configure(mac(6), weight=3, min_running=1))
    store.enqueue(7, task_type="ocr")
    store.enqueue(8, 2, site="lab")
    store.enqueue(10, 2, site="home")
    store.claim(12, exclude_mac="")
    for device in (1, 2, 6, 8):
        store.enqueue(device, 2, **({"site": "lab"} if device == 8 else {}))
    store.check()


def first(redis: Any, key: str) -> str:
    """Return the first member of a set or list."""
    found: list[str] = (
        redis.lrange(key, 0, 0) if redis.type(key) == "list" else redis.zrange(key, 0, 0)
    )
    assert found, f"{key} is empty"
    return found[0]


def waiting(redis: Any, keys: Keys) -> tuple[str, str]:
    """Return a queue and the task at its head."""
    queue = keys.device("QUEUE", mac(1), LANE)
    return queue, first(redis, queue)


def _moved(redis: Any, keys: Keys) -> None:
    queue, task = waiting(redis, keys)
    redis.lrem(queue, 1, task)
    redis.rpush(keys.device("QUEUE", mac(2), LANE), task)


def _unqueued(redis: Any, keys: Keys) -> None:
    queue, task = waiting(redis, keys)
    redis.lrem(queue, 1, task)


def _lost(redis: Any, keys: Keys) -> None:
    queue, task = waiting(redis, keys)
    redis.lrem(queue, 1, task)
    redis.zrem(keys.name("DEADLINES"), task)


def _stranded(redis: Any, keys: Keys) -> None:
    for name in ("SCHEDULE", "WAITING"):
        redis.zrem(keys.lane(name, LANE), mac(1))


INFLIGHT: Final = "INFLIGHT"
DAMAGES: Final[Mapping[str, Damage]] = {
    "global_pending is too high": lambda redis, keys: redis.incr(keys.name("GLOBAL_PENDING")),
    "global_pending is gone": lambda redis, keys: redis.delete(keys.name("GLOBAL_PENDING")),
    "a lane's pending": lambda redis, keys: redis.hincrby(
        keys.lane("VIRTUAL", LANE), "pending", -2
    ),
    "a lane's leases": lambda redis, keys: redis.hincrby(keys.lane("VIRTUAL", LANE), "leased", 3),
    "a site's leases": lambda redis, keys: redis.hincrby(
        keys.lane("VIRTUAL", LANE) + "@lab", "leased", 1
    ),
    "weights of a schedule": lambda redis, keys: redis.hincrby(
        keys.lane("VIRTUAL", LANE), "extra", 7
    ),
    "a site's pending": lambda redis, keys: redis.hincrby(keys.name("SITES_PENDING"), "lab", 5),
    "a site that has nothing pending": lambda redis, keys: redis.hset(
        keys.name("SITES_PENDING"), "gone", 4
    ),
    "the sum of the sites": lambda redis, keys: redis.hdel(keys.name("SITES_PENDING"), ":all"),
    "a site that is not served": lambda redis, keys: redis.zrem(keys.lane("SITES", LANE), "lab"),
    "a site without devices is served": lambda redis, keys: redis.zadd(
        keys.lane("SITES", LANE), {"gone": 0}
    ),
    "slots": lambda redis, keys: redis.hset(keys.name("CAPACITY"), f"slots:{LANE}", 99),
    "a device's pending": lambda redis, keys: redis.hincrby(
        keys.device("META", mac(1)), "pending_count", 1
    ),
    "a device's pending in a lane": lambda redis, keys: redis.hincrby(
        keys.device("META", mac(1)), f"{LANE}.pending_count", -1
    ),
    "a device's leases": lambda redis, keys: redis.hincrby(
        keys.device("META", mac(1)), "leased", 2
    ),
    "a device's leases in a lane": lambda redis, keys: redis.hincrby(
        keys.device("META", mac(1)), f"{LANE}.leased", 1
    ),
    "a device's oldest": lambda redis, keys: redis.hset(
        keys.device("META", mac(1)), f"{LANE}.oldest_created_at", 5
    ),
    "a device's meta is gone": lambda redis, keys: redis.delete(keys.device("META", mac(1))),
    "a device is in no schedule": _stranded,
    "a device is not waiting": lambda redis, keys: redis.zrem(keys.lane("WAITING", LANE), mac(1)),
    "a device waits since another time": lambda redis, keys: redis.zadd(
        keys.lane("WAITING", LANE), {mac(1): 5}
    ),
    "a paused device is in the schedule": lambda redis, keys: redis.zadd(
        keys.lane("SCHEDULE", LANE), {mac(5): 0}
    ),
    "a device without tasks is in the schedule": lambda redis, keys: redis.zadd(
        keys.lane("SCHEDULE", LANE), {mac(77): -5}
    ),
    "a device without tasks waits": lambda redis, keys: redis.zadd(
        keys.lane("WAITING", LANE), {mac(77): 5}
    ),
    "a device is in another site's schedule": lambda redis, keys: redis.zadd(
        keys.lane("SCHEDULE", LANE) + "@lab", {mac(1): 0}
    ),
    "a device of a site is in the schedule of none": lambda redis, keys: redis.zadd(
        keys.lane("SCHEDULE", LANE), {mac(8): 0}
    ),
    "a tag is none": lambda redis, keys: redis.zadd(
        keys.lane("SCHEDULE", LANE), {mac(1): 12.5}
    ),
    "a tag stands twice": lambda redis, keys: redis.zadd(
        keys.lane("FINISH", LANE), {mac(1): 10**9}
    ),
    "a tag is held in the schedule": lambda redis, keys: redis.hset(
        keys.device("META", mac(1)), f"{LANE}.tag", 5
    ),
    "a tag beside leases is gone": lambda redis, keys: redis.hdel(
        keys.device("META", mac(3)), f"{LANE}.tag"
    ),
    "a device has no pending tasks, by mac:pending": lambda redis, keys: redis.zrem(
        keys.name("MACS"), mac(1)
    ),
    "a device without tasks is in mac:pending": lambda redis, keys: redis.zadd(
        keys.name("MACS"), {mac(77): 1}
    ),
    "a device without tasks is in mac:pending, and says how it was served": lambda redis, keys: (
        redis.zadd(keys.name("MACS"), {mac(77): 1}),
        redis.hset(keys.device("META", mac(77)), f"{LANE}.turn", 5),
    ),
    "overloaded without cause": lambda redis, keys: redis.sadd(keys.name("OVERLOADED"), mac(1)),
    "a device without tasks is overloaded": lambda redis, keys: redis.sadd(
        keys.name("OVERLOADED"), mac(77)
    ),
    "served first without a promise": lambda redis, keys: redis.zadd(
        keys.lane("FLOOR", LANE), {mac(1): 0}
    ),
    "a backoff without a word of it": lambda redis, keys: redis.hdel(
        keys.device("META", first(redis, keys.lane("BACKOFF", LANE))), f"{LANE}.unschedulable_until"
    ),
    "a word of a backoff that is none": lambda redis, keys: redis.hset(
        keys.device("META", mac(1)), f"{LANE}.unschedulable_until", 2**41
    ),
    "a turn without a token": lambda redis, keys: redis.zadd(
        keys.name("TURNS"), {f"{LANE}|{mac(1)}": 2**41}
    ),
    "a task is in no queue": _unqueued,
    "a task is in no queue and has no deadline": _lost,
    "a task is in another's queue": _moved,
    "a task is in its queue twice": lambda redis, keys: redis.rpush(*waiting(redis, keys)),
    "a delayed task is in a queue": lambda redis, keys: redis.rpush(
        keys.device("QUEUE", mac(1), LANE), first(redis, keys.name("DELAYED"))
    ),
    "a delayed task has no due time": lambda redis, keys: redis.delete(keys.name("DELAYED")),
    "a queued task is delayed": lambda redis, keys: redis.zadd(
        keys.name("DELAYED"), {waiting(redis, keys)[1]: 5}
    ),
    "a deadline is gone": lambda redis, keys: redis.zrem(
        keys.name("DEADLINES"), waiting(redis, keys)[1]
    ),
    "a deadline is another": lambda redis, keys: redis.zadd(
        keys.name("DEADLINES"), {waiting(redis, keys)[1]: 2**41}
    ),
    "a deadline of a leased task": lambda redis, keys: redis.zadd(
        keys.name("DEADLINES"), {first(redis, keys.lane(INFLIGHT, LANE)): 2**41}
    ),
    "a deadline of an unknown task": lambda redis, keys: redis.zadd(
        keys.name("DEADLINES"), {"unknown": 2**41}
    ),
    "a lease is gone": lambda redis, keys: redis.zrem(
        keys.lane(INFLIGHT, LANE), first(redis, keys.lane(INFLIGHT, LANE))
    ),
    "a lease of a queued task": lambda redis, keys: redis.zadd(
        keys.lane(INFLIGHT, LANE), {waiting(redis, keys)[1]: 2**41}
    ),
    "a lease in another lane": lambda redis, keys: redis.zadd(
        keys.lane(INFLIGHT, "ocr"), {first(redis, keys.lane(INFLIGHT, LANE)): 2**41}
    ),
    "a lease of an unknown task": lambda redis, keys: redis.zadd(
        keys.lane(INFLIGHT, LANE), {"unknown": 2**41}
    ),
    "an unknown task is queued": lambda redis, keys: redis.lpush(
        keys.device("QUEUE", mac(1), LANE), "unknown"
    ),
    "an unknown task is delayed": lambda redis, keys: redis.zadd(
        keys.name("DELAYED"), {"unknown": 5}
    ),
    "an unknown task is a dead letter": lambda redis, keys: redis.rpush(
        keys.name("DEAD_LETTER"), "unknown"
    ),
    "a dead task is no dead letter": lambda redis, keys: redis.delete(keys.name("DEAD_LETTER")),
    "a queued task is a dead letter": lambda redis, keys: redis.rpush(
        keys.name("DEAD_LETTER"), waiting(redis, keys)[1]
    ),
    "a waiting task's record would end by itself": lambda redis, keys: redis.expire(
        keys.task(waiting(redis, keys)[1]), 1_000
    ),
}  # fmt: skip
