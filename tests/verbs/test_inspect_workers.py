"""Read the workers: what each offers, how loaded it is, and why it offers nothing."""

from __future__ import annotations

from fairlane import verbs
from support.store import Store


def test_returns_those_whose_report_has_not_run_out(store: Store) -> None:
    assert store.run(verbs.InspectWorkers()) == ()
    store.offer(2, worker_id="old:1:a")
    store.clock.advance(20_000)
    store.offer(1, "ocr", worker_id="new:1:b", gpu=True)
    old, new = store.run(verbs.InspectWorkers())
    assert (old.worker_id, old.age_ms, old.gpu) == ("old:1:a", 20_000, False)
    assert (new.worker_id, new.age_ms, new.gpu, new.lanes) == ("new:1:b", 0, True, ("ocr",))
    store.clock.advance(10_000)
    # It is not yet swept, but it is not shown either.
    assert [worker.worker_id for worker in store.run(verbs.InspectWorkers())] == ["new:1:b"]


def test_twice_reads_again(store: Store) -> None:
    store.offer(2)
    with store.unchanged():
        assert store.run(verbs.InspectWorkers()) == store.run(verbs.InspectWorkers())
