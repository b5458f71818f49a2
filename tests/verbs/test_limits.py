"""What a device may have at once and how fast: exact, also in a race, and free for all others."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from fairlane import Client, verbs
from fairlane.model import DeviceLane, Leased
from support.store import LANE, Store, mac
from verbs.conftest import Open

RACERS = 8


def limit(store: Store, device: int, **limits: Any) -> None:
    store.run(verbs.Configure(mac(device), **limits))


def held(store: Store, device: int, lane: str = LANE) -> DeviceLane:
    return next(at for at in store.client.device(mac(device)).lanes if at.lane == lane)


def macs(leased: tuple[Leased, ...]) -> list[str]:
    return [task.mac for task in leased]


@pytest.mark.parametrize("policy", ["fair", "aging"])
def test_no_more_than_max_running_are_leased(open_store: Open, policy: str) -> None:
    store = open_store(policy=policy)
    limit(store, 1, max_running=3)
    store.enqueue(1, 20)
    store.enqueue(2, 4)
    first = store.claim(20)
    assert sorted(macs(first)) == [mac(1)] * 3 + [mac(2)] * 4
    assert (held(store, 1).held_by, held(store, 1).queued) == ("max_running", 17)
    assert store.claim(20) == ()
    mine = [task for task in first if task.mac == mac(1)]
    store.start(mine[0])
    assert store.claim(20) == (), "running is leased too"
    store.finish(mine[0])
    assert len(store.claim(20)) == 1


@pytest.mark.parametrize("end", ["finish", "fail", "defer", "cancel", "lose"])
def test_whatever_ends_a_lease_lets_the_next_one_go(store: Store, end: str) -> None:
    limit(store, 1, max_running=1)
    store.enqueue(1, 3)
    (leased,) = store.claim(5)
    while store.client.wait(0.01):
        pass
    if end == "finish":
        store.start(leased)
        store.finish(leased)
    elif end == "fail":
        store.start(leased)
        store.run(verbs.Fail(leased.task_id, 1, "error"))
    elif end == "defer":
        store.run(verbs.Defer(leased.task_id, 1))
    elif end == "cancel":
        store.client.cancel(leased.task_id)
    else:
        store.clock.advance(store.settings.lease_ms)
        store.run(verbs.Sweep())
    assert store.client.wait(0.01), "the dispatcher hears of it"
    assert len(store.claim(5)) == 1
    assert store.claim(5) == ()


def test_max_running_is_over_all_lanes(store: Store) -> None:
    limit(store, 1, max_running=2)
    store.enqueue(1, 5)
    store.enqueue(1, 5, task_type="ocr")
    (first,) = store.claim()
    (second,) = store.claim(lane="ocr")
    for lane in (LANE, "ocr"):
        assert store.claim(5, lane=lane) == ()
        assert held(store, 1, lane).held_by == "max_running"
    store.start(second)
    store.finish(second)
    assert len(store.claim(5)) == 1, "a place that is free in one lane is free in the other"
    assert store.claim(5, lane="ocr") == ()
    store.client.cancel(first.task_id)
    assert len(store.claim(5, lane="ocr")) == 1


def test_a_limit_is_active_at_once_on_the_backlog_of_both_lanes(store: Store) -> None:
    store.enqueue(1, 9)
    store.enqueue(1, 9, task_type="ocr")
    leased = store.claim(4)
    limit(store, 1, max_running=2)
    assert store.claim(5) == store.claim(5, lane="ocr") == ()
    for task in leased[:2]:
        store.client.cancel(task.task_id)
        assert store.claim(5) == store.claim(5, lane="ocr") == (), "what runs is over it still"
    store.client.cancel(leased[2].task_id)
    assert len(store.claim(5, lane="ocr")) == 1
    limit(store, 1, max_running=4)
    assert len(store.claim(5)) == 2
    limit(store, 1, max_running=0)
    assert len(store.claim(3)) == 3


def test_max_running_holds_in_the_two_step_flow(store: Store) -> None:
    limit(store, 1, max_running=2)
    store.enqueue(1, 5)
    turn = store.run(verbs.ClaimDevice(LANE))
    assert turn is not None
    pop = verbs.Pop(turn.mac, turn.lane, turn.token)
    assert [len(store.run(pop).leased) for _ in range(4)] == [1, 1, 0, 0]
    assert store.run(verbs.Release(turn.mac, turn.lane, turn.token)).remaining == 3
    assert store.run(verbs.ClaimDevice(LANE)) is None


def test_max_running_is_never_exceeded_in_a_race(store: Store) -> None:
    """Eight dispatchers claim and end at once; each claim is followed by a look at the count."""
    limit(store, 1, max_running=5)
    limit(store, 2, max_running=1)
    for device in (1, 2, 3):
        store.enqueue(device, 150)
    barrier, clients = Barrier(RACERS), [store.other() for _ in range(RACERS)]

    def race(client: Client) -> tuple[int, int]:
        choose, most, mine = random.Random(id(client)), [0, 0], list[Leased]()
        barrier.wait()
        for _ in range(25):
            mine += client.run(verbs.Claim(LANE, 4)).leased
            for device in (1, 2):
                most[device - 1] = max(most[device - 1], client.device(mac(device)).leased)
            choose.shuffle(mine)
            while len(mine) > 3:
                client.cancel(mine.pop().task_id)
        return most[0], most[1]

    with ThreadPoolExecutor(RACERS) as pool:
        seen = list(pool.map(race, clients))
    assert max(one for one, _ in seen) == 5, "and all that is allowed is used"
    assert max(two for _, two in seen) == 1
    store.check()


def test_max_running_is_exact_after_its_workers_were_killed(store: Store) -> None:
    limit(store, 1, max_running=4)
    store.enqueue(1, 20)
    leased = store.claim(9)
    for task in leased[:2]:
        store.start(task)
    store.clock.advance(store.settings.lease_ms)
    assert store.claim(9) == (), "nobody has noticed yet"
    assert len(store.run(verbs.Sweep()).lost) == 4
    assert store.client.device(mac(1)).leased == 0
    again = store.claim(9)
    assert {task.task_id for task in again} == {task.task_id for task in leased}
    assert store.claim(9) == ()


def test_a_rate_is_a_second_s_worth_at_once_and_then_its_due(store: Store) -> None:
    limit(store, 1, rate_per_s=4)
    store.enqueue(1, 20)
    assert len(store.claim(20)) == 4
    got = store.run(verbs.Claim(LANE, 5))
    assert (got.leased, got.next_due_ms) == ((), store.clock.now_ms + 250)
    assert (held(store, 1).held_by, held(store, 1).until_ms) == ("rate", got.next_due_ms)
    store.clock.advance(249)
    assert store.claim(5) == ()
    store.clock.advance(1)
    assert len(store.claim(5)) == 1
    store.clock.advance(10_000)
    assert len(store.claim(20)) == 4, "no more than a second's worth gathers"


@pytest.mark.parametrize("rate_per_s", [0.1, 0.7, 1, 3, 33.3])
def test_a_rate_is_exact_over_a_long_time(open_store: Open, rate_per_s: float) -> None:
    store = open_store(max_per_mac_pending=5_000, task_ttl_ms=10**9)
    limit(store, 1, rate_per_s=rate_per_s)
    took, start_ms = 0, store.clock.now_ms
    for _ in range(200):
        store.client.enqueue_many([(mac(1), LANE, {})] * 40)
        got = store.client.run(verbs.Claim(LANE, 1_000))
        took += len(got.leased)
        for task in got.leased:
            store.client.cancel(task.task_id)
        passed_s = (store.clock.now_ms - start_ms) / 1_000
        burst = max(1, rate_per_s)
        assert took <= burst + passed_s * rate_per_s + 1e-3
        store.clock.now_ms = got.next_due_ms
    assert took >= (store.clock.now_ms - start_ms) / 1_000 * rate_per_s - 1


@pytest.mark.parametrize("rate_per_s", [2.5, 7])
def test_a_late_look_loses_nothing_of_a_rate(open_store: Open, rate_per_s: float) -> None:
    """A dispatcher that looks each 101 ms gets what the time is worth, to a token."""
    store = open_store(max_per_mac_pending=5_000, task_ttl_ms=10**9)
    limit(store, 1, rate_per_s=rate_per_s)
    took, looks = 0, 600
    store.client.enqueue_many([(mac(1), LANE, {})] * 1_000)
    for _ in range(looks):
        took += len(store.client.run(verbs.Claim(LANE, 1_000)).leased)
        store.clock.advance(101)
    passed_s = (looks - 1) * 0.101
    assert abs(took - (rate_per_s + passed_s * rate_per_s)) <= 1


def test_a_rate_is_over_all_lanes(store: Store) -> None:
    limit(store, 1, rate_per_s=2)
    store.enqueue(1, 5)
    store.enqueue(1, 5, task_type="ocr")
    assert len(store.claim()) == len(store.claim(lane="ocr")) == 1
    assert store.claim(5) == store.claim(5, lane="ocr") == ()
    store.clock.advance(500)
    assert len(store.claim(5)) + len(store.claim(5, lane="ocr")) == 1
    store.clock.advance(500)
    store.run(verbs.Sweep())
    assert held(store, 1, "ocr").rank == 0, "a sweep lets in whom a claim would"


def test_a_rate_is_never_exceeded_in_a_race(store: Store) -> None:
    limit(store, 1, rate_per_s=10)
    store.enqueue(1, 100)
    store.enqueue(2, 30)
    barrier, clients = Barrier(RACERS), [store.other() for _ in range(RACERS)]

    def race(client: Client) -> int:
        barrier.wait()
        claims = [client.run(verbs.Claim(LANE, 3)).leased for _ in range(12)]
        return sum(task.mac == mac(1) for leased in claims for task in leased)

    with ThreadPoolExecutor(RACERS) as pool:
        assert sum(pool.map(race, clients)) == 10
    store.check()


def test_many_throttled_devices_are_let_in_64_a_claim(store: Store) -> None:
    for device in range(200):
        store.client.run(verbs.Configure(mac(device), rate_per_s=1))
        store.enqueue(device, 2)
    assert len(store.claim(200)) == 200
    store.clock.advance(1_000)
    assert [len(store.claim(200)) for _ in range(5)] == [64, 64, 64, 8, 0]


def test_a_throttled_device_that_expires_leaves_nothing(store: Store) -> None:
    limit(store, 1, rate_per_s=0.5)
    store.enqueue(1, 3, ttl_ms=1_000)
    store.client.cancel(store.claim(3)[0].task_id)
    store.clock.advance(1_001)
    assert len(store.run(verbs.Purge())) == 2
    store.clock.advance(2_000)
    store.run(verbs.Sweep())
    assert not store.redis.exists(store.keys.lane("THROTTLED", LANE))


def test_a_rate_that_is_lifted_is_forgotten(store: Store) -> None:
    limit(store, 1, rate_per_s=0.5)
    store.enqueue(1, 5)
    assert len(store.claim(5)) == 1
    limit(store, 1, rate_per_s=0)
    assert len(store.claim(5)) == 4
    assert not store.redis.exists(store.keys.lane("THROTTLED", LANE))
    assert set(store.redis.hgetall(store.keys.device("META", mac(1)))) == {"leased", "text.leased",
                                                                         "text.tag"}  # fmt: skip


@pytest.mark.parametrize("kind", ["max_running", "rate", "paused"])
def test_whoever_cannot_go_costs_a_claim_nothing(store: Store, kind: str) -> None:
    """No step for each: a claim runs the same commands with ten of them and with many."""
    few, many = 10, 2_000
    commands = []
    for first, last in ((0, few), (few, many)):
        for at in range(first, last, 500):
            devices = [mac(at + n) for n in range(min(500, last - at))]
            limits: dict[str, Any] = {"paused": True} if kind == "paused" else {}
            if kind == "max_running":
                limits = {"max_running": 1}
            elif kind == "rate":
                limits = {"rate_per_s": 0.001}
            store.client.run_many([verbs.Configure(device, **limits) for device in devices])
            store.client.enqueue_many([(device, LANE, {}) for device in devices for _ in "12"])
            store.client.run(verbs.Claim(LANE, 1_000))
        assert store.client.run(verbs.Claim(LANE, 1_000)).leased == ()
        store.client.enqueue(mac(9_999), LANE, {})
        before = commands_run(store)
        (leased,) = store.client.run(verbs.Claim(LANE, 5)).leased
        commands.append(commands_run(store) - before)
        store.client.cancel(leased.task_id)
    assert commands[0] == commands[1]
    store.is_spoilt = True  # too much to look through; what is wrong shows with fewer


def commands_run(store: Store) -> int:
    """Return how many commands the server has run, those of scripts too."""
    stats = store.redis.info("commandstats")
    return sum(row["calls"] for name, row in stats.items() if "info" not in name)


@pytest.mark.parametrize("policy", ["fair", "aging"])
def test_min_running_is_served_first_up_to_what_is_promised(open_store: Open, policy: str) -> None:
    store = open_store(policy=policy)
    for device in (1, 2):
        store.enqueue(device, 30)
    store.enqueue(3, 10)
    limit(store, 3, min_running=3)
    assert macs(store.claim(9))[:3] == [mac(3)] * 3
    store.run(verbs.Configure(mac(3), min_running=5))
    assert macs(store.claim(2)) == [mac(3)] * 2
    assert mac(3) not in macs(store.claim(3)), "it has all that it is promised"


def test_min_running_counts_all_lanes(store: Store) -> None:
    limit(store, 1, min_running=2)
    store.enqueue(1, 4)
    store.enqueue(1, 4, task_type="ocr")
    store.claim(2, lane="ocr")
    store.enqueue(2, 4)
    store.enqueue(3, 4)
    assert sorted(macs(store.claim(3))) == [mac(1), mac(2), mac(3)], "no turn before the others"
    assert not store.redis.exists(store.keys.lane("FLOOR", LANE))


def test_of_two_floors_the_one_served_longest_ago_is_first(store: Store) -> None:
    for device in (1, 2):
        limit(store, device, min_running=1)
        store.enqueue(device, 6)
    order = []
    for _ in range(6):
        (leased,) = store.claim()
        order.append(leased.mac)
        store.start(leased)
        store.finish(leased)
    assert order == [mac(1), mac(2)] * 3


def test_a_floor_is_charged_as_any_and_does_not_move_v(store: Store) -> None:
    store.enqueue(2, 40)
    limit(store, 1, min_running=1)
    store.enqueue(1, 30)
    served = store.served(10)
    assert served == [mac(1)] * 10, "one at a time, it is below its floor at each claim"
    limit(store, 1, min_running=0)
    assert mac(1) not in store.served(8), "and it owes what it had"


def test_a_floor_never_passes_a_limit(store: Store) -> None:
    limit(store, 1, min_running=5, max_running=2)
    limit(store, 2, min_running=5, rate_per_s=3)
    for device in (1, 2):
        store.enqueue(device, 9)
    assert sorted(macs(store.claim(18))) == [mac(1)] * 2 + [mac(2)] * 3


def test_a_paused_device_has_no_floor(store: Store) -> None:
    limit(store, 1, min_running=5)
    store.enqueue(1, 9)
    limit(store, 1, paused=True)
    assert store.claim(9) == ()
    limit(store, 1, paused=False)
    assert len(store.claim(9)) == 9
