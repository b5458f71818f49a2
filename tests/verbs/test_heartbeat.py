"""Report a worker: what it offers and how loaded it is; extend the leases of what it runs."""

from __future__ import annotations

from fairlane import verbs
from fairlane.errors import InvalidData, InvalidTaskId, UnknownLane
from support.store import LANE, Store


def lease_ends(store: Store, task_id: str) -> int:
    return int(store.redis.zscore(store.keys.lane("INFLIGHT", LANE), task_id))


def test_the_row_shows_the_report(store: Store) -> None:
    store.offer(3, "ocr", "text", gpu=True, report={"cpu": "12", "reason": "warm"})
    (worker,) = store.run(verbs.InspectWorkers())
    assert (worker.worker_id, worker.lanes) == ("host:1:a", ("ocr", "text"))
    assert (worker.slots, worker.gpu, worker.active, worker.reason) == (3, True, 0, "warm")
    assert (worker.last_heartbeat_ms, worker.age_ms) == (store.clock.now_ms, 0)
    assert worker.report == {"cpu": "12"}
    left_ms = store.redis.pttl(store.keys.name("WORKER") + "host:1:a")
    assert 0 < left_ms <= 30_000


def test_extends_the_leases_of_what_it_runs(store: Store) -> None:
    leased = store.running()
    now = store.clock.advance(20_000)
    store.offer(1, active=[(leased.task_id, 1)])
    assert lease_ends(store, leased.task_id) == now + store.settings.lease_ms


def test_a_clock_that_steps_back_takes_nothing_from_a_lease(store: Store) -> None:
    leased = store.running()
    before = lease_ends(store, leased.task_id)
    store.clock.advance(-10_000)
    store.offer(1, active=[(leased.task_id, 1)])
    assert lease_ends(store, leased.task_id) == before


def test_does_not_extend_a_lease_that_nobody_started(store: Store) -> None:
    store.enqueue(1)
    (leased,) = store.claim()
    before = lease_ends(store, leased.task_id)
    store.clock.advance(20_000)
    assert store.run(verbs.Heartbeat("w:1:a", [LANE], 1, active=[(leased.task_id, 1)])) == ()
    assert lease_ends(store, leased.task_id) == before


def test_returns_what_the_worker_should_not_run_any_more(store: Store) -> None:
    lost, kept = store.running(1), store.running(2)
    store.client.cancel(lost.task_id, force=True)
    active = [(lost.task_id, 1), (kept.task_id, 1), (kept.task_id, 7), ("unknown", 1)]
    stale = store.run(verbs.Heartbeat("w:1:a", [LANE], 1, active=active))
    assert stale == (f"{lost.task_id}.1", f"{kept.task_id}.7", "unknown.1")


def test_a_changed_offer_counts_at_once_and_wakes_the_dispatcher(store: Store) -> None:
    store.enqueue(1, 9)
    while store.client.wait(0.01):
        pass
    store.offer(2)
    assert store.client.wait(0.01)
    store.offer(2)
    assert not store.client.wait(0.01), "the same offer is no news"
    store.offer(5)
    assert store.run(verbs.InspectLanes())[1].slots == 5
    store.offer(1, worker_id="other:1:b")
    assert store.run(verbs.InspectLanes())[1].slots == 6


def test_two_workers_of_one_name_are_two_rows(store: Store) -> None:
    store.offer(1, worker_id="host:1:a")
    store.offer(1, worker_id="host:1:b")
    assert len(store.run(verbs.InspectWorkers())) == 2


def test_a_worker_without_slots_says_why(store: Store) -> None:
    store.offer(0, report={"reason": "cpu 91 %"})
    (worker,) = store.run(verbs.InspectWorkers())
    assert (worker.slots, worker.reason) == (0, "cpu 91 %")
    store.enqueue(1)
    assert store.claim(0) == ()


def test_what_cannot_be_reported(store: Store) -> None:
    store.refuses(UnknownLane, verbs.Heartbeat("w:1:a", ["video"], 1))
    active = [("a", 1)] * 1_001
    store.refuses(InvalidData, verbs.Heartbeat("w:1:a", [LANE], 1, active=active))
    store.refuses(InvalidData, verbs.Heartbeat("w:1:a", [LANE], 1, report={"slots": "99"}))
    store.refuses(InvalidTaskId, verbs.Heartbeat("w:1:a", [LANE], 1, active=[("a b", 1)]))


def test_text_that_utf_8_cannot_carry_is_stored_with_marks(store: Store) -> None:
    store.run(verbs.Heartbeat("w:1:\ud800", [LANE], 1, report={"reason": "\udfff"}))
    (worker,) = store.run(verbs.InspectWorkers())
    assert (worker.worker_id, worker.reason) == ("w:1:?", "?")


def test_twice_reports_again_from_the_later_clock(store: Store) -> None:
    verb = verbs.Heartbeat("w:1:a", [LANE], 2)
    store.run(verb)
    with store.unchanged():
        store.run(verb)
    store.clock.advance(29_999)
    store.run(verb)
    store.clock.advance(29_999)
    assert len(store.run(verbs.InspectWorkers())) == 1


def test_what_a_worker_offers_is_told_when_it_changes(store: Store) -> None:
    for slots in (2, 2, 3):
        store.offer(slots, LANE, "ocr")
    told = [event.detail for event in store.client.events() if event.event == "worker"]
    assert told == [f"host:1:a {LANE},ocr 2", f"host:1:a {LANE},ocr 3"]
