"""What the store says of itself, compared with what is recounted from its data (I25).

The rule: the answers of one moment are read in one pipeline, and every number that a person sees in
them is counted anew from a dump of the same moment.
"""

from __future__ import annotations

from typing import Any

from fairlane import Client, verbs
from fairlane.model import Device, Lane
from model.book import Book
from model.promises import credits_of
from support.dump import LEASED, Seen
from support.invariants import reasons


def i25_what_is_shown_is_recounted(client: Client, macs: list[str], seen: Seen) -> None:
    """I25, I06, I04: levels, totals, lanes and devices are what the data say, reasons too."""
    asked: list[verbs.Verb[Any]] = [
        *(verbs.Overload(), verbs.InspectTotals(), verbs.InspectLanes(), verbs.Devices()),
        *map(verbs.InspectDevice, macs),
    ]
    overload, totals, lanes, listed, *devices = client.run_many(asked)
    waiting = seen.waiting()
    total, settings = waiting.total(), seen.settings
    by_mac = {mac: sum(count for place, count in waiting.items() if place[0] == mac)
              for mac in macs}  # fmt: skip
    over = sum(count > settings.max_per_mac_pending for count in by_mac.values())
    is_over = total > settings.max_total_pending or over > 0
    told = overload.overloaded, overload.global_pending, overload.overloaded_devices
    assert told == (is_over, total, over)
    leased = sum(len(seen.leases(lane)) for lane in settings.lanes)
    assert (totals.pending, totals.leased) == (total, leased)
    assert (totals.delayed, totals.dead_letters) == (len(seen.delayed), len(seen.dead))
    assert totals.lost() == 0
    assert dict(listed) == {mac: count for mac, count in by_mac.items() if count}
    for lane in lanes:
        _check_lane(lane, seen)
    for device in devices:
        assert device.pending == by_mac[device.mac]
        _check_device(device, seen)


def _check_lane(lane: Lane, seen: Seen) -> None:
    waiting = seen.waiting()
    pending = sum(count for (_, name), count in waiting.items() if name == lane.name)
    scheduled = seen.scheduled(lane.name)
    told = lane.pending, lane.scheduled, lane.leased, lane.backoffs
    backoffs = len(seen.scores("BACKOFF", lane.name))
    assert told == (pending, len(scheduled), len(seen.leases(lane.name)), backoffs)
    assert lane.credits == credits_of(seen, lane.name), lane.name
    assert (lane.next_mac in scheduled) == bool(scheduled)


def _check_device(device: Device, seen: Seen) -> None:
    mac = device.mac
    mine = [record for record in seen.tasks.values() if record["mac"] == mac]
    assert device.leased == sum(record["state"] in LEASED for record in mine)
    assert device.site == seen.site(mac)
    oldest = []
    for lane in device.lanes:
        queue = seen.queues.get((mac, lane.lane), [])
        assert (lane.queued, lane.pending) == (len(queue), seen.waiting()[mac, lane.lane])
        order = seen.get(seen.order("SCHEDULE", lane.lane, device.site), {})
        if mac in order:
            ahead = [(score, name) for name, score in order.items()]
            assert lane.rank == sorted(ahead, reverse=True).index((order[mac], mac))
        else:
            assert lane.rank == -1
        held = reasons(seen, mac, lane.lane) if queue else {"nothing queued"}
        assert (lane.held_by in held) if held else not lane.held_by, lane
        oldest += [lane.oldest_ms] if queue else []
    assert device.oldest_ms == min(oldest, default=0)


def i16_what_a_handler_gets(started: Any, book: Book) -> None:
    """I16: a started task is told as it was accepted: type, device, age, attempt, data."""
    task = started.task
    entry = book.entries[task.task_id]
    assert (task.mac, task.task_type, task.created_at_ms) == (
        *(entry.mac, entry.task_type, entry.created_at),
    )
    assert (task.attempt, started.lease_until_ms) == (entry.attempt, entry.lease_until)


def q28_reconcile_leaves_a_healthy_store(answer: tuple[int, tuple[str, ...]]) -> None:
    """Q28: reconcile on a healthy store mends nothing."""
    assert answer == (-1, ())
