"""Many clients at once: limits hold exactly, one id is one task, and one lease is one worker's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from fairlane import Receipt, Refusal, verbs
from fairlane.errors import StaleAttempt
from fairlane.verbs import Verb
from support.store import LANE, Store, mac, receipt_of
from verbs.conftest import Open

R = TypeVar("R")
MANY = 8


def at_once(store: Store, batch: Iterable[Verb[R]]) -> list[R]:
    """Run verbs from many threads, over clients of their own."""
    clients = [store.other() for _ in range(MANY)]

    def run(numbered: tuple[int, Verb[R]]) -> R:
        return clients[numbered[0] % MANY].run(numbered[1])

    with ThreadPoolExecutor(MANY) as pool:
        return list(pool.map(run, enumerate(batch)))


def test_a_limit_holds_exactly(open_store: Open) -> None:
    store = open_store(max_per_mac_pending=50)
    verdicts = at_once(store, [verbs.Enqueue(mac(1), LANE, {"n": n}) for n in range(80)])
    pending = sorted(verdict.pending for verdict in verdicts if isinstance(verdict, Receipt))
    assert pending == list(range(1, 51))
    assert sum(isinstance(verdict, Refusal) for verdict in verdicts) == 30


def test_one_id_is_one_task_however_many_race(store: Store) -> None:
    batch = [verbs.Enqueue(mac(1), LANE, {"a": 1}, task_id="one") for _ in range(50)]
    receipts = [receipt_of(verdict) for verdict in at_once(store, batch)]
    assert sum(not receipt.known for receipt in receipts) == 1
    assert store.client.devices() == ((mac(1), 1),)


def test_no_two_claims_meet_on_a_task(store: Store) -> None:
    for device in range(10):
        store.enqueue(device, 10)
    claims = at_once(store, [verbs.Claim(LANE, 3) for _ in range(50)])
    leased = [task.task_id for claimed in claims for task in claimed.leased]
    assert len(leased) == len(set(leased)) == 100


def test_one_of_many_deliveries_runs(store: Store) -> None:
    store.enqueue(1)
    (leased,) = store.claim()

    def outcome(run_id: str) -> Callable[[], bool]:
        client = store.other()

        def begin() -> bool:
            try:
                client.run(verbs.Start(leased.task_id, leased.attempt, "worker", run_id))
            except StaleAttempt:
                return False
            return True

        return begin

    with ThreadPoolExecutor(MANY) as pool:
        begun = [pool.submit(outcome(f"run-{n}")) for n in range(20)]
    assert [future.result() for future in begun].count(True) == 1


def test_many_clients_agree_on_one_configuration(store: Store) -> None:
    store.redis.delete(store.keys.config)
    at_once(store, [verbs.Overload() for _ in range(20)])
    assert store.redis.hget(store.keys.config, "digest") == store.settings.digest
