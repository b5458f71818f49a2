"""Read how long tasks waited and ran, as histograms per lane."""

from __future__ import annotations

import pytest

from fairlane import verbs
from fairlane.model import Histogram
from support.store import Store


def times(store: Store) -> dict[str, Histogram]:
    return {found.what: found for found in store.run(verbs.InspectTimes()) if found.lane == "text"}


def sums(store: Store) -> dict[str, tuple[int, int]]:
    """Return of each histogram that counted anything how many, and the sum in ms."""
    counted = {what: (sum(found.counts), found.sum_ms) for what, found in times(store).items()}
    return {what: told for what, told in counted.items() if told[0]}


def test_an_empty_store(store: Store) -> None:
    assert store.run(verbs.InspectTimes()) == ()


def test_a_finish_counts_what_its_task_took(store: Store) -> None:
    store.enqueue(1)
    store.clock.advance(40)
    (leased,) = store.claim()
    store.clock.advance(3)
    store.start(leased)
    assert not times(store), "an attempt counts when it ends"
    store.clock.advance(250)
    store.finish(leased)
    assert sums(store) == {"wait": (1, 40), "dispatch": (1, 3), "run": (1, 250), "whole": (1, 293)}
    wait = times(store)["wait"]
    assert len(wait.counts) == len(wait.bounds_ms) + 1
    assert wait.counts[wait.bounds_ms.index(50)] == 1


def test_a_bound_belongs_to_its_bucket_and_what_is_over_the_last_is_kept(store: Store) -> None:
    for run_ms in (2, 3, 1_800_001):
        leased = store.running()
        until_ms = store.clock.now_ms + run_ms
        while store.clock.now_ms < until_ms:
            store.clock.now_ms = min(until_ms, store.clock.now_ms + store.settings.lease_ms // 2)
            store.offer(1, active=[(leased.task_id, leased.attempt)])
        store.finish(leased)
    run = times(store)["run"]
    assert (run.counts[0], run.counts[1], run.counts[-1]) == (1, 1, 1)
    assert run.sum_ms == 2 + 3 + 1_800_001


def test_a_retry_counts_its_own_run_and_the_wait_once(store: Store) -> None:
    leased = store.running()
    store.clock.advance(100)
    due_ms = store.run(verbs.Fail(leased.task_id, 1, "error", "boom")).due_ms
    assert sums(store) == {"wait": (1, 0), "dispatch": (1, 0), "run": (1, 100)}
    store.clock.now_ms = due_ms
    (again,) = store.claim()
    store.start(again)
    store.clock.advance(7)
    store.finish(again)
    waited_ms = due_ms + 7 - store.client.task(leased.task_id).created_at_ms
    assert sums(store) == {
        "wait": (1, 0),
        "dispatch": (2, 0),
        "run": (2, 107),
        "whole": (1, waited_ms),
    }


def test_a_dead_task_has_ended_and_a_cancelled_one_has_not_come_to_its_end(store: Store) -> None:
    store.bury(1)
    assert sums(store)["run"][0] == store.settings.max_attempts
    assert sums(store)["whole"][0] == 1
    leased = store.running(2)
    store.clock.advance(5)
    store.client.cancel(leased.task_id, force=True)
    assert sums(store)["run"][0] == store.settings.max_attempts + 1
    assert sums(store)["whole"][0] == 1


def test_a_deferred_run_counts_and_a_lease_without_a_start_does_not(store: Store) -> None:
    store.enqueue(1)
    (leased,) = store.claim()
    store.run(verbs.Defer(leased.task_id, 1, "no model"))
    assert not times(store)
    running = store.running(2)
    store.clock.advance(30)
    store.run(verbs.Defer(running.task_id, running.attempt, "no model"))
    assert sums(store) == {"wait": (1, 0), "dispatch": (1, 0), "run": (1, 30)}
    assert store.run(verbs.InspectTotals()).counts["deferred:text"] == 2


def test_a_lost_run_counts_until_its_last_heartbeat(store: Store) -> None:
    store.running()
    store.clock.advance(1_000)
    store.clock.advance(store.settings.lease_ms)
    store.run(verbs.Sweep())
    assert sums(store)["run"] == (1, 1)


def test_the_second_run_of_an_end_counts_nothing(store: Store) -> None:
    leased = store.running()
    store.finish(leased)
    before = times(store)
    store.finish(leased)
    assert times(store) == before


def test_what_another_program_spoiled_begins_anew(store: Store) -> None:
    store.finish(store.running())
    store.redis.setrange(store.keys.lane("TIMES", "text"), 0, b"\xff" * 576)
    assert not times(store), "nobody is told that"
    store.finish(store.running())
    assert sums(store) == {"wait": (1, 0), "dispatch": (1, 0), "run": (1, 0), "whole": (1, 0)}


def test_what_is_longer_is_not_ours(store: Store) -> None:
    store.redis.set(store.keys.lane("TIMES", "text"), b"\0" * 577)
    assert not times(store)


@pytest.mark.parametrize("field", ["created_at", "claimed_at"])
def test_a_time_that_is_none_ends_its_task_and_counts_nothing(store: Store, field: str) -> None:
    leased = store.running()
    store.redis.hset(store.keys.task(leased.task_id), field, "nonsense")
    assert store.finish(leased)
    assert not times(store)


def test_twice_reads_again(store: Store) -> None:
    store.finish(store.running())
    with store.unchanged():
        assert store.run(verbs.InspectTimes()) == store.run(verbs.InspectTimes())
