"""The requirement document's model (its section 五, with the formulas of 四), in plain Python.

The rule: this is written from the document, not from the scripts, and knows nothing of keys,
scores or sets. A number is its formula; the schedule is a question asked of the devices; a step is
a method. Where it answers other than the document's own code does, it is for one of these
corrections, which the `seed` preset keeps as well:

- *Atomic steps.* Every method is whole; no other step comes between its reads and its writes. What
  the document cleans up after a torn step has no counterpart.
- *Live scores.* S(d, t) is what its formula says at t, for every device at once. The document's
  code writes it at an enqueue or a pop and lets it stand; its t_first is the created_at of the
  list's head, even if a deferred task behind it is older. Here it is the oldest task.
- *Ties.* Devices past W_max have equal scores: those never served since they were last empty go
  first, the oldest task first; then the least recently served. Devices with the same millisecond
  go in the order in which they came to it. (The document's ties go by the MAC.)
- *A deferred device really waits.* It is not in the schedule before its backoff is over, whatever
  is enqueued meanwhile and even if it drains; with several deferred tasks, until the last one's
  due time.
- *Fencing.* A turn is its token; one that was lost or released opens nothing.
- *A dead holder.* The lock's 900 s bound a turn; one without a renewal for 30 s is ended by the
  sweep, and the device can go again.
- *Leases.* A popped task is leased, not forgotten: unless it is started within 30 s (doubled each
  time), the sweep puts it back to the end that is served next, or expires it if its time has come.
- *`exclude_mac`* is passed over while another device can go; if none can, it goes. (The document
  excludes only while another device starves, when one can.)
- *A drained device is forgotten*: no O membership, no turn order, no counters.
- *Purge* ends every task past its TTL, not only those that stand together at a list's head.
- *One bounded step.* A batch is refused task by task, as if they came one after the other; the
  admission check and the push are one step.

All devices share the one lane `main`. Times are milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

Where = Literal["queued", "leased", "done", "dead", "expired", "cancelled"]


@dataclass(frozen=True)
class Numbers:
    """The document's configuration, under its own names and with its own values."""

    MAX_TOTAL_PENDING: int = 5000
    MAX_PER_MAC_PENDING: int = 200
    TASK_TTL: int = 3600
    AGING_MAX_WAIT: int = 600
    AGING_WEIGHT: float = 1.0
    STARVATION_HINT: int = 30
    BATCH_SIZE: int = 10
    MIN_BATCH_SIZE: int = 1
    MAX_DEFER_COUNT: int = 5
    DEFER_BACKOFF_BASE: int = 30
    DEFER_BACKOFF_MAX: int = 600
    # Corrections: a holder that does not renew, a task that nobody starts.
    TURN_LEASE: int = 8
    LEASE: int = 20
    MAX_LEASE: int = 3600


@dataclass
class Job:
    """A task; `lease_ends` while it is leased, `misses` how often nobody started it."""

    task_id: str
    mac: str
    created_at: int
    where: Where = "queued"
    defers: int = 0
    misses: int = 0
    lease_ends: int = 0


@dataclass
class Host:
    """A device: its queue (head first), its turn, its backoff, its place among equals."""

    mac: str
    queue: list[Job] = field(default_factory=list)
    turn_ends: int | None = None
    unschedulable_until: int | None = None
    served: int = 0
    came: int = 0
    stood: tuple[bool, int] = (False, 0)

    @property
    def t_first(self) -> int:
        """When the oldest task arrived."""
        return min(job.created_at for job in self.queue)

    @property
    def can_go(self) -> bool:
        """Whether the device is in the schedule."""
        return bool(self.queue) and self.turn_ends is None and self.unschedulable_until is None


class Oracle:
    """The scheduler of the document."""

    def __init__(self, numbers: Numbers, now: int) -> None:
        self.numbers: Final = numbers
        self.now = now
        self.hosts: dict[str, Host] = {}
        self.jobs: dict[str, Job] = {}
        self.dead_letters: list[str] = []
        self._arrivals = 0
        self._pops = 0

    # Section 四: the formulas.

    def wait(self, mac: str) -> int:
        """W(d, t) in ms; 0 for a device without a task."""
        host = self.host(mac)
        return max(0, self.now - host.t_first) if host.queue else 0

    def score(self, mac: str) -> float:
        """S(d, t) = min(W, W_max) × α, in seconds."""
        n = self.numbers
        return min(self.wait(mac), n.AGING_MAX_WAIT * 1000) / 1000 * n.AGING_WEIGHT

    def starves(self, besides: str) -> bool:
        """∃ d ≠ d_cur in the schedule: W(d, t) ≥ T_starve."""
        hint = self.numbers.STARVATION_HINT * 1000
        return any(mac != besides and self.wait(mac) >= hint for mac in self.schedule())

    def batch_size(self, mac: str) -> int:
        """B(d_cur)."""
        n = self.numbers
        return n.MIN_BATCH_SIZE if self.starves(mac) else n.BATCH_SIZE

    def backoff(self, n: int) -> int:
        """Backoff(n) = min(Base × 2^(n-1), Backoff_max), in ms."""
        base, most = self.numbers.DEFER_BACKOFF_BASE, self.numbers.DEFER_BACKOFF_MAX
        return min(base << (n - 1), most) * 1000

    @property
    def global_pending(self) -> int:
        """G."""
        return sum(len(host.queue) for host in self.hosts.values())

    @property
    def overloaded_macs(self) -> set[str]:
        """O."""
        most = self.numbers.MAX_PER_MAC_PENDING
        return {mac for mac, host in self.hosts.items() if len(host.queue) > most}

    def overloaded(self) -> bool:
        """(G > G_max) ∨ (|O| > 0)."""
        return self.global_pending > self.numbers.MAX_TOTAL_PENDING or bool(self.overloaded_macs)

    def host(self, mac: str) -> Host:
        """Return a device, also one that was never heard of."""
        return self.hosts.setdefault(mac, Host(mac))

    # Section 三: the operations.

    def enqueue(self, task_id: str, mac: str) -> bool:
        """Store a task; False when the system is overloaded and refuses it."""
        if self.overloaded():
            return False
        self.jobs[task_id] = Job(task_id, mac, self.now)
        self._push(self.jobs[task_id])
        return True

    def schedule(self) -> list[str]:
        """Return the devices that can go, the next one first."""
        return [
            h.mac for h in sorted(filter(lambda h: h.can_go, self.hosts.values()), key=self._key)
        ]

    def claim(self, exclude_mac: str | None = None) -> str | None:
        """Open a turn of the device that is next."""
        self._resume()
        candidates = self.schedule()
        others = [mac for mac in candidates if mac != exclude_mac]
        for mac in others or candidates:
            self.host(mac).turn_ends = self.now + self.numbers.TURN_LEASE * 1000
            self._place(mac)
            return mac
        return None

    def renew(self, mac: str) -> int:
        """Extend a turn; return its batch size."""
        self.host(mac).turn_ends = self.now + self.numbers.TURN_LEASE * 1000
        return self.batch_size(mac)

    def pop(self, mac: str) -> tuple[str | None, list[str]]:
        """Lease the last task of the queue that has not expired; return it and the expired ones."""
        host, expired = self.host(mac), []
        self._pops += 1
        host.served = self._pops
        while host.queue:
            job = host.queue.pop()
            if self._is_late(job):
                job.where = "expired"
                expired.append(job.task_id)
                continue
            job.where = "leased"
            lease = min(self.numbers.LEASE * 2**job.misses, self.numbers.MAX_LEASE)
            job.lease_ends = self.now + lease * 1000
            self._place(mac)
            return job.task_id, expired
        self._place(mac)
        return None, expired

    def release(self, mac: str) -> tuple[int, bool]:
        """End a turn; return what the device has left and whether another one starves."""
        self.host(mac).turn_ends = None
        self._place(mac)
        return len(self.host(mac).queue), self.starves(mac)

    def defer(self, task_id: str) -> bool:
        """Put a leased task back and its device into backoff; False when it is dead instead."""
        job = self.jobs[task_id]
        job.defers += 1
        if job.defers > self.numbers.MAX_DEFER_COUNT:
            job.where = "dead"
            self.dead_letters.insert(0, task_id)
            return False
        host, due = self.host(job.mac), self.now + self.backoff(job.defers)
        host.unschedulable_until = max(due, host.unschedulable_until or 0)
        self._push(job)
        return True

    def finish(self, task_id: str) -> None:
        """A leased task was started, and ended well."""
        self.jobs[task_id].where = "done"

    def cancel(self, task_id: str) -> bool:
        """Cancel a task; False when it is over already."""
        job = self.jobs[task_id]
        if job.where not in ("queued", "leased"):
            return False
        if job.where == "queued":
            self.host(job.mac).queue.remove(job)
        job.where = "cancelled"
        self._place(job.mac)
        return True

    def purge(self) -> set[str]:
        """End every queued task that is past its TTL."""
        late = [j for j in self.jobs.values() if j.where == "queued" and self._is_late(j)]
        late.sort(key=lambda job: (job.created_at, job.task_id))
        for job in late:
            job.where = "expired"
        for mac in dict.fromkeys(job.mac for job in late):
            host = self.host(mac)
            host.queue = [job for job in host.queue if job.where == "queued"]
            self._place(mac)
        return {job.task_id for job in late}

    def sweep(self) -> None:
        """Take back lost leases, end backoffs that are over, end turns that nobody renewed."""
        lost = [j for j in self.jobs.values() if j.where == "leased" and j.lease_ends <= self.now]
        for job in sorted(lost, key=lambda job: (job.lease_ends, job.task_id)):
            job.misses += 1
            if self._is_late(job):
                job.where = "expired"
            else:
                self._push(job)
        self._resume()
        turns = [(host.turn_ends, mac) for mac, host in self.hosts.items() if host.turn_ends]
        for ends, mac in sorted(turns):
            if ends <= self.now:
                self.host(mac).turn_ends = None
                self._place(mac)

    def _resume(self) -> None:
        backoffs = [(h.unschedulable_until, h.mac) for h in self.hosts.values()]
        for until, mac in sorted((until, mac) for until, mac in backoffs if until is not None):
            if until <= self.now:
                self.host(mac).unschedulable_until = None
                self._place(mac)

    def _is_late(self, job: Job) -> bool:
        return self.now - job.created_at > self.numbers.TASK_TTL * 1000

    def _push(self, job: Job) -> None:
        job.where = "queued"
        self.host(job.mac).queue.append(job)
        self._place(job.mac)

    def _key(self, host: Host) -> tuple[int, ...]:
        if self.wait(host.mac) < self.numbers.AGING_MAX_WAIT * 1000:
            return (2, host.t_first, host.came)
        if host.served == 0:
            return (0, host.t_first, host.came)
        return (1, host.served)

    def _place(self, mac: str) -> None:
        """Place a device that came in, or whose t_first changed, last among its equals."""
        host = self.host(mac)
        if not host.queue:
            host.served = 0
        stands = (host.can_go, host.t_first if host.can_go else 0)
        if stands != host.stood and host.can_go:
            self._arrivals += 1
            host.came = self._arrivals
        host.stood = stands
