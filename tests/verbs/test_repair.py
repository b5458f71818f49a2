"""The repair: what is damaged by hand is named, mended, and then as good as before."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import redis

from fairlane import Client, Settings, verbs
from fairlane.services.examination import examine
from support.invariants import check_invariants
from support.store import LANE, Store, mac
from verbs.conftest import Open
from verbs.damage import DAMAGES, busy


@pytest.mark.parametrize("damage", DAMAGES, ids=DAMAGES)
def test_a_damage_is_named_mended_and_gone(store: Store, damage: str) -> None:
    busy(store)
    store.is_well()
    DAMAGES[damage](store.redis, store.keys)
    with pytest.raises((AssertionError, KeyError)):
        store.check()
    with store.unchanged():
        named = examine(store.client).flaws
    assert named
    assert examine(store.client, repair=True).flaws
    store.check()
    store.is_well()


@pytest.mark.parametrize(
    "settings", [{"policy": "aging"}, {"order": "lifo"}], ids=["aging", "lifo"]
)
def test_one_damage_after_the_other_under_other_rules(
    open_store: Open, settings: dict[str, str]
) -> None:
    store = open_store(**settings)
    busy(store)
    store.is_well()
    broken = 0
    for name, damage in DAMAGES.items():
        try:
            damage(store.redis, store.keys)
            store.check()
        except (AssertionError, KeyError):
            broken += 1
        examine(store.client, repair=True)
        try:
            store.check()
        except AssertionError as error:
            raise AssertionError(name) from error
        store.is_well()
    assert broken > len(DAMAGES) // 2


def test_records_that_cannot_be_read_become_dead_letters(store: Store) -> None:
    busy(store)
    before = store.client.device(mac(1)).pending
    foreign, bare, gone = store.enqueue(1, 3)
    store.redis.delete(store.keys.task(foreign))
    store.redis.set(store.keys.task(foreign), "foreign")
    store.redis.hdel(store.keys.task(bare), "created_at")
    store.redis.delete(store.keys.task(gone))
    store.is_spoilt = True
    named = {flaw.who for flaw in examine(store.client).flaws}
    assert named >= {foreign, bare, gone}
    examine(store.client, repair=True)
    assert {store.client.task(task).cause for task in (foreign, bare)} == {"corrupt"}
    assert store.client.device(mac(1)).pending == before
    assert store.client.run(verbs.InspectTotals()).lost() == 1, "what is gone for good is told"
    store.is_well()


def test_a_key_of_another_program_is_named_and_its_neighbours_are_mended(store: Store) -> None:
    store.enqueue(1)
    store.enqueue(2, 2)
    before = store.redis.dump(store.keys.device("META", mac(1)))
    store.redis.delete(store.keys.device("META", mac(1)))
    store.redis.set(store.keys.device("META", mac(1)), "foreign")
    store.redis.hincrby(store.keys.device("META", mac(2)), "pending_count", 3)
    store.is_spoilt = True
    for repair in (False, True):
        flaws = examine(store.client, repair=repair).flaws
        assert [
            flaw for flaw in flaws if flaw.who == mac(1) and "rename or delete it" in flaw.found
        ]
        assert [flaw for flaw in flaws if flaw.who == mac(2)]
    assert store.client.device(mac(2)).pending == 2
    store.redis.delete(store.keys.device("META", mac(1)))
    store.redis.restore(store.keys.device("META", mac(1)), 0, before)
    store.check()


def test_an_event_stream_of_another_program_is_named_and_the_rest_is_looked_at(
    store: Store,
) -> None:
    store.enqueue(1, 2)
    store.redis.hincrby(store.keys.device("META", mac(1)), "pending_count", 3)
    store.redis.delete(store.keys.events)
    store.redis.set(store.keys.events, "foreign")
    store.is_spoilt = True
    assert {"events", mac(1)} <= {flaw.who for flaw in examine(store.client).flaws}
    store.redis.delete(store.keys.events)


def test_a_repair_beside_others_who_work_loses_nothing(store_url: str) -> None:
    """Four threads enqueue, claim, start and finish while a repair follows the other."""
    with Client(Settings(store_url=store_url, max_per_mac_pending=1_000)) as client:
        client.ping()
        raw: Any = redis.Redis.from_url(
            store_url, decode_responses=True, encoding_errors="surrogateescape"
        )
        sent, stop = [0] * 4, threading.Event()
        failed: list[BaseException] = []

        def work(number: int) -> None:
            try:
                while not stop.is_set():
                    client.enqueue(mac(number * 4 + sent[number] % 4), "text", {"n": 1})
                    sent[number] += 1
                    for leased in client.run(verbs.Claim("text", 1 + number)).leased:
                        client.run(verbs.Start(leased.task_id, leased.attempt, "w", "run"))
                        if sent[number] % 7 == 0:
                            client.run(verbs.Defer(leased.task_id, leased.attempt))
                        else:
                            client.run(verbs.Finish(leased.task_id, leased.attempt))
            except BaseException as error:
                failed.append(error)
                raise

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(5):
                mended = examine(client, repair=True).flaws
                assert not mended, [str(flaw) for flaw in mended]
                # What really is damaged is mended under the same load.
                raw.incr(client.keys.name("GLOBAL_PENDING"), 5)
                raw.hincrby(client.keys.lane("VIRTUAL", "text"), "leased", 2)
                named = examine(client, repair=True).flaws
                assert {flaw.what for flaw in named} == {
                    "global_pending", "text leases of site default",
                }  # fmt: skip
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert not failed
        seconds, micros = raw.time()
        check_invariants(raw, client.keys, client.settings, seconds * 1000 + micros // 1000)
        assert client.run(verbs.InspectTotals()).counts["accepted"] == sum(sent)
        assert client.run(verbs.InspectTotals()).lost() == 0
        raw.close()


def test_sums_that_are_too_long_for_one_step_are_told(store: Store) -> None:
    store.enqueue(1)
    assert examine(store.client).left_out == ""
    store.redis.zadd(store.keys.name("DELAYED"), {f"t{at}": at for at in range(1_001)})
    store.is_spoilt = True
    assert examine(store.client).left_out == "sums over 1,001 delayed tasks"


def test_sums_that_are_too_long_for_one_step_are_added_up_page_by_page(store: Store) -> None:
    macs = enqueue_of_1001_devices(store)
    store.claim(251)
    store.enqueue(1, site="lab")
    for at in range(251):
        store.client.enqueue(macs[at], "text", {})
    found = examine(store.client)
    left_out = "weights of 1,002 devices with tasks; leases by device of 251 leases in lane text"
    assert (found.flaws, found.left_out) == ((), left_out)
    store.redis.hincrby(store.keys.lane("VIRTUAL", LANE), "pending", 3)
    store.redis.hincrby(store.keys.lane("VIRTUAL", LANE), "leased", 2)
    store.redis.hincrby(store.keys.name("SITES_PENDING"), "lab", 1)
    store.redis.hset(store.keys.name("SITES_PENDING"), "gone", 4)
    store.is_spoilt = True
    with store.unchanged():
        flaws = {(flaw.what, flaw.found, flaw.right) for flaw in examine(store.client).flaws}
    assert flaws == {
        ("text pending", "1005", "1002"),
        ("text leases of site default", "253", "251"),
        ("pending of site lab", "2", "1"),
        ("pending of site gone", "4", "0"),
    }


def test_pages_between_which_something_moves_are_told_as_not_checked(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue_of_1001_devices(store)
    run, other, moves = store.client.run, store.other(), 0

    def run_while_others_work(verb: Any, **options: Any) -> Any:
        nonlocal moves
        if isinstance(verb, verbs.SumPage) and verb.offset == 200 and moves < most:
            moves += 1
            other.enqueue(mac(moves), "text", {})
        return run(verb, **options)

    monkeypatch.setattr(store.client, "run", run_while_others_work)
    most = 1
    assert examine(store.client).left_out == "weights of 1,001 devices with tasks"
    assert moves == 1, "it was added up again"
    most, moves = 100, 1
    found = examine(store.client)
    moved = "sums over 1,002 devices with tasks: they moved, or cannot be read"
    assert (found.flaws, found.left_out) == ((), moved)


def enqueue_of_1001_devices(store: Store) -> list[str]:
    """Store a task of each of more devices than one step adds up; return their addresses."""
    macs = [f"02:00:00:01:{at >> 8:02x}:{at & 255:02x}" for at in range(1_001)]
    for first in (0, 501):
        items: list[tuple[str, str, dict[str, Any]]]
        items = [(address, "text", {}) for address in macs[first : first + 501]]
        store.client.run(verbs.EnqueueMany(items))
    return macs
