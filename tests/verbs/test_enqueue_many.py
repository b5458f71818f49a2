"""Store many tasks in one step, with a verdict for each."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane import Client, Receipt, Refusal, Settings, TaskState, verbs
from fairlane.errors import InvalidData, InvalidMac, TaskConflict, UnknownTaskType
from fairlane.tasktype import TaskType
from support.store import LANE, Store, mac, receipt_of
from verbs.conftest import Open


def items(*devices: int) -> list[verbs.Enqueue]:
    return [
        verbs.Enqueue(mac(device), LANE, {"at": at}, task_id=f"t{at}")
        for at, device in enumerate(devices)
    ]


def test_returns_a_verdict_per_item_in_their_order(store: Store) -> None:
    store.client.enqueue(mac(9), LANE, {}, task_id="known")
    store.client.enqueue(mac(9), LANE, {}, task_id="other")
    batch = [
        *items(1, 2, 1),
        verbs.Enqueue(mac(9), LANE, {}, task_id="known"),
        verbs.Enqueue(mac(9), LANE, {"b": 1}, task_id="other"),
    ]
    *new, known, conflict = store.run(verbs.EnqueueMany(batch))
    now = store.clock.now_ms
    assert new == [
        Receipt("t0", mac(1), now, 1),
        Receipt("t1", mac(2), now, 1),
        Receipt("t2", mac(1), now, 2),
    ]
    assert known == Receipt("known", mac(9), now, 0, TaskState.PENDING, known=True)
    assert isinstance(conflict, TaskConflict)


def test_a_queue_keeps_the_order_of_the_items(store: Store) -> None:
    store.run(verbs.EnqueueMany(items(1, 1, 2, 1)))
    queue = store.redis.lrange(store.keys.device("QUEUE", mac(1), LANE), 0, -1)
    assert queue == ["t0", "t1", "t3"]


def test_an_id_that_stands_twice_in_a_batch_is_one_task(store: Store) -> None:
    first, second = store.run(verbs.EnqueueMany([items(1)[0]] * 2))
    assert receipt_of(second) == Receipt(
        "t0", mac(1), receipt_of(first).created_at_ms, 0, known=True
    )
    assert store.client.device(mac(1)).pending == 1


def test_a_device_in_two_lanes_is_counted_once(store: Store) -> None:
    ocr = verbs.Enqueue(mac(1), "ocr", {})
    text = verbs.Enqueue(mac(1), LANE, {})
    verdicts = store.run(verbs.EnqueueMany([ocr, text, verbs.Enqueue(mac(1), "ocr", {})]))
    assert [receipt_of(verdict).pending for verdict in verdicts] == [1, 2, 3]


@pytest.mark.parametrize("admission", ["fair", "system"])
@pytest.mark.parametrize(("in_all", "per_mac"), [(12, 200), (40, 3), (12, 3)])
def test_equals_one_by_one(open_store: Open, admission: str, in_all: int, per_mac: int) -> None:
    store = open_store(admission=admission, max_total_pending=in_all, max_per_mac_pending=per_mac)
    batch = items(*[1, 1, 2, 1, 1, 1, 3] * 3)
    one_by_one = [store.run(item) for item in batch]
    state = store.redis.hgetall(store.keys.name("TOTALS")), store.client.devices()
    store.check()
    store.redis.flushall()
    store.redis.set(store.keys.clock, "virtual")
    together = store.client.enqueue_many(batch)
    assert together == one_by_one
    assert (store.redis.hgetall(store.keys.name("TOTALS")), store.client.devices()) == state
    assert {type(verdict) for verdict in together} == {Receipt, Refusal}


def test_a_bad_item_stops_the_batch_before_anything_is_sent(store: Store) -> None:
    with store.unchanged():
        with pytest.raises(InvalidMac):
            store.client.enqueue_many([(mac(1), LANE, {}), ("nonsense", LANE, {})])
        with pytest.raises(UnknownTaskType):
            store.client.enqueue_many([(mac(1), LANE, {}), (mac(1), "video", {})])
    store.refuses(InvalidData, verbs.EnqueueMany([]))
    store.refuses(InvalidData, verbs.EnqueueMany([verbs.Enqueue(mac(1), LANE, {})] * 1_001))


def test_a_thousand_tasks_at_once(store: Store) -> None:
    verdicts = store.client.enqueue_many((mac(at % 20), LANE, {}) for at in range(1_000))
    assert all(isinstance(verdict, Receipt) for verdict in verdicts)
    assert store.client.devices(limit=20) == tuple((mac(at), 50) for at in range(20))


def test_twice_answers_known_for_what_the_first_run_stored(store: Store) -> None:
    batch = verbs.EnqueueMany(items(1, 2, 1))
    first = store.run(batch)
    store.clock.advance(1_000)
    with store.unchanged():
        second = store.run(batch)
    assert [receipt_of(verdict).known for verdict in second] == [True] * 3
    created = [receipt_of(verdict).created_at_ms for verdict in first]
    assert [receipt_of(verdict).created_at_ms for verdict in second] == created


def test_equals_one_by_one_with_sites_costs_and_ttls(store: Store) -> None:
    batch = [
        verbs.Enqueue(
            mac(at % 5), "ocr" if at % 3 else LANE, {"at": at}, task_id=f"t{at}",
            site=(None, "a", "b")[at % 4 % 3], cost_ms=at * 10 or None, ttl_ms=1_000 + at,
        )
        for at in range(40)
    ]  # fmt: skip

    def state() -> tuple[list[Any], list[Any], Any]:
        devices = [store.client.device(mac(device)) for device in range(5)]
        records = [store.redis.hgetall(store.keys.task(item.task_id)) for item in batch]
        return devices, records, store.redis.hgetall(store.keys.name("SITES_PENDING"))

    one_by_one = [store.run(item) for item in batch], state()
    store.redis.flushall()
    store.redis.set(store.keys.clock, "virtual")
    together = store.run(verbs.EnqueueMany(batch)), state()
    assert [receipt_of(verdict) for verdict in together[0]] == one_by_one[0]
    places = [
        [(at.rank, at.queued) for device in devices for at in device.lanes]
        for devices, _, _ in (one_by_one[1], together[1])
    ]
    assert together[1][1:] == one_by_one[1][1:]
    assert [device.site for device in together[1][0]] == [
        device.site for device in one_by_one[1][0]
    ]
    assert places[0] == places[1]


def test_a_bad_site_stops_the_batch(store: Store) -> None:
    with store.unchanged(), pytest.raises(InvalidData, match="site"):
        store.client.enqueue_many(
            [
                {"mac": mac(1), "task_type": LANE, "data": {}},
                {"mac": mac(1), "task_type": LANE, "data": {}, "site": "No"},
            ]
        )


def test_many_go_in_calls_of_100_in_order_and_none_if_one_is_bad(open_store: Open) -> None:
    store = open_store(max_per_mac_pending=2_000)
    before = store.redis.info("commandstats")["cmdstat_fcall"]["calls"]
    verdicts = store.client.enqueue_many([(mac(n % 7), LANE, {"n": n}) for n in range(1_000)])
    assert store.redis.info("commandstats")["cmdstat_fcall"]["calls"] == before + 10
    assert [receipt_of(verdict).mac for verdict in verdicts] == [mac(n % 7) for n in range(1_000)]
    bad: list[tuple[str, str, dict[str, Any]]] = [
        (mac(1), LANE, {}),
        *[(mac(2), LANE, {})] * 400,
        (mac(1), "unknown", {}),
    ]
    with store.unchanged(), pytest.raises(UnknownTaskType):
        store.client.enqueue_many(bad)


def test_a_producer_that_has_not_joined_yet_takes_the_stores_word(open_store: Open) -> None:
    kinds = (TaskType(name="mine", lane="mine", queue="my.q"),)
    store = open_store(task_types=kinds, max_per_mac_pending=2_000)
    url = store.client.store_url
    with Client(Settings(store_url=url, namespace=store.settings.namespace)) as fresh:
        verdicts = fresh.enqueue_many([(mac(1), "mine", {"n": n}) for n in range(101)])
    assert len({receipt_of(verdict).task_id for verdict in verdicts}) == 101


def test_the_dispatcher_is_called_once_and_each_device_is_told(store: Store) -> None:
    while store.client.wait(0.01):
        pass
    store.run(verbs.EnqueueMany(items(1, 2, 1)))
    assert store.redis.llen(store.keys.doorbell) == 1
    told = {(event.mac, event.lane, event.tasks) for event in store.client.events()}
    assert told == {(mac(1), LANE, ("t0", "t2")), (mac(2), LANE, ("t1",))}
