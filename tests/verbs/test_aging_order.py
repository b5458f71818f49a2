"""Who is next under `aging`: the document's score, ties to the least recently served."""

from __future__ import annotations

import random

import pytest

from fairlane import formulas, verbs
from support.store import LANE, Store, mac
from verbs.conftest import Open


@pytest.fixture
def store(open_store: Open) -> Store:
    return open_store(policy="aging")


def scheduled(store: Store) -> list[str]:
    found: list[str] = store.redis.zrevrange(store.keys.lane("SCHEDULE", LANE), 0, -1)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_service_is_the_order_of_scores(store: Store, seed: int) -> None:
    choose = random.Random(seed)
    for device in choose.sample(range(30), 12):
        store.enqueue(device, choose.randint(1, 3))
        store.clock.advance(choose.randint(1, 90_000))
    while scheduled(store):
        scores = {address: store.client.device(address).score for address in scheduled(store)}
        (address,) = store.served(1)
        assert scores[address] == max(scores.values())
        store.clock.advance(choose.randint(0, 20_000))


def test_devices_past_w_max_tie_and_the_least_recently_served_goes_first(store: Store) -> None:
    for device in (3, 1, 2):
        store.enqueue(device, 4)
        store.clock.advance(1_000)
    store.clock.advance(formulas.AGING_MAX_WAIT_MS)
    assert store.served(9) == [mac(device) for device in (3, 1, 2)] * 3


def test_nobody_is_passed_over_past_w_max(store: Store) -> None:
    """The document's model served three such devices 0, 20 and 20 times."""
    for device in (1, 2, 3):
        store.enqueue(device, 20)
    store.clock.advance(formulas.AGING_MAX_WAIT_MS)
    last, served = "", []
    for _ in range(30):
        (last,) = store.served(1, exclude_mac=last)
        served.append(last)
    assert [served.count(mac(device)) for device in (1, 2, 3)] == [10, 10, 10]


def test_a_young_device_comes_after_those_past_w_max(store: Store) -> None:
    store.enqueue(1)
    store.clock.advance(formulas.AGING_MAX_WAIT_MS - 1)
    store.enqueue(2)
    store.clock.advance(1)
    store.enqueue(3)
    assert store.served(3) == [mac(1), mac(2), mac(3)]


def test_equal_ages_go_in_order_of_arrival_and_not_of_macs(store: Store) -> None:
    for device in (7, 2, 9, 4):
        store.enqueue(device)
    assert store.served(4) == [mac(device) for device in (7, 2, 9, 4)]


def test_it_ranks_by_the_task_that_is_the_oldest_now(store: Store) -> None:
    (oldest,) = store.enqueue(1)
    store.clock.advance(1_000)
    store.enqueue(2)
    store.clock.advance(1_000)
    store.enqueue(1)
    store.client.cancel(oldest)
    assert store.served(2) == [mac(2), mac(1)]


def test_a_device_just_served_waits_while_another_can_go(store: Store) -> None:
    store.enqueue(1, 30)
    store.clock.advance(1_000)
    store.enqueue(2, 5)
    served = [task.mac for task in store.claim(20)]
    assert served == [mac(1)] * 10 + [mac(2)] * 5 + [mac(1)] * 5


def test_a_flood_delays_the_newcomer_as_the_document_has_it(store: Store) -> None:
    store.enqueue(1, 5)
    store.clock.advance(1_000)
    store.enqueue(2)
    assert store.served(6) == [mac(1)] * 5 + [mac(2)]


@pytest.mark.parametrize(("waits_ms", "batch"), [(29_999, 10), (30_000, 1)])
def test_the_batch_is_small_while_another_device_starves(
    store: Store, waits_ms: int, batch: int
) -> None:
    store.enqueue(2, 1)
    store.enqueue(1, 30)
    store.clock.advance(waits_ms)
    first = [task.mac for task in store.claim(12, exclude_mac=mac(2))]
    assert first[: batch + 1] == [mac(1)] * batch + [mac(2)]
    assert formulas.batch_size(waits_ms >= 30_000) == batch


def test_a_device_in_backoff_does_not_shrink_the_batch_of_others(store: Store) -> None:
    store.enqueue(2)
    (leased,) = store.claim()
    store.run(verbs.Defer(leased.task_id, 1, "", "device"))
    store.clock.advance(29_999)
    store.enqueue(1, 30)
    assert [task.mac for task in store.claim(10)] == [mac(1)] * 10
