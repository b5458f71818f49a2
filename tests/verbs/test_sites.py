"""Sites: fair over groups of devices first, then over the devices of each; they leave nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from fairlane import verbs
from fairlane.model import Leased
from fairlane.site import SiteRule
from support.store import ESTIMATE_MS, LANE, Store, mac
from verbs.conftest import Open


def site_of(store: Store, device: int) -> str:
    return store.client.device(mac(device)).site


def site_keys(store: Store) -> list[str]:
    """Return the names of the keys that a site alone has."""
    found = [name for name in store.redis.keys("*") if "@" in name]
    return [*found, *store.redis.keys(store.keys.name("SITES_PENDING"))]


def shares(
    store: Store, turns: int, sites: dict[str, range], run_ms: int = ESTIMATE_MS
) -> Counter[str]:
    """Serve one task after the other; return how many each site had."""
    by_mac = {mac(device): site for site, devices in sites.items() for device in devices}
    return Counter(by_mac[address] for address in store.served(turns, run_ms))


def fill(store: Store, sites: dict[str, range], each: int) -> None:
    for site, devices in sites.items():
        store.client.enqueue_many(
            {"mac": mac(device), "task_type": LANE, "data": {}, "site": site}
            for _ in range(each)
            for device in devices
        )


def drain(store: Store) -> None:
    """Run all that waits to its end."""
    while leased := (*store.claim(100), *store.claim(100, lane="ocr")):
        for task in leased:
            store.start(task)
            store.finish(task)


def test_a_device_is_in_the_site_of_the_first_of_its_tasks(store: Store) -> None:
    assert site_of(store, 1) == "default"
    store.enqueue(1, site="one")
    store.enqueue(1, site="two")
    assert site_of(store, 1) == "one", "it stays there while it has tasks"
    (first, second) = store.claim(2)
    store.enqueue(1, site="two")
    assert site_of(store, 1) == "one", "a leased one too"
    for task in (first, second, *store.claim(9)):
        store.client.cancel(task.task_id)
    assert site_of(store, 1) == "default"
    store.client.enqueue_many([{"mac": mac(1), "task_type": LANE, "data": {}, "site": "two"}])
    assert site_of(store, 1) == "two"


def test_a_rule_tells_the_site_by_the_longest_prefix(open_store: Open) -> None:
    rules = tuple(map(SiteRule.of, ("02=all", "02:00:00:00:01=lab", "02:00:00:00:00:07=one")))
    store = open_store(sites=rules)
    store.client.enqueue_many((mac(device), LANE, {}) for device in (1, 7, 300))
    store.enqueue("04:00:00:00:00:01")
    store.enqueue(8, site="given")
    assert [site_of(store, device) for device in (1, 7, 300, 8)] == ["all", "one", "lab", "given"]
    assert store.client.device("04:00:00:00:00:01").site == "default"
    store.run(verbs.Configure(mac(9), site="set"))
    store.enqueue(9, site="given")
    assert site_of(store, 9) == "set", "what is configured comes first"


def test_a_batch_puts_a_device_in_one_site(store: Store) -> None:
    items = [
        {"mac": mac(device), "task_type": kind, "data": {}, "site": site}
        for device, kind, site in ((1, "text", "one"), (1, "ocr", "two"), (2, "text", "two"))
    ]
    store.run(verbs.EnqueueMany(items))
    assert [site_of(store, device) for device in (1, 2)] == ["one", "two"]
    levels = store.redis.hgetall(store.keys.name("SITES_PENDING"))
    assert levels == {"one": "2", "two": "1", ":all": "3"}


@pytest.mark.parametrize("names", [("many", "few"), ("default", "few"), ("many", "default")])
def test_a_site_of_fifty_devices_and_one_of_one_share_alike(
    store: Store, names: tuple[str, str]
) -> None:
    many, few = names
    sites = {many: range(50), few: range(60, 61)}
    fill(store, sites, 12)
    store.client.enqueue_many([(mac(60), LANE, {})] * 100)
    had = shares(store, 60, sites)
    assert abs(had[many] - had[few]) <= 1
    assert len(set(store.served(60))) > 25, "and within a site its devices do"


def test_a_site_with_longer_tasks_gets_no_more_time(store: Store) -> None:
    sites = {"slow": range(5), "quick": range(10, 15)}
    fill(store, sites, 30)
    had = Counter[str]()
    for _ in range(120):
        (leased,) = store.claim()
        site, ms = ("slow", 300) if leased.mac in {mac(at) for at in range(5)} else ("quick", 30)
        store.start(leased)
        store.clock.advance(ms)
        store.finish(leased)
        had[site] += ms
    assert abs(had["slow"] - had["quick"]) <= 2 * 300


def test_a_newcomers_site_is_next_whatever_the_others_flood(store: Store) -> None:
    fill(store, {"flood": range(20), "other": range(20, 22)}, 9)
    store.served(50)
    store.enqueue(99, site="new")
    assert mac(99) in store.served(2)


def test_weights_count_within_a_site(store: Store) -> None:
    sites = {"a": range(2), "b": range(10, 11)}
    store.run(verbs.Configure(mac(1), weight=3))
    fill(store, sites, 60)
    served = store.served(80)
    assert 38 <= served.count(mac(10)) <= 42
    assert 28 <= served.count(mac(1)) <= 32


def test_a_site_that_was_alone_starts_even(store: Store) -> None:
    """Nobody paid for the time alone, and nobody has it refunded."""
    fill(store, {"alone": range(4)}, 50)
    store.served(100)
    leased = store.claim(20)
    fill(store, {"late": range(10, 14)}, 25)
    for task in leased:
        store.client.cancel(task.task_id)
    had = shares(store, 60, {"alone": range(4), "late": range(10, 14)})
    assert abs(had["alone"] - had["late"]) <= 2


def test_a_site_gains_nothing_by_coming_and_going(store: Store) -> None:
    fill(store, {"stays": range(4)}, 40)
    served = []
    for at in range(40):
        store.enqueue(10, site="comes")
        store.enqueue(11, site="comes")
        served += store.served(1 + at % 2)
    had = sum(address in (mac(10), mac(11)) for address in served)
    assert had <= len(served) / 2 + 1


def test_an_excluded_device_that_is_alone_in_its_site_gives_way(store: Store) -> None:
    store.enqueue(1, 5, site="a")
    store.enqueue(2, 5, site="b")
    assert [task.mac for task in store.claim(exclude_mac=mac(1))] == [mac(2)]
    assert [task.mac for task in store.claim(exclude_mac=mac(2))] == [mac(1)]
    for device in (2, 1):
        for task in store.claim(9, exclude_mac=mac(device)):
            store.client.cancel(task.task_id)
    store.enqueue(1, site="a")
    assert [task.mac for task in store.claim(exclude_mac=mac(1))] == [mac(1)], "nobody else can go"


def test_a_floor_goes_before_sites(store: Store) -> None:
    fill(store, {"a": range(3), "b": range(5, 8)}, 9)
    store.run(verbs.Configure(mac(9), min_running=2, site="c"))
    store.enqueue(9, 9)
    assert [task.mac for task in store.claim(2)] == [mac(9)] * 2


def test_the_guard_does_not_serve_a_site_that_is_ahead(store: Store) -> None:
    """A site's devices take turns; the one that has waited longest does not jump the other site."""
    fill(store, {"many": range(40), "one": range(60, 61)}, 4)
    store.client.enqueue_many([(mac(60), LANE, {})] * 60)
    store.clock.advance(store.settings.starvation_after_ms)
    had = shares(store, 80, {"many": range(40), "one": range(60, 61)})
    assert abs(had["many"] - had["one"]) <= 2


@pytest.mark.parametrize("from_site", ["", "a"])
@pytest.mark.parametrize("to_site", ["", "b"])
def test_configure_moves_a_backlog_with_its_leases(
    store: Store, from_site: str, to_site: str
) -> None:
    for task_type in (LANE, "ocr"):
        store.enqueue(1, 4, site=from_site or None, task_type=task_type)
        store.enqueue(2, 4, site="a", task_type=task_type)
    taken = [*store.claim(4), *store.claim(4, lane="ocr")]
    taken.sort(key=lambda task: task.mac)
    store.start(taken[0])
    store.run(verbs.Configure(mac(1), site=to_site))
    assert site_of(store, 1) == (to_site or from_site or "default")
    store.clock.advance(500)
    store.finish(taken[0])
    active = [(task.task_id, 1) for task in taken[1:]]
    for task in taken[1:]:
        store.start(task)
    store.clock.advance(500)
    store.run(verbs.Heartbeat("host:1:a", [LANE], 1, active=active))
    for task in taken[1:]:
        store.finish(task)
    drain(store)
    assert site_keys(store) == []


def test_a_device_takes_along_what_it_owes(store: Store) -> None:
    for device in (1, 2):
        store.enqueue(device, 40, site="a")
    store.enqueue(3, 40, site="b")
    (leased,) = store.claim()
    store.start(leased)
    store.clock.advance(200)
    store.finish(leased)
    device = int(leased.mac[-2:], 16)
    store.run(verbs.Configure(mac(device), site="b"))
    served = store.served(24)
    assert served.count(leased.mac) <= 1, "it has had 200 ms; device 3 has as much first"


def test_a_move_while_a_turn_is_open(store: Store) -> None:
    store.enqueue(1, 4, site="a")
    turn = store.run(verbs.ClaimDevice(LANE))
    assert turn is not None
    store.run(verbs.Configure(mac(1), site="b"))
    (leased,) = store.run(verbs.Pop(turn.mac, LANE, turn.token)).leased
    assert store.run(verbs.Release(turn.mac, LANE, turn.token)).remaining == 3
    store.start(leased)
    store.finish(leased)
    drain(store)
    assert site_keys(store) == []


def test_a_move_while_a_turn_is_open_that_is_never_released(store: Store) -> None:
    store.enqueue(1, site="a")
    store.run(verbs.ClaimDevice(LANE))
    store.run(verbs.Configure(mac(1), site="b"))
    store.clock.advance(store.settings.turn_lease_ms)
    assert store.run(verbs.Sweep()).turns == 1
    drain(store)
    assert site_keys(store) == []


@pytest.mark.parametrize("policy", ["fair", "aging"])
@pytest.mark.parametrize(
    "end", ["finish", "fail", "defer", "defer device", "cancel", "lose", "purge", "pause", "bury"]
)
def test_a_site_without_tasks_leaves_no_key(open_store: Open, policy: str, end: str) -> None:
    store = open_store(policy=policy, max_attempts=1 if end == "bury" else 3)
    store.enqueue(1, 2, site="a", ttl_ms=600_000)
    store.enqueue(2, 2, site="b", ttl_ms=600_000)
    for leased in store.claim(2):
        if end == "lose":
            continue
        if end not in ("cancel", "purge"):
            store.start(leased)
        _end(store, leased, end)
    if end == "lose":
        store.clock.advance(store.settings.lease_ms)
        store.run(verbs.Sweep())
    store.clock.advance(600_001)
    store.run(verbs.Sweep())
    for _ in range(3):
        store.run(verbs.Purge())
    assert site_keys(store) == []
    assert site_of(store, 1) == "default"


def _end(store: Store, leased: Leased, end: str) -> None:
    task_id = leased.task_id
    if end == "finish":
        store.finish(leased)
    elif end in ("fail", "bury"):
        store.run(verbs.Fail(task_id, 1, "error"))
    elif end == "defer":
        store.run(verbs.Defer(task_id, 1))
    elif end == "defer device":
        store.run(verbs.Defer(task_id, 1, "", "device"))
    elif end in ("cancel", "purge"):
        store.client.cancel(task_id)
    elif end == "pause":
        store.run(verbs.Configure(leased.mac, paused=True))
        store.finish(leased)


@pytest.mark.parametrize(("before", "after"), [("fair", "aging"), ("aging", "fair")])
def test_a_change_of_policy_leaves_no_site_behind(
    open_store: Open, before: str, after: str
) -> None:
    store = open_store(policy=before)
    fill(store, {"a": range(3), "b": range(3, 6), "c": range(6, 7)}, 3)
    leased = [store.claim(3), store.claim(2)]
    for task in leased[1]:
        store.start(task)
    for task in leased[0]:
        store.client.cancel(task.task_id)
    store.client.migrate(store.other(policy=after).settings)
    assert store.client.settings.policy == after
    for task in leased[1]:
        store.finish(task)
    drain(store)
    assert site_keys(store) == []


def test_a_change_of_policy_with_a_sites_last_leases(open_store: Open) -> None:
    store = open_store()
    fill(store, {"a": range(1), "b": range(3, 4)}, 1)
    leased = store.claim(2)
    for task in leased:
        store.start(task)
    store.client.migrate(store.other(policy="aging").settings)
    for task in leased:
        store.finish(task)
    assert site_keys(store) == []


def test_reconcile_seats_devices_in_their_sites(store: Store) -> None:
    fill(store, {"a": range(3), "b": range(3, 6)}, 2)
    store.claim(3)
    orders = [store.keys.lane("SCHEDULE", LANE) + f"@{site}" for site in ("a", "b")]
    store.redis.delete(*orders, store.keys.lane("SITES", LANE), store.keys.lane("WAITING", LANE))
    store.client.run(verbs.Reconcile())
    store.check()
    assert [store.redis.zcard(order) for order in orders] == [3, 3]
    assert store.run(verbs.Reconcile()) == (-1, ())


def test_a_redriven_task_comes_back_to_its_site(open_store: Open) -> None:
    store = open_store(max_attempts=1)
    task_id = store.bury(1, site="a")
    assert site_of(store, 1) == "default"
    store.run(verbs.Redrive([task_id]))
    assert site_of(store, 1) == "a"
    drain(store)
    assert site_keys(store) == []


def test_a_redriven_task_stays_in_the_site_that_its_device_is_in_now(open_store: Open) -> None:
    store = open_store(max_attempts=1)
    first, second = store.bury(1, site="a"), store.bury(2, site="a")
    store.enqueue(1, site="b")
    store.run(verbs.Configure(mac(2), site="c"))
    store.run(verbs.Redrive([first, second]))
    assert [site_of(store, device) for device in (1, 2)] == ["b", "c"]


def test_under_aging_sites_have_no_say(open_store: Open) -> None:
    store = open_store(policy="aging")
    for device, site in ((1, "a"), (2, "a"), (3, "b"), (4, "a")):
        store.enqueue(device, site=site)
        store.clock.advance(1_000)
    assert [task.mac for task in store.claim(4)] == [mac(device) for device in (1, 2, 3, 4)]


def test_a_site_that_a_device_joins_without_being_able_to_go_leaves_no_key(store: Store) -> None:
    store.enqueue(1, 3)
    store.enqueue(2, 3)
    store.served(1)
    store.run(verbs.Configure(mac(1), paused=True))
    store.run(verbs.Configure(mac(1), site="lab"))
    assert not store.redis.keys("*@lab")
