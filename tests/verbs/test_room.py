"""A lease that ends, however it does, makes room: for its device, and for whoever waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from fairlane import verbs
from fairlane.model import Leased
from support.store import LANE, Store, mac
from verbs.conftest import Open

ONCE: Final = {"max_attempts": 1}


def _passes(store: Store, leased: Leased) -> None:
    """Let this lease be over, and no other."""
    store.redis.zadd(store.keys.lane("INFLIGHT", LANE), {leased.task_id: store.clock.now_ms})


def _swept(store: Store, leased: Leased) -> None:
    _passes(store, leased)
    assert store.run(verbs.Sweep()).lost == (f"{leased.task_id}.1",)


def _spoilt(store: Store, leased: Leased) -> None:
    store.is_spoilt = True
    store.redis.hdel(store.keys.task(leased.task_id), "created_at")
    _passes(store, leased)
    store.run(verbs.Sweep())
    assert store.state(leased.task_id) == "dead"


def _finished(store: Store, leased: Leased) -> None:
    store.finish(leased)


def _failed(store: Store, leased: Leased) -> None:
    store.run(verbs.Fail(leased.task_id, 1, "error"))


def _failed_for_good(store: Store, leased: Leased) -> None:
    store.run(verbs.Fail(leased.task_id, 1, "error", final=True))


def _deferred(store: Store, leased: Leased) -> None:
    store.run(verbs.Defer(leased.task_id, 1))


def _deferred_too_often(store: Store, leased: Leased) -> None:
    store.redis.hset(store.keys.task(leased.task_id), "defers", store.settings.max_defers)
    store.run(verbs.Defer(leased.task_id, 1))
    assert store.state(leased.task_id) == "dead"


def _cancelled(store: Store, leased: Leased) -> None:
    store.client.cancel(leased.task_id, force=True)


def _quarantined(store: Store, leased: Leased) -> None:
    store.run(verbs.Quarantine(leased.task_id, 1, "no JSON"))


End = Callable[[Store, Leased], None]
#: How a lease ends, whether its task was started before, and the settings that make it so.
ENDS: Final[dict[str, tuple[End, bool, dict[str, int]]]] = {
    "finished": (_finished, True, {}),
    "failed": (_failed, True, {}),
    "failed for good": (_failed_for_good, True, {}),
    "failed and dead": (_failed, True, ONCE),
    "deferred": (_deferred, True, {}),
    "deferred before its start": (_deferred, False, {}),
    "deferred and dead": (_deferred_too_often, True, {}),
    "cancelled": (_cancelled, True, {}),
    "cancelled before its start": (_cancelled, False, {}),
    "quarantined": (_quarantined, True, {}),
    "lost": (_swept, True, {}),
    "lost and dead": (_swept, True, ONCE),
    "lost before its start": (_swept, False, {}),
    "spoilt": (_spoilt, True, {}),
}


@pytest.mark.parametrize("end", ENDS)
def test_whoever_waits_for_its_place_is_called(open_store: Open, end: str) -> None:
    ends, started, settings = ENDS[end]
    store = open_store(**settings)
    store.offer(1)
    store.enqueue(1)
    (leased,) = store.claim()
    if started:
        store.start(leased)
    store.enqueue(2, 3)
    store.claim(0)
    assert store.claim(0) == ()
    store.redis.delete(store.keys.doorbell)
    ends(store, leased)
    assert store.redis.llen(store.keys.doorbell) == 1
    assert store.claim(0)


@pytest.mark.parametrize("end", ENDS)
def test_its_device_may_go_again_in_every_lane(open_store: Open, end: str) -> None:
    ends, started, settings = ENDS[end]
    store = open_store(**settings)
    store.run(verbs.Configure(mac(1), max_running=1))
    store.enqueue(1)
    (leased,) = store.claim()
    if started:
        store.start(leased)
    store.enqueue(1, task_type="ocr")
    store.enqueue(1)
    assert store.claim(lane="ocr") == ()
    store.redis.delete(store.keys.doorbell)
    ends(store, leased)
    assert store.redis.llen(store.keys.doorbell) == 1
    assert store.claim(lane="ocr")
    assert store.claim(lane=LANE) == ()


def _due_delay(store: Store) -> None:
    leased = store.running()
    store.run(verbs.Fail(leased.task_id, 1, "error"))


def _due_backoff(store: Store) -> None:
    store.enqueue(1)
    (leased,) = store.claim()
    store.run(verbs.Defer(leased.task_id, 1, "", "device"))


def _due_token(store: Store) -> None:
    store.run(verbs.Configure(mac(1), rate_per_s=1))
    store.enqueue(1, 2)
    (leased,) = store.claim()
    store.start(leased)
    store.finish(leased)


def _dead_turn(store: Store) -> None:
    store.enqueue(1)
    store.run(verbs.ClaimDevice(LANE))


@pytest.mark.parametrize("wait", [_due_delay, _due_backoff, _due_token, _dead_turn])
def test_whoever_a_sweep_lets_in_is_called(store: Store, wait: Callable[[Store], None]) -> None:
    wait(store)
    assert store.claim() == ()
    store.redis.delete(store.keys.doorbell)
    store.clock.advance(10 * 60_000)
    store.run(verbs.Sweep())
    assert store.redis.llen(store.keys.doorbell) == 1
    assert store.claim()


def test_whoever_comes_back_from_the_dead_is_called(store: Store) -> None:
    task_id = store.bury()
    store.redis.delete(store.keys.doorbell)
    store.run(verbs.Redrive([task_id]))
    assert store.redis.llen(store.keys.doorbell) == 1
