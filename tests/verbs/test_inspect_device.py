"""Read a device: what it has pending, since when, its rank and why it cannot go, lane by lane."""

from __future__ import annotations

import pytest

from fairlane import formulas, verbs
from fairlane.errors import InvalidMac
from fairlane.model import DeviceLimits
from support.store import LANE, Store, mac
from verbs.conftest import Open


def test_an_unknown_device_has_nothing_pending(store: Store) -> None:
    device = store.run(verbs.InspectDevice(mac(1)))
    assert (device.pending, device.waited_ms, device.score, device.limits) == (
        0,
        0,
        0.0,
        DeviceLimits(),
    )
    assert {(lane.lane, lane.rank, lane.held_by) for lane in device.lanes} == {
        ("ocr", -1, "nothing queued"),
        ("text", -1, "nothing queued"),
    }


@pytest.mark.parametrize("waited_ms", [0, 1, 30_000, 599_999, 600_000, 600_001, 3_000_000])
def test_w_and_s_are_exact_at_the_time_of_reading(open_store: Open, waited_ms: int) -> None:
    store = open_store(aging_weight=2.5)
    store.enqueue(1)
    store.clock.advance(waited_ms)
    store.enqueue(1)
    device = store.client.device(mac(1))
    assert device.waited_ms == waited_ms
    assert device.score == formulas.score(waited_ms, weight=2.5)
    assert device.oldest_ms == store.clock.now_ms - waited_ms


def test_ranks_in_the_order_of_service(store: Store) -> None:
    for number in (3, 1, 2):
        store.enqueue(number)
    ranks = {
        number: lane.rank
        for number in (1, 2, 3)
        for lane in store.client.device(mac(number)).lanes
        if lane.lane == LANE
    }
    assert ranks == {3: 0, 1: 1, 2: 2}


def test_why_it_cannot_go(store: Store) -> None:
    def held_by() -> tuple[str, int]:
        lane = store.client.device(mac(1)).lanes[1]
        return lane.held_by, lane.until_ms

    store.enqueue(1, 2)
    assert held_by() == ("", 0)
    turn = store.run(verbs.ClaimDevice(LANE))
    assert turn is not None
    assert held_by() == ("turn", turn.deadline_ms)
    store.run(verbs.Release(turn.mac, turn.lane, turn.token))
    (leased,) = store.claim()
    due_ms = store.run(verbs.Defer(leased.task_id, 1, "", "device")).due_ms
    assert held_by() == ("backoff", due_ms)
    store.run(verbs.Configure(mac(1), paused=True))
    assert held_by() == ("paused", 0)


def test_a_device_is_held_by_its_rate_until_it_is_let_in(store: Store) -> None:
    store.run(verbs.Configure(mac(1), rate_per_s=1))
    store.enqueue(1, 2)
    store.claim()
    due_ms = store.clock.now_ms + 1_000
    for at_ms in (due_ms - 1, due_ms, due_ms + 50):
        store.clock.now_ms = at_ms
        lane = store.client.device(mac(1)).lanes[1]
        # It has a token by now; nobody has looked yet.
        assert (lane.rank, lane.held_by, lane.until_ms) == (-1, "rate", due_ms)
    store.run(verbs.Sweep())
    lane = store.client.device(mac(1)).lanes[1]
    assert (lane.rank, lane.held_by) == (0, "")


def test_no_device(store: Store) -> None:
    store.refuses(InvalidMac, verbs.InspectDevice("nonsense"))


def test_twice_reads_again(store: Store) -> None:
    store.enqueue(1)
    with store.unchanged():
        assert store.client.device(mac(1)) == store.client.device(mac(1))
