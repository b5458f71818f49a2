"""What a site has had is remembered while it is away, and burdens nobody who comes later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from support.store import LANE, Store, mac

OLD = {"a": (1, 2), "b": (3, 4)}


def fill(store: Store, devices: Mapping[str, tuple[int, ...]], each: int) -> None:
    for site, members in devices.items():
        for device in members:
            store.enqueue(device, each, site=site)


def test_a_site_that_comes_late_gets_a_share_and_no_arrears(store: Store) -> None:
    fill(store, OLD, 40)
    store.served(60)
    fill(store, {"late": (5, 6)}, 20)
    served = Counter(store.served(30))
    assert 9 <= served[mac(5)] + served[mac(6)] <= 12, "a third, and the turn of a newcomer"


def test_a_site_that_comes_back_with_each_task_has_a_share_and_no_more(store: Store) -> None:
    fill(store, OLD, 40)
    store.served(10)
    served: list[str] = []
    for _ in range(60):
        if not store.client.device(mac(9)).pending:
            store.enqueue(9, site="comes")
        served += store.served(1)
    assert served.count(mac(9)) <= 60 / 3 + 1


def test_a_site_of_the_default_that_drains_leaves_no_tag_beside_leases(store: Store) -> None:
    fill(store, {"a": (1,)}, 20)
    store.enqueue(2)
    store.served(2)
    store.enqueue(2)
    (leased,) = [task for task in store.claim(4) if task.mac == mac(2)]
    virtual = store.keys.lane("VIRTUAL", LANE)
    assert store.redis.hexists(virtual, "tag")
    store.start(leased)
    store.finish(leased)
    assert not store.redis.hexists(virtual, "tag")


def test_the_guard_follows_the_work_of_new_sites_who_do_not_move_v(store: Store) -> None:
    store.enqueue(9, 30, site="busy")
    store.enqueue(8, site="other")
    assert len(store.claim(11)) == 11, "beside another site it pays: it is five tasks ahead"
    store.enqueue(7, 30, site="busy")
    store.clock.advance(store.settings.starvation_after_ms)
    served = []
    for newcomer in range(100, 140):
        store.enqueue(newcomer, site=f"new-{newcomer}")
        served += store.served(1)
    assert mac(7) not in served[:4]
    assert mac(7) in served
