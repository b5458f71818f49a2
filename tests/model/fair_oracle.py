"""Start-time fair queueing with weights and a guard against starvation, in plain Python.

The rule: this is the `fair` policy as the design puts it (Goyal, Vin and Cheng, 1996), over a
plain list of devices; it knows no sets and no scores. What it says:

- A lane has a virtual time v. A device that comes into the schedule gets the start tag
  max(v, its remembered tag); newcomers go one after the other in order of arrival.
- The lowest tag is next, and v follows it. A turn moves the device's tag by tasks × COST / weight.
  No two devices of the schedule have one tag: the next free one above is taken.
- A device that leaves the schedule is remembered by its tag; one at or before v means nothing.
  When the lane is idle v moves to the furthest remembered tag, and all are forgotten.
- One turn in four may go, out of order and with a batch of one, to the device that has waited
  longest past T_starve, if its tag is within one task of v. It does not move v.
- A lease that ends before its start is given back: cancelled or deferred, what it was charged is
  refunded, but not past v; lost, the task is not charged again.

A task costs the same whatever its type. Times are milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import floor
from typing import Final, Literal

#: 16 tags to the microsecond, a task of 10 ms.
COST: Final = 160_000
STARVATION_MS: Final = 30_000
BATCH: Final = 10


@dataclass
class Job:
    """A task; `paid` is what its device was charged for it already, 0 for nothing."""

    task_id: str
    mac: str
    created_at: int
    where: Literal["queued", "leased", "delayed", "over"] = "queued"
    paid: int = 0


@dataclass
class Flow:
    """A device: `tag` is its start tag in the schedule, `remembered` the one outside it."""

    mac: str
    weight: float = 1.0
    paused: bool = False
    queue: list[Job] = field(default_factory=list)
    tag: int | None = None
    remembered: int | None = None
    served_at: int = 0

    @property
    def waits_since(self) -> int:
        """The later of its oldest task's arrival and its last turn."""
        return max(self.served_at, min(job.created_at for job in self.queue))


class FairOracle:
    """One lane under the `fair` policy."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.v = 0
        self.flows: dict[str, Flow] = {}
        self.jobs: dict[str, Job] = {}
        self._newest = 0
        self._turns = 0

    def flow(self, mac: str) -> Flow:
        """Return a device, also one that was never heard of."""
        return self.flows.setdefault(mac, Flow(mac))

    def order(self) -> list[Flow]:
        """Return the schedule, the next device first."""
        there = [flow for flow in self.flows.values() if flow.tag is not None]
        return sorted(there, key=lambda flow: flow.tag or 0)

    def enqueue(self, task_id: str, mac: str) -> None:
        """Put a task at the end of its device's queue."""
        job = self.jobs[task_id] = Job(task_id, mac, self.now)
        self.flow(mac).queue.append(job)
        self._seat(self.flow(mac))

    def claim(self, want: int, exclude_mac: str | None = None) -> list[str]:
        """Lease up to `want` tasks, a batch a turn."""
        leased: list[str] = []
        while len(leased) < want and (order := self.order()):
            others = [flow for flow in order if flow.mac != exclude_mac] or order
            flow, room = others[0], want - len(leased)
            guarded = self._guarded(flow, exclude_mac)
            if guarded is None:
                assert flow.tag is not None
                self.v = max(self.v, flow.tag)
                batch = min(self._batch(flow), max(1, room // len(order)), room)
            else:
                flow, batch = guarded, 1
            leased += self._turn(flow, batch)
            exclude_mac = None
        for flow in self.flows.values():
            if flow.remembered is not None and flow.remembered <= self.v:
                flow.remembered = None
        return leased

    def finish(self, task_id: str) -> None:
        """A leased task was started, and ended well."""
        self.jobs[task_id].where = "over"

    def give_up(self, task_id: str, where: Literal["delayed", "over"]) -> None:
        """A task was deferred or cancelled before its start."""
        job = self.jobs[task_id]
        flow, was = self.flow(job.mac), job.where
        paid, job.where, job.paid = job.paid, where, 0
        if was == "leased":
            self._refund(flow, paid)
        elif was == "queued":
            flow.queue.remove(job)
            self._seat(flow)

    def come_back(self, task_id: str) -> None:
        """A delayed task is due, or a lease was lost: it is served next."""
        job = self.jobs[task_id]
        job.where = "queued"
        self.flow(job.mac).queue.insert(0, job)
        self._seat(self.flow(job.mac))

    def configure(self, mac: str, weight: float, paused: bool) -> None:
        """Set a device's weight and pause: what it is ahead of v shrinks or grows."""
        flow = self.flow(mac)
        before, flow.weight, flow.paused = flow.weight, weight, paused
        if before != weight:
            if flow.tag is not None and flow.tag > self.v:
                ahead = floor((flow.tag - self.v) * before / weight)
                flow.tag = self._free(self.v + ahead)
            if flow.remembered is not None and flow.remembered > self.v:
                ahead = floor((flow.remembered - self.v) * before / weight)
                flow.remembered = self._free(self.v + ahead)
        self._seat(flow)

    def _guarded(self, first: Flow, exclude_mac: str | None) -> Flow | None:
        if self._turns % 4 != 3:
            return None
        longest = min(self.order(), key=lambda flow: (flow.waits_since, flow.mac))
        assert longest.tag is not None
        if longest.mac in (first.mac, exclude_mac) or not self._starves(longest):
            return None
        return longest if longest.tag - self.v <= COST / longest.weight else None

    def _starves(self, flow: Flow) -> bool:
        return self.now - flow.waits_since >= STARVATION_MS

    def _batch(self, flow: Flow) -> int:
        return 1 if any(self._starves(f) for f in self.order() if f is not flow) else BATCH

    def _turn(self, flow: Flow, batch: int) -> list[str]:
        taken, flow.queue = flow.queue[:batch], flow.queue[batch:]
        price = max(1, floor(COST / flow.weight))
        charged = price * sum(not job.paid for job in taken)
        for job in taken:
            job.where, job.paid = "leased", job.paid or price
        self._turns += 1
        flow.served_at = self.now
        assert flow.tag is not None
        tag = flow.tag + charged
        if flow.queue:
            flow.tag = self._free(tag) if charged else tag
        else:
            flow.tag, flow.remembered = None, tag
        self._forget_if_drained(flow)
        return [job.task_id for job in taken]

    def _refund(self, flow: Flow, paid: int) -> None:
        if flow.tag is not None and flow.tag > self.v:
            flow.tag = self._free(max(self.v, flow.tag - paid))
        elif flow.remembered is not None and flow.remembered > self.v:
            flow.remembered = max(self.v, flow.remembered - paid)

    def _free(self, tag: int) -> int:
        taken = {flow.tag for flow in self.flows.values()}
        while tag in taken:
            tag += 1
        return tag

    def _seat(self, flow: Flow) -> None:
        if flow.paused or not flow.queue:
            if flow.tag is not None:
                flow.tag, flow.remembered = None, flow.tag
        elif flow.tag is None:
            flow.tag = self._start_tag(flow)
        self._forget_if_drained(flow)

    def _start_tag(self, flow: Flow) -> int:
        others = [job for job in self.jobs.values() if job.mac != flow.mac]
        busy = any(job.where in ("queued", "delayed") for job in others)
        if not (busy or any(job.where == "leased" for job in self.jobs.values())):
            tags = [f.remembered for f in self.flows.values() if f.remembered is not None]
            self.v = max([self.v, *tags])
            for each in self.flows.values():
                each.remembered = None
        remembered, flow.remembered = flow.remembered, None
        if remembered is not None and remembered > self.v:
            return self._free(remembered)
        self._newest = max(self.v, self._newest + 1)
        return self._free(self._newest)

    def _forget_if_drained(self, flow: Flow) -> None:
        waiting = [j for j in self.jobs.values() if j.mac == flow.mac]
        if not any(job.where in ("queued", "delayed") for job in waiting):
            flow.served_at = 0
