"""Take a worker's offer away when it stops."""

from __future__ import annotations

from fairlane import verbs
from support.store import Store


def test_returns_true_and_the_slots_are_gone(store: Store) -> None:
    store.offer(2, worker_id="a:1:a")
    store.offer(3, worker_id="b:1:b")
    assert store.run(verbs.Deregister("a:1:a"))
    assert [worker.worker_id for worker in store.run(verbs.InspectWorkers())] == ["b:1:b"]
    assert store.run(verbs.InspectLanes())[1].slots == 3
    assert not store.redis.exists(store.keys.name("WORKER") + "a:1:a")
    told = store.client.events()[-1]
    assert (told.event, told.detail) == ("worker_gone", "a:1:a")


def test_what_it_runs_is_not_lost(store: Store) -> None:
    leased = store.running()
    store.offer(1, active=[(leased.task_id, 1)])
    store.run(verbs.Deregister("host:1:a"))
    store.clock.advance(store.settings.lease_ms)
    assert store.run(verbs.Sweep()).lost == (f"{leased.task_id}.1",)


def test_twice_answers_false_and_changes_nothing(store: Store) -> None:
    store.offer(2)
    store.run(verbs.Deregister("host:1:a"))
    with store.unchanged():
        assert not store.run(verbs.Deregister("host:1:a"))
        assert not store.run(verbs.Deregister("never seen"))
