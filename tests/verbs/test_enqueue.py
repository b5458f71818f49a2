"""Store a task and put it into its device's queue, or refuse it."""

from __future__ import annotations

import pytest

from fairlane import Receipt, Refusal, Refused, TaskState, verbs
from fairlane.errors import InvalidData, PayloadTooLarge, TaskConflict, UnknownTaskType
from support.store import LANE, Store, mac, receipt_of
from verbs.conftest import Open


def test_returns_a_receipt_and_queues_the_task(store: Store) -> None:
    first = store.run(verbs.Enqueue(mac(1), LANE, {"a": 1}))
    second = store.client.enqueue(mac(1), LANE, {"a": 2})
    assert first == Receipt(receipt_of(first).task_id, mac(1), store.clock.now_ms, 1)
    assert second.pending == 2
    record = store.client.task(second.task_id)
    assert (record.state, record.place, record.payload) == (TaskState.PENDING, 1, b'{"a":2}')
    assert record.expires_at_ms == store.clock.now_ms + store.settings.task_ttl_ms


def test_one_device_has_one_queue_however_its_mac_is_spelt(store: Store) -> None:
    spellings = ("02:00:00:00:00:0A", "02-00-00-00-00-0a", "0200.0000.000A", "02000000000a")
    receipts = [store.client.enqueue(spelt, LANE, {}) for spelt in spellings]
    assert {receipt.mac for receipt in receipts} == {mac(10)}
    assert store.client.devices() == ((mac(10), 4),)


def test_a_lane_of_its_own_for_each_type(store: Store) -> None:
    store.enqueue(1, task_type="ocr")
    store.enqueue(1, task_type="text")
    lanes = {lane.lane: lane.queued for lane in store.client.device(mac(1)).lanes}
    assert lanes == {"ocr": 1, "text": 1}
    assert store.client.device(mac(1)).pending == 2


def test_a_ttl_of_its_own(store: Store) -> None:
    receipt = store.client.enqueue(mac(1), LANE, {}, ttl_ms=2_000)
    assert store.client.task(receipt.task_id).expires_at_ms == store.clock.now_ms + 2_000


def test_a_refusal_is_an_answer_that_stores_nothing(store: Store) -> None:
    limit = store.settings.max_per_mac_pending
    store.client.enqueue_many([(mac(1), LANE, {})] * limit)
    refusal = store.run(verbs.Enqueue(mac(1), LANE, {}, task_id="one-too-many"))
    assert isinstance(refusal, Refusal)
    assert (refusal.reason, refusal.pending, refusal.limit) == ("device_full", limit, limit)
    assert refusal.retry_after_ms > 0
    assert not store.redis.exists(store.keys.task("one-too-many"))
    with pytest.raises(Refused) as raised:
        store.client.enqueue(mac(1), LANE, {}, task_id="one-too-many")
    assert raised.value.refusal == refusal


def test_task_conflict_the_id_is_taken_by_another_task(store: Store) -> None:
    store.client.enqueue(mac(1), LANE, {"a": 1}, task_id="taken")
    store.refuses(TaskConflict, verbs.Enqueue(mac(1), LANE, {"a": 2}, task_id="taken"))
    store.refuses(TaskConflict, verbs.Enqueue(mac(2), LANE, {"a": 1}, task_id="taken"))
    store.refuses(TaskConflict, verbs.Enqueue(mac(1), "ocr", {"a": 1}, task_id="taken"))


def test_what_the_settings_do_not_allow(store: Store) -> None:
    store.refuses(UnknownTaskType, verbs.Enqueue(mac(1), "video", {}))
    room = store.settings.max_payload_bytes - len('{"t":""}')
    store.refuses(PayloadTooLarge, verbs.Enqueue(mac(1), LANE, {"t": "x" * (room + 1)}))
    store.client.enqueue(mac(1), LANE, {"t": "x" * room})


def test_twice_answers_known_and_changes_nothing(store: Store) -> None:
    verb = verbs.Enqueue(mac(1), LANE, {"a": 1}, task_id="once")
    first = receipt_of(store.run(verb))
    store.clock.advance(1_000)
    with store.unchanged():
        second = receipt_of(store.run(verb))
    assert second == Receipt("once", mac(1), first.created_at_ms, 0, TaskState.PENDING, known=True)
    (leased,) = store.claim()
    store.start(leased)
    store.finish(leased)
    assert receipt_of(store.run(verb)).state is TaskState.DONE


def test_the_doorbell_rings_once_for_a_device_that_could_not_go_before(store: Store) -> None:
    assert not store.client.wait(0.01)
    store.enqueue(1, 3)
    assert store.redis.llen(store.keys.doorbell) == 1
    assert store.client.wait(0.01)
    store.enqueue(1)
    assert not store.client.wait(0.01)


@pytest.mark.parametrize("site", ["A", "a b", "a@b", "", "-a", "x" * 65, 7])
def test_no_site(store: Store, site: str) -> None:
    with store.unchanged(), pytest.raises(InvalidData, match="site"):
        verbs.Enqueue(mac(1), LANE, {}, site=site)


@pytest.mark.parametrize("cost_ms", [0, -1, 1.5, True, "5", 7 * 24 * 3_600_000 + 1])
def test_no_cost(store: Store, cost_ms: int) -> None:
    with store.unchanged(), pytest.raises(InvalidData, match="cost_ms"):
        verbs.Enqueue(mac(1), LANE, {}, cost_ms=cost_ms)


def test_a_site_and_a_cost_are_no_part_of_the_body(store: Store) -> None:
    """The same id with the same data is the same task, whatever the caller says of its cost."""
    first = store.client.enqueue(mac(1), LANE, {}, task_id="one", site="a", cost_ms=5)
    verb = verbs.Enqueue(mac(1), LANE, {}, task_id="one", site="b", cost_ms=9)
    with store.unchanged():
        assert receipt_of(store.client.run(verb)).created_at_ms == first.created_at_ms
    assert store.client.device(mac(1)).site == "a"


def test_a_conflict_of_a_sited_task_changes_nothing(store: Store) -> None:
    store.client.enqueue(mac(1), LANE, {}, task_id="one", site="a")
    store.refuses(TaskConflict, verbs.Enqueue(mac(2), LANE, {}, task_id="one", site="b"))


def test_a_refused_task_puts_its_device_into_no_site(open_store: Open) -> None:
    store = open_store(max_total_pending=1)
    store.enqueue(1, site="a")
    assert isinstance(store.run(verbs.Enqueue(mac(2), LANE, {}, site="b")), Refusal)
    assert not store.redis.exists(store.keys.device("META", mac(2)))
