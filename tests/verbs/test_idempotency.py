"""One idempotency key of a caller is one task, however often and by however many it is sent."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fairlane import AsyncClient, Client, Refusal, Refused, Settings, TaskState, verbs
from fairlane.errors import IdempotencyConflict, InvalidData, TaskConflict
from fairlane.model import Receipt
from support.store import LANE, Store, mac, receipt_of
from verbs.conftest import Open

KEY = "order-7"


def keyed(data: dict[str, Any] | None = None, **options: Any) -> verbs.Enqueue:
    options = {"idempotency_key": KEY, **options}
    return verbs.Enqueue(mac(1), LANE, {"a": 1} if data is None else data, **options)


def kept(store: Store) -> int:
    count: int = store.redis.hlen(store.keys.name("RECEIPTS"))
    return count


def test_the_same_key_with_the_same_body_is_the_same_task(store: Store) -> None:
    first = receipt_of(store.run(keyed()))
    store.clock.advance(1_000)
    with store.unchanged():
        again = receipt_of(store.run(keyed()))
    assert again == Receipt(
        first.task_id, mac(1), first.created_at_ms, 0, TaskState.PENDING, known=True
    )
    assert store.client.devices() == ((mac(1), 1),)


def test_the_state_of_a_replay_is_current(store: Store) -> None:
    store.run(keyed())
    (leased,) = store.claim()
    store.start(leased)
    assert receipt_of(store.run(keyed())).state is TaskState.RUNNING
    store.finish(leased)
    assert receipt_of(store.run(keyed())).state is TaskState.DONE


def test_a_key_outlives_the_record_of_its_task(store: Store) -> None:
    first = receipt_of(store.run(keyed()))
    (leased,) = store.claim()
    store.start(leased)
    store.finish(leased)
    store.redis.delete(store.keys.task(first.task_id))  # as its retention does
    again = receipt_of(store.run(keyed()))
    assert (again.task_id, again.state, again.known) == (first.task_id, None, True)


@pytest.mark.parametrize(
    "other",
    [
        {"data": {"a": 2}},
        {"data": {"a": 1.0}},
        {"ttl_ms": 5_000},
        {"cost_ms": 5},
        {"site": "lab"},
        {"task_id": "one"},
    ],
    ids=str,
)
def test_the_same_key_with_another_body_is_a_conflict(store: Store, other: dict[str, Any]) -> None:
    """A12: the same key with another body is an error of its own; nothing changes."""
    store.run(keyed())
    store.refuses(IdempotencyConflict, keyed(**other), "another body")


@pytest.mark.parametrize("change", [(mac(2), LANE), (mac(1), "ocr")])
def test_another_device_or_type_is_another_body(store: Store, change: tuple[str, str]) -> None:
    store.run(keyed())
    store.refuses(IdempotencyConflict, verbs.Enqueue(*change, {"a": 1}, idempotency_key=KEY))


def test_the_order_of_the_datas_keys_and_the_spelling_of_the_mac_are_no_difference(
    store: Store,
) -> None:
    store.client.enqueue(mac(10), LANE, {"a": 1, "b": {"c": 2, "d": 3}}, idempotency_key=KEY)
    again = store.client.enqueue(
        "0200.0000.000A", LANE, {"b": {"d": 3, "c": 2}, "a": 1}, idempotency_key=KEY
    )
    assert again.known


def test_a_key_belongs_to_its_caller(store: Store) -> None:
    ids = {receipt_of(store.run(keyed(caller=caller))).task_id for caller in ("", "a", "b")}
    assert len(ids) == 3
    assert receipt_of(store.run(keyed(caller="a"))).known
    # What separates the two is no character of either.
    one = store.run(keyed(caller="a", idempotency_key="bc"))
    other = store.run(keyed(caller="ab", idempotency_key="c"))
    assert receipt_of(one).task_id != receipt_of(other).task_id


def test_an_id_of_ones_own_goes_along_with_a_key(store: Store) -> None:
    first = receipt_of(store.run(keyed(task_id="one")))
    assert (first.task_id, first.known) == ("one", False)
    assert receipt_of(store.run(keyed(task_id="one"))).known
    store.refuses(IdempotencyConflict, keyed(task_id="two"))
    store.refuses(IdempotencyConflict, keyed())


def test_a_key_for_a_task_that_is_there_already(store: Store) -> None:
    store.client.enqueue(mac(1), LANE, {"a": 1}, task_id="one")
    receipt = receipt_of(store.run(keyed(task_id="one")))
    assert (receipt.task_id, receipt.known) == ("one", True)
    store.refuses(IdempotencyConflict, keyed({"a": 2}, task_id="one"))
    store.refuses(TaskConflict, keyed({"a": 2}, task_id="one", idempotency_key="new"))
    assert kept(store) == 1


def test_a_batch_keeps_a_key_for_a_task_that_is_there_already(store: Store) -> None:
    plain = verbs.Enqueue(mac(1), LANE, {"a": 1}, task_id="one")
    store.run(plain)
    (receipt,) = store.run(verbs.EnqueueMany([keyed(task_id="one")]))
    assert receipt_of(receipt).known
    with pytest.raises(IdempotencyConflict):
        store.run(keyed({"a": 2}))


def test_a_key_ends_by_the_stores_clock(open_store: Open) -> None:
    store = open_store(idempotency_ttl_ms=60_000)
    first = receipt_of(store.run(keyed()))
    store.clock.advance(59_999)
    assert receipt_of(store.run(keyed())).task_id == first.task_id
    store.clock.advance(1)
    second = receipt_of(store.run(keyed({"a": 2})))
    assert second.task_id != first.task_id
    assert not second.known
    assert kept(store) == 1


def test_what_is_over_is_swept_in_steps(open_store: Open) -> None:
    store = open_store(idempotency_ttl_ms=60_000)
    for at in range(5):
        store.run(keyed({"at": at}, idempotency_key=str(at)))
    store.clock.advance(60_000)
    assert [store.run(verbs.Sweep(2)).receipts for _ in range(4)] == [2, 2, 1, 0]
    names = {store.keys.name(name) for name in ("RECEIPTS", "RECEIPTS_DUE")}
    assert not names & set(store.redis.keys("*"))


def test_a_refused_task_has_no_receipt(open_store: Open) -> None:
    store = open_store(max_total_pending=1)
    store.enqueue(2)
    assert isinstance(store.run(keyed()), Refusal)
    assert kept(store) == 0
    store.served(1)
    assert not receipt_of(store.run(keyed())).known


def test_full_is_told_and_nothing_is_dropped(open_store: Open) -> None:
    store = open_store(idempotency_cap=2, idempotency_ttl_ms=60_000)
    store.run(keyed({"n": 1}, idempotency_key="1"))
    store.clock.advance(1_000)
    store.run(keyed({"n": 2}, idempotency_key="2"))
    refusal = store.run(keyed({"n": 3}, idempotency_key="3", task_id="third"))
    assert isinstance(refusal, Refusal)
    assert (refusal.reason, refusal.pending, refusal.limit) == ("idempotency_full", 2, 2)
    assert refusal.retry_after_ms == 59_000
    assert not store.redis.exists(store.keys.task("third"))
    with pytest.raises(Refused):
        store.client.enqueue(mac(1), LANE, {}, idempotency_key="3")
    assert receipt_of(store.run(keyed({"n": 1}, idempotency_key="1"))).known
    assert not receipt_of(store.run(verbs.Enqueue(mac(1), LANE, {}))).known, "without a key"
    store.client.enqueue(mac(1), LANE, {}, task_id="known")
    assert isinstance(store.run(keyed({}, task_id="known", idempotency_key="3")), Refusal)
    store.clock.advance(59_000)
    assert not receipt_of(store.run(keyed({"n": 3}, idempotency_key="3"))).known
    assert kept(store) == 2
    assert store.run(verbs.InspectTotals()).counts["refused_idempotency_full"] == 3


def test_a_batch_tells_each(open_store: Open) -> None:
    store = open_store(idempotency_cap=2)
    known = receipt_of(store.run(keyed()))
    new = {"mac": mac(2), "task_type": LANE, "data": {}, "idempotency_key": "new"}
    verdicts = store.client.enqueue_many(
        [
            (mac(3), LANE, {}),
            keyed(),
            keyed({"a": 2}),
            new,
            new,
            keyed(idempotency_key="too many"),
            verbs.Enqueue(mac(3), LANE, {}),
        ]
    )
    first, replay, conflict, second, twice, refused, last = verdicts
    store.check()
    assert [receipt_of(each).known for each in (first, second, last)] == [False] * 3
    assert receipt_of(replay).task_id == known.task_id
    assert type(conflict) is IdempotencyConflict
    assert receipt_of(twice).task_id == receipt_of(second).task_id
    assert isinstance(refused, Refusal)
    assert refused.reason == "idempotency_full"
    assert receipt_of(last).pending == 2


def test_a_batch_twice_answers_known(store: Store) -> None:
    batch = [keyed({"at": at}, idempotency_key=str(at)) for at in range(3)]
    first = store.run(verbs.EnqueueMany(batch))
    anew = [keyed({"at": at}, idempotency_key=str(at)) for at in range(3)]
    with store.unchanged():
        second = store.run(verbs.EnqueueMany(anew))
    assert [receipt_of(each).task_id for each in second] == [
        receipt_of(each).task_id for each in first
    ]


def test_fifty_at_once_are_one_task(store: Store) -> None:
    """A12: 50 parallel calls with one key are one task."""
    clients = [store.other() for _ in range(10)]

    def send(at: int) -> Receipt:
        return clients[at % 10].enqueue(mac(1), LANE, {"a": 1}, idempotency_key=KEY, caller="me")

    with ThreadPoolExecutor(10) as pool:
        receipts = list(pool.map(send, range(50)))
    assert len({receipt.task_id for receipt in receipts}) == 1
    assert sum(not receipt.known for receipt in receipts) == 1
    assert store.client.devices() == ((mac(1), 1),)


def test_fifty_at_once_by_an_async_client(store: Store) -> None:
    """A12: the same on one connection."""

    async def run() -> list[Receipt]:
        async with AsyncClient(store.settings, clock=store.clock) as client:
            calls = (
                client.enqueue(mac(1), LANE, {}, idempotency_key=KEY, caller="me")
                for _ in range(50)
            )
            return await asyncio.gather(*calls)

    receipts = asyncio.run(run())
    assert len({receipt.task_id for receipt in receipts}) == 1
    assert sum(not receipt.known for receipt in receipts) == 1


HOSTILE = ("", " ", "x" * 256, "a\nb", "a\x00b", "\x7f", "\ud800", "a\u2028b", 7, b"a", None)


@pytest.mark.parametrize("key", HOSTILE, ids=lambda value: ascii(value)[:16])
def test_a_hostile_key(store: Store, key: Any) -> None:
    for name in ("idempotency_key", "caller"):
        if (name, key) in (("idempotency_key", None), ("caller", ""), ("caller", " ")):
            continue
        with store.unchanged(), pytest.raises(InvalidData, match=name) as raised:
            keyed(**{name: key})
        assert str(raised.value).isprintable()


@pytest.mark.parametrize("key", ["a", "x" * 255, "订单 7", "{tag}*?[a]", "' .. redis.call .. '"])
def test_a_key_that_is_one(store: Store, key: str) -> None:
    assert not receipt_of(store.run(keyed(idempotency_key=key))).known
    assert receipt_of(store.run(keyed(idempotency_key=key))).known


def test_a_spoilt_receipt_is_none(store: Store) -> None:
    first = receipt_of(store.run(keyed()))
    (field,) = store.redis.hkeys(store.keys.name("RECEIPTS"))
    store.redis.hset(store.keys.name("RECEIPTS"), field, "nonsense")
    assert receipt_of(store.client.run(keyed())).task_id != first.task_id
    store.check()


def test_a_receipt_whose_end_was_taken_away_ends_all_the_same(open_store: Open) -> None:
    """Another program removed it; one that holds no receipt at all goes at once."""
    store = open_store(idempotency_ttl_ms=1_000)
    for number in range(3):
        store.run(keyed(idempotency_key=str(number)))
    store.redis.delete(store.keys.name("RECEIPTS_DUE"))
    store.redis.hset(store.keys.name("RECEIPTS"), "foreign", "nonsense")
    store.is_spoilt = True
    store.run(verbs.Sweep())
    assert kept(store) == 3
    store.is_spoilt = False
    store.clock.advance(1_001)
    assert store.run(verbs.Sweep()).receipts == 3
    assert kept(store) == 0


def test_without_a_key_nothing_is_called_for_it(store: Store) -> None:
    """What an enqueue without a key calls in the server is what it called before there were keys:
    as many for the second task of a device, 14, whatever stands among the receipts."""
    store.run(keyed())
    store.client.enqueue(mac(1), LANE, {})
    store.redis.config_resetstat()
    store.client.enqueue(mac(1), LANE, {})
    stats = store.redis.info("commandstats")
    calls = {name: row["calls"] for name, row in stats.items() if name != "cmdstat_info"}
    assert calls.pop("cmdstat_fcall") == 1
    calls.pop("cmdstat_config|resetstat")
    assert sum(calls.values()) == 14, calls


def test_a_client_by_url_may_send_a_key(store_url: str) -> None:
    with Client(Settings(store_url=store_url)) as client:
        first = client.enqueue(mac(1), LANE, {}, idempotency_key=KEY)
        assert client.enqueue(mac(1), LANE, {}, idempotency_key=KEY).task_id == first.task_id
