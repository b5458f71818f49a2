"""What happens is told: an event names whose it was, which tasks, and what became of them."""

from __future__ import annotations

from fairlane import verbs
from fairlane.model import Event
from support.store import LANE, Store, mac


def told(store: Store, event: str) -> list[Event]:
    return [each for each in store.client.events() if each.event == event]


def test_a_claim_tells_which_attempts_it_leased_and_to_whom(store: Store) -> None:
    ids = {mac(1): store.enqueue(1, 2), mac(2): store.enqueue(2)}
    store.claim(3, holder="here")
    claimed: dict[str, list[str]] = {mac(1): [], mac(2): []}
    for event in told(store, "claimed"):
        assert (event.lane, event.detail) == (LANE, "here")
        claimed[event.mac] += event.tasks
    assert claimed == {address: [f"{task}.1" for task in tasks] for address, tasks in ids.items()}


def test_a_task_that_waits_again_is_told_with_what_it_was(store: Store) -> None:
    running = store.running(1)
    (unstarted,) = store.enqueue(2)
    store.claim()
    store.clock.advance(store.settings.lease_ms)
    store.run(verbs.Sweep())
    came_back = {
        event.tasks: (event.mac, event.lane, event.detail) for event in told(store, "returned")
    }
    assert came_back == {
        (running.task_id,): (mac(1), LANE, "running"),
        (unstarted,): (mac(2), LANE, "leased"),
    }


def test_a_two_step_turn_is_told_at_its_beginning_and_its_end(store: Store) -> None:
    store.enqueue(1)
    opened = store.run(verbs.ClaimDevice(LANE))
    assert opened is not None
    (begun,) = told(store, "turn_opened")
    assert (begun.mac, begun.lane, begun.detail) == (mac(1), LANE, opened.token)
    assert not told(store, "turn_ended")
    store.run(verbs.Release(opened.mac, opened.lane, opened.token))
    (ended,) = told(store, "turn_ended")
    assert (ended.mac, ended.lane) == (mac(1), LANE)


def test_what_becomes_of_a_dead_letter_is_told(store: Store) -> None:
    back, gone = store.bury(1), store.bury(2)
    store.run(verbs.Redrive([back]))
    store.run(verbs.Drop([gone]))
    (redriven,), (dropped,) = told(store, "redriven"), told(store, "dropped")
    assert (redriven.mac, redriven.lane, redriven.tasks) == (mac(1), LANE, (back,))
    assert (dropped.mac, dropped.tasks) == (mac(2), (gone,))


def test_an_entry_that_leads_to_a_task_elsewhere_is_told(store: Store) -> None:
    (task_id,) = store.enqueue(1)
    store.redis.rpush(store.keys.device("QUEUE", mac(1), LANE), task_id)
    store.claim(5)
    (corrupt,) = told(store, "corrupt")
    assert (corrupt.mac, corrupt.lane, corrupt.tasks) == (mac(1), LANE, (task_id,))
    assert store.run(verbs.InspectTotals()).counts["corrupt"] == 1


def test_a_delayed_entry_of_a_task_that_is_over_is_told(store: Store) -> None:
    leased = store.running()
    store.finish(leased)
    store.redis.zadd(store.keys.name("DELAYED"), {leased.task_id: store.clock.now_ms})
    store.run(verbs.Sweep())
    (corrupt,) = told(store, "corrupt")
    assert (corrupt.mac, corrupt.tasks) == (mac(1), (leased.task_id,))
    assert corrupt.detail.endswith("is done")
