"""Start-time fair queueing over sites and over the devices of each, in plain Python.

The rule: this is the `fair` policy as the design puts it (Goyal, Vin and Cheng, 1996), twice: an
entrant of an order is a site of the lane, or a device of a site. It knows no sets and no scores.

- An order has a virtual time v. An entrant that can go stands in the schedule with its tag: its own
  if that is ahead of v, else v, after the newcomers before it. No two of a schedule have one tag.
- The lowest tag of the lowest site is next, and both v follow. A turn moves the device's tag by
  what its tasks are estimated to cost / weight, and its site's by the cost.
- When a lease ends, what it used is settled against what was charged; a cost given back never
  moves a tag behind v. A run that takes longer than its estimate pays meanwhile.
- A site that is alone in the schedule is not charged: it has nobody to be fair to.
- Outside the schedule a tag is kept while there are leases, or while it is ahead of v.
- An order with nobody in its schedule and nothing leased forgets all, and begins at 0 again.
- A device below its `min_running` goes before all. One turn in four may go to the device that has
  waited longest past T_starve, with a batch of one, if its tag and its site's are within a task of
  how far their orders have come: v, or the work done, each piece by its cost / the weights in the
  schedule, whichever is more. These turns do not move v.
- Time alone lets nobody in: a claim or a sweep notices what is due.

Costs are worker time, 16,000 to the millisecond. Times are milliseconds.
"""

from __future__ import annotations

from typing import Final, Literal

from model.cost_oracle import Job, Means, used_until
from model.fair_order import DEFAULT, Flow, Lane

STARVATION_MS: Final = 30_000
BATCH: Final = 10
LEASE_MS: Final = 30_000
UNSTARTED_MS: Final = 20_000
LONGEST_LEASE_MS: Final = 3_600_000
MAX_ATTEMPTS: Final = 3
MAX_DEFERS: Final = 5


class FairOracle(Lane):
    """One lane under the `fair` policy."""

    def __init__(self, now: int) -> None:
        super().__init__(now)
        self.jobs: dict[str, Job] = {}
        self.means = Means()
        self._turns = 0

    def enqueue(self, job: Job, given_site: str) -> None:
        """Put a task at the end of its device's queue; one without tasks joins the given site."""
        flow = self.flow(job.mac)
        if not flow.own_site and not self._has_tasks(flow):
            flow.joined_site = given_site or DEFAULT
            self.settle_in(flow, flow.joined_site)
        self.jobs[job.task_id] = job
        flow.queue.append(job)
        if len(flow.queue) == 1:
            self.seat(flow)
        self._rest()

    def claim(self, want: int, exclude_mac: str | None = None) -> list[str]:
        """Lease up to `want` tasks, a batch a turn."""
        self._resume()
        leased: list[str] = []
        while len(leased) < want and self.waiting():
            room = want - len(leased)
            flow, most, tags = self._next(exclude_mac)
            leased += self._turn(flow, min(self._batch(flow, room), most), *tags)
            exclude_mac = None
            self._rest()
        return leased

    def start(self, task_id: str) -> None:
        """A leased task runs."""
        job = self.jobs[task_id]
        job.where, job.started_at, job.misses = "running", self.now, 0
        job.lease_until = self.now + LEASE_MS

    def beat(self, task_ids: list[str]) -> None:
        """A worker reports what it runs: what is past its estimate is charged."""
        for task_id in task_ids:
            job = self.jobs[task_id]
            if job.where == "running":
                job.lease_until = max(job.lease_until, self.now + LEASE_MS)
                past = used_until(job, self.now) - job.paid
                if past > 0:
                    job.paid += past
                    self.pay(self.flow(job.mac), past)
        self._rest()

    def finish(self, task_id: str) -> None:
        """A running task is done."""
        job = self.jobs[task_id]
        self._settle(job, used_until(job, self.now))
        job.where = "over"
        self.means.learn(job, self.now - job.started_at, self._has_tasks(self.flow(job.mac)))
        self._made_room(job)

    def fail(self, task_id: str, due: int) -> None:
        """A running task's attempt failed; it waits until `due`, 0 when it is given up."""
        job = self.jobs[task_id]
        self._settle(job, used_until(job, self.now))
        job.failures += 1
        assert (due == 0) == (job.failures >= MAX_ATTEMPTS)
        self._put_off(job, due)

    def defer(self, task_id: str, due: int, scope: Literal["task", "device"]) -> None:
        """A task is put off before its start or after it, alone or with its device."""
        job, flow = self.jobs[task_id], self.flow(self.jobs[task_id].mac)
        self._settle(job, used_until(job, self.now))
        job.defers += 1
        assert (due == 0) == (job.defers > MAX_DEFERS)
        if due and scope == "device":
            job.where, job.paid = "queued", 0
            flow.queue.append(job)
            flow.backoff_until = max(flow.backoff_until, due)
            self.seat(flow)
            self._made_room(job)
        else:
            self._put_off(job, due)

    def cancel(self, task_id: str) -> None:
        """A task that has not ended is cancelled."""
        job, flow = self.jobs[task_id], self.flow(self.jobs[task_id].mac)
        was, used = job.where, used_until(job, self.now)
        job.where = "over"
        if was == "queued":
            flow.queue.remove(job)
            self.seat(flow)
        elif was != "delayed":
            self._settle(job, used)
        self._made_room(job)

    def sweep(self) -> list[str]:
        """Lost leases come back; so does what is due. Return the tasks whose lease was lost."""
        lost: list[str] = []
        for job in sorted(self.jobs.values(), key=lambda job: (job.lease_until, job.task_id)):
            if job.where not in ("leased", "running") or job.lease_until > self.now:
                continue
            lost.append(job.task_id)
            flow = self.flow(job.mac)
            if job.where == "running":
                # It pays until its last heartbeat.
                self._settle(job, used_until(job, job.lease_until - LEASE_MS))
                job.failures, job.paid = job.failures + 1, 0
                if job.failures >= MAX_ATTEMPTS:
                    job.where = "over"
                    self._made_room(job)
                    continue
            else:
                # It was charged, and is not charged again.
                self.count_leases(flow, -1)
                job.misses += 1
            job.where = "queued"
            flow.queue.insert(0, job)
            self.seat(flow)
            self._made_room(job)
        self._resume()
        self._rest()
        return lost

    def configure(
        self,
        mac: str,
        **changes: float | str,
    ) -> None:
        """Set what holds of a device; what it is ahead of v shrinks or grows with its weight."""
        flow, before = self.flow(mac), self.flow(mac).weight
        for name, value in changes.items():
            setattr(flow, name, value)
        if self._has_tasks(flow):
            self.move(flow, flow.own_site or flow.joined_site)
        flow.token_due = 0
        if not flow.rate:
            flow.tokens = None
        order = self.site(flow.site).inner
        if before != flow.weight and flow.tag is not None and flow.tag > order.v:
            order.put(flow, order.v + int((flow.tag - order.v) * before / flow.weight))
        self.seat(flow)
        self._rest()

    def _next(self, exclude_mac: str | None) -> tuple[Flow, int, tuple[int, int | None]]:
        """Return whose turn it is, the most that it may take, its tag and its site's."""
        sites = self.schedule()
        first = sites[0]
        if len(sites) > 1 and [flow.name for flow in first.flows] == [exclude_mac]:
            first = sites[1]
        flow = next((flow for flow in first.flows if flow.name != exclude_mac), first.flows[0])
        below = [flow for flow in self.waiting() if flow.is_below_floor]
        chosen, most = flow, 10**9
        if below:
            chosen = min(below, key=lambda flow: (flow.turn, flow.name))
            most = chosen.min_running - chosen.leases
        elif guarded := self._guarded(flow, exclude_mac):
            chosen, most = guarded, 1
        site = self.site(chosen.site)
        assert chosen.tag is not None
        assert site.tag is not None
        if not below and chosen is flow:
            site.inner.follow(chosen.tag)
            if len(sites) > 1:
                self.order.follow(site.tag)
        return chosen, most, (chosen.tag, site.tag if len(sites) > 1 else None)

    def _guarded(self, first: Flow, exclude_mac: str | None) -> Flow | None:
        longest = min(self.waiting(), key=lambda flow: (flow.waits_since, flow.name))
        if self._turns % 4 != 3 or longest.name in (first.name, exclude_mac):
            return None
        site, cost = self.site(longest.site), self.means.estimate(longest.queue[0])
        assert longest.tag is not None
        assert site.tag is not None
        if not self._starves(longest):
            return None
        is_near = longest.tag - site.inner.progress() <= cost / longest.weight
        site_is_near = site.tag - self.order.progress() <= cost
        return longest if is_near and site_is_near else None

    def _starves(self, flow: Flow) -> bool:
        return self.now - flow.waits_since >= STARVATION_MS

    def _batch(self, flow: Flow, room: int) -> int:
        waiting = self.waiting()
        size = 1 if any(self._starves(f) for f in waiting if f is not flow) else BATCH
        return min(size, max(1, room // len(waiting)), room, flow.allowance(self.now))

    def _turn(self, flow: Flow, batch: int, tag: int, site_tag: int | None) -> list[str]:
        taken, flow.queue = flow.queue[:batch], flow.queue[batch:]
        charged = 0
        for job in taken:
            if not job.paid:
                job.paid = self.means.estimate(job)
                charged += job.paid
            job.where, job.attempt = "leased", job.attempt + 1
            job.lease_until = self.now + min(UNSTARTED_MS * 2**job.misses, LONGEST_LEASE_MS)
        self.count_leases(flow, len(taken))
        if flow.rate:
            left = max(0.0, flow.tokens_left(self.now) - len(taken))
            flow.tokens, flow.tokens_at = left, self.now
        self._turns += 1
        flow.turn, flow.served_at = self._turns, self.now
        self._forget_if_drained(flow)
        site = self.site(flow.site)
        if charged and site_tag is not None:
            self.order.put(site, site_tag + charged)
        self.seat(flow)
        if charged:
            site.inner.put(flow, tag + flow.price(charged))
        if flow.tokens is not None:
            # What is kept is whole millionths.
            flow.tokens = float(f"{flow.tokens:.6f}")
        return [job.task_id for job in taken]

    def _settle(self, job: Job, used: int) -> None:
        """A lease is over: what it used against what was charged."""
        flow = self.flow(job.mac)
        self.count_leases(flow, -1)
        self.pay(flow, used - job.paid, used)

    def _put_off(self, job: Job, due: int) -> None:
        job.where, job.due, job.paid = "delayed" if due else "over", due, 0
        self._made_room(job)

    def _made_room(self, job: Job) -> None:
        flow = self.flow(job.mac)
        self._forget_if_drained(flow)
        if flow.min_running or flow.max_running or flow.rate:
            self.seat(flow)
        self._rest()

    def _resume(self) -> None:
        """Let in whom a token, the end of a backoff or of a delay lets in, in this order."""
        flows = self.flows.values()
        tokens = [(f.token_due, f.name, f) for f in flows if 0 < f.token_due <= self.now]
        for _, _, flow in sorted(tokens, key=lambda due: due[:2]):
            flow.token_due = 0
            self.seat(flow)
        backoffs = [(f.backoff_until, f.name, f) for f in flows if 0 < f.backoff_until <= self.now]
        for _, _, flow in sorted(backoffs, key=lambda due: due[:2]):
            flow.backoff_until = 0
            self.seat(flow)
        delayed = [job for job in self.jobs.values() if job.where == "delayed"]
        for job in sorted(delayed, key=lambda job: (job.due, job.task_id)):
            if job.due <= self.now:
                job.where = "queued"
                self.flow(job.mac).queue.insert(0, job)
                self.seat(self.flow(job.mac))

    def _has_tasks(self, flow: Flow) -> bool:
        return self._is_backlogged(flow) or flow.leases > 0

    def _is_backlogged(self, flow: Flow) -> bool:
        mine = [job for job in self.jobs.values() if job.mac == flow.name]
        return any(job.where in ("queued", "delayed") for job in mine)

    def _forget_if_drained(self, flow: Flow) -> None:
        if not self._is_backlogged(flow):
            flow.served_at = flow.turn = 0
            if not flow.leases:
                self.means.forget(flow.name)

    def _rest(self) -> None:
        self.tidy()
        for flow in self.flows.values():
            if not self._has_tasks(flow):
                flow.joined_site = DEFAULT
                if flow.site != (flow.own_site or DEFAULT):
                    self.settle_in(flow, flow.own_site or DEFAULT)
