"""What must become of every task and device, in plain Python: the oracle of the stateful test.

The rule: this is written from the promise (docs/guarantees.md, docs/lifecycle.md), not from the
scripts. It knows queues, leases, turns, backoffs and ends; whose turn it is it does not know: the
order among devices has oracles of its own (`fair_oracle.py`, `oracle.py`). So it takes what a claim
leased, and asserts that this very task could be leased then: it stood at the end served next, in
the queue of a device that could go. Times are milliseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fairlane.model import Leased
from fairlane.settings import Settings
from model.entry import Entry, Limits, Turn
from model.gate import DEFAULT, Gate

ENDED: Final = ("done", "failed", "expired", "cancelled", "dead")
LONGEST_LEASE_MS: Final = 3_600_000
Place = tuple[str, str]  # mac, lane


class Book:
    """All tasks that were accepted, and where each must be now."""

    def __init__(self, settings: Settings, now: int) -> None:
        self.settings, self.now = settings, now
        self.entries: dict[str, Entry] = {}
        self.queues: dict[Place, list[str]] = {}
        self.turns: dict[Place, Turn] = {}
        self.backoffs: dict[Place, int] = {}
        self.limits: dict[str, Limits] = {}
        self.joined: dict[str, str] = {}
        self.workers: dict[str, int] = {}
        self.dead: list[str] = []
        self.totals: Counter[str] = Counter()
        #: The numbers of tasks that never came back, by place, as they were first leased.
        self.firsts: dict[Place, list[int]] = {}
        self.gate = Gate(settings)
        self._accepted = 0

    def these(self, *states: str) -> list[Entry]:
        """Return the tasks in any of these states."""
        return [entry for entry in self.entries.values() if entry.state in states]

    def limits_of(self, mac: str) -> Limits:
        """Return what was configured of a device."""
        return self.limits.setdefault(mac, Limits())

    def leased_by(self, mac: str) -> int:
        """Return how many tasks a device has leased, in all lanes."""
        return sum(entry.mac == mac for entry in self.these("leased", "running"))

    def waiting_of(self, mac: str) -> int:
        """Return how many tasks of a device wait, in all lanes."""
        return sum(entry.mac == mac for entry in self.these("pending", "delayed"))

    def site(self, mac: str) -> str:
        """Return a device's site."""
        return self.limits_of(mac).site or self.joined.get(mac, DEFAULT)

    def deadlines(self) -> list[int]:
        """Return every moment at which something ends by itself."""
        live = self.these("pending", "leased", "running", "delayed")
        times = [time for e in live for time in (e.lease_until, e.due_at, e.expires_at)]
        times += [*self.backoffs.values(), *(turn.deadline for turn in self.turns.values())]
        times += [kept.until for kept in self.gate.receipts.values()]
        return sorted({time for time in times if time >= self.now})

    # In.

    def offer(self, entry: Entry, site: str, key: str = "", body: object = None) -> str:
        """Offer a task; return `accepted`, `known`, `conflict`, `mismatch`, or why it is refused.

        `key` is an idempotency key, which stands for `body`.
        """
        receipt = self.gate.receipt(key, self.now)
        if receipt is not None:
            return "known" if receipt.body == body else "mismatch"
        known = self.entries.get(entry.task_id)
        if known is not None:
            theirs = (known.mac, known.task_type, known.payload)
            if theirs != (entry.mac, entry.task_type, entry.payload):
                return "conflict"
        if known is not None and not self.gate.lacks_room_for(key, self.now):
            self.gate.keep(key, known.task_id, body, known.created_at, self.now)
            return "known"
        is_new = not self.waiting_of(entry.mac) and not self.leased_by(entry.mac)
        joins = bool(site) and is_new and not self.limits_of(entry.mac).site
        site = site if joins else self.site(entry.mac)
        reason = "idempotency_full" if self.gate.lacks_room_for(key, self.now) else ""
        reason = reason or self.gate.refuses(entry.mac, site, self._waiting(), self.now)
        if reason:
            self.totals[f"refused_{reason}"] += 1
            return reason
        self.joined[entry.mac] = site if joins else self.joined.get(entry.mac, DEFAULT)
        self._accepted += 1
        entry.number = self._accepted
        self.entries[entry.task_id] = entry
        self._queue(entry).append(entry.task_id)
        self.totals["accepted"] += 1
        self.gate.keep(key, entry.task_id, body, self.now, self.now)
        return "accepted"

    def redrive(self, task_id: str) -> bool:
        """A dead task comes back as if new; False when it is no dead letter."""
        entry = self.entries.get(task_id)
        if entry is None or entry.state != "dead":
            return False
        self.dead.remove(task_id)
        is_new = not self.waiting_of(entry.mac) and not self.leased_by(entry.mac)
        if entry.site and is_new and not self.limits_of(entry.mac).site:
            self.joined[entry.mac] = entry.site
        entry.state, entry.created_at = "pending", self.now
        entry.expires_at = self.now + self.settings.task_ttl_ms
        entry.failures = entry.defers = entry.misses = entry.due_at = 0
        entry.came_back, entry.site = True, ""
        self._queue(entry).append(task_id)
        self.totals["redriven"] += 1
        return True

    def drop(self, task_id: str) -> bool:
        """Forget a dead task; False when it is no dead letter."""
        entry = self.entries.get(task_id)
        if entry is None or entry.state != "dead":
            return False
        self.dead.remove(task_id)
        del self.entries[task_id]
        self.totals["dead_dropped"] += 1
        return True

    # To a worker.

    def can_go(self, mac: str, lane: str) -> bool:
        """Whether a device could have a turn, but for its rate."""
        limits, place = self.limits_of(mac), (mac, lane)
        return (
            bool(self.queues.get(place))
            and not limits.paused
            and place not in self.backoffs
            and place not in self.turns
            and not (limits.max_running and self.leased_by(mac) >= limits.max_running)
        )

    def claimed(self, lane: str, leased: Sequence[Leased], expired: Sequence[str]) -> None:
        """A claim leased these, in this order, and met those."""
        self.resume(lane, 64)
        met = list(expired)
        for task in leased:
            assert self.can_go(task.mac, lane), f"{task.mac} could not go"
            self._take(task, lane, met)
        self._meet(met)

    def opened(self, mac: str, lane: str, turn: Turn | None) -> None:
        """A two-step turn was opened for a device."""
        self.resume(lane, 64)
        if turn is not None:
            assert self.can_go(mac, lane), f"{mac} could not go"
            self.turns[mac, lane] = turn

    def popped(self, place: Place, leased: Sequence[Leased], expired: Sequence[str]) -> None:
        """A turn leased its next task, and met those that had expired."""
        limits, met = self.limits_of(place[0]), list(expired)
        is_full = 0 < limits.max_running <= self.leased_by(place[0])
        assert not (is_full and leased)
        for task in leased:
            self._take(task, place[1], met)
        self._meet(met)

    def start(self, task_id: str, run_id: str) -> None:
        """A leased task runs, or is told once more that it does."""
        entry = self.entries[task_id]
        if entry.state == "leased":
            entry.state, entry.run_id, entry.misses = "running", run_id, 0
            entry.started_at = self.now
        entry.lease_until = self.now + self.settings.lease_ms

    def beat(self, worker: str, active: Iterable[tuple[str, int]]) -> set[str]:
        """A worker reports; return what it should not run any more."""
        self.workers[worker] = self.now + self.settings.lease_ms
        stale = set()
        for task_id, attempt in active:
            entry = self.entries.get(task_id)
            is_current = entry is not None and entry.attempt == attempt
            if entry is not None and is_current and entry.state == "running":
                deadline = self.now + self.settings.lease_ms
                entry.lease_until = max(entry.lease_until, deadline)
            elif entry is None or not is_current or entry.state != "leased":
                stale.add(f"{task_id}.{attempt}")
        return stale

    # Back, and out.

    def end(self, task_id: str, state: str) -> None:
        """A task reached a final state."""
        entry = self.entries[task_id]
        self._leave_queue(entry)
        entry.state = state
        self.totals[state] += 1
        if state == "dead":
            own = self.limits_of(entry.mac).site
            entry.site = "" if own else self.joined.get(entry.mac, DEFAULT)
            entry.site = "" if entry.site == DEFAULT else entry.site
            self.dead.insert(0, task_id)
            if len(self.dead) > self.settings.dead_letter_cap:
                del self.entries[self.dead.pop()]
                self.totals["dead_dropped"] += 1

    def fail(self, task_id: str, final: bool) -> str:
        """An attempt failed; return where its task is now."""
        entry = self.entries[task_id]
        entry.failures += 1
        if final:
            self.end(task_id, "failed")
        elif entry.failures >= self.settings.max_attempts:
            self.end(task_id, "dead")
        else:
            entry.state, entry.came_back = "delayed", True
        return entry.state

    def defer(self, task_id: str, due_at: int, scope: str) -> str:
        """An attempt was put off; return where its task is now."""
        entry = self.entries[task_id]
        entry.defers += 1
        self.totals[f"deferred:{entry.lane}"] += 1
        if entry.defers > self.settings.max_defers:
            self.end(task_id, "dead")
            return "dead"
        entry.due_at, entry.came_back = due_at, True
        entry.state = "delayed" if scope == "task" else "pending"
        if scope == "device":
            place = entry.mac, entry.lane
            self._queue(entry).append(task_id)
            self.backoffs[place] = max(due_at, self.backoffs.get(place, 0))
        return entry.state

    def purged(self, expired: Sequence[str]) -> None:
        """A purge ended these."""
        for task_id in expired:
            entry = self.entries[task_id]
            assert entry.state in ("pending", "delayed"), f"{task_id} is {entry.state}"
            self._expire(entry)

    def sweep(
        self, limit: int, throttled: Mapping[str, int]
    ) -> tuple[set[str], set[str], set[str]]:
        """Take back up to `limit` of what is over; `throttled` have a new token, by lane.

        Returns the lost attempts, the dead tasks, the workers gone.
        """
        lost, dead, left = set(), set(), limit
        for lane in self.settings.lanes:
            over = [e for e in self.these("leased", "running") if e.lease_until <= self.now]
            over = [entry for entry in over if entry.lane == lane]
            over.sort(key=lambda entry: (entry.lease_until, entry.task_id))
            for entry in over[:left]:
                lost.add(f"{entry.task_id}.{entry.attempt}")
                if entry.state == "leased":
                    entry.misses += 1
                else:
                    entry.failures += 1
                if entry.failures >= self.settings.max_attempts:
                    dead.add(entry.task_id)
                    self.end(entry.task_id, "dead")
                else:
                    self._give_back(entry)
            left -= len(over[:left])
        for lane in self.settings.lanes:
            left = self.resume(lane, left, throttled[lane])
        self.totals["lost_leases"] += len(lost)
        turns = sorted((t.deadline, f"{p[1]}|{p[0]}", p) for p, t in self.turns.items())
        ended = [place for deadline, _, place in turns if deadline <= self.now][:left]
        for place in ended:
            del self.turns[place]
        left -= len(ended)
        silent = sorted((until, name) for name, until in self.workers.items() if until <= self.now)
        gone = {name for _, name in silent[:left]}
        for name in gone:
            del self.workers[name]
        self.gate.reap(left - len(gone), self.now)
        return lost, dead, gone

    def resume(self, lane: str, limit: int, throttled: int = 0) -> int:
        """End the lane's backoffs and all delays that are over; return what is left of `limit`."""
        left = limit - min(limit, throttled)
        over = sorted((until, p[0], p) for p, until in self.backoffs.items() if p[1] == lane)
        ended = [place for until, _, place in over if until <= self.now][:left]
        for place in ended:
            del self.backoffs[place]
        left -= len(ended)
        due = [entry for entry in self.these("delayed") if entry.due_at <= self.now]
        due = sorted(due, key=lambda entry: (entry.due_at, entry.task_id))[:left]
        for entry in due:
            self._give_back(entry)
        return left - len(due)

    def forget_drained(self) -> None:
        """A device without tasks is in no site, and under no mark of its own."""
        for mac in [mac for mac in self.joined if not self.waiting_of(mac)]:
            self.gate.full_macs.discard(mac)
            if not self.leased_by(mac):
                del self.joined[mac]
        self.gate.forget_sites(self._waiting())

    def _waiting(self) -> Counter[tuple[str, str]]:
        """Count what waits, by device and its site."""
        return Counter((e.mac, self.site(e.mac)) for e in self.these("pending", "delayed"))

    def _queue(self, entry: Entry) -> list[str]:
        return self.queues.setdefault((entry.mac, entry.lane), [])

    def _served_end(self) -> int:
        return 0 if self.settings.order == "fifo" else -1

    def _leave_queue(self, entry: Entry) -> None:
        if entry.state == "pending" and entry.task_id in self._queue(entry):
            self._queue(entry).remove(entry.task_id)

    def _give_back(self, entry: Entry) -> None:
        entry.came_back = True
        if self.now > entry.expires_at:
            self._expire(entry)
        else:
            queue = self._queue(entry)
            queue.insert(0 if self.settings.order == "fifo" else len(queue), entry.task_id)
            entry.state = "pending"

    def _expire(self, entry: Entry) -> None:
        assert self.now > entry.expires_at, f"{entry.task_id} expired before its time"
        self.end(entry.task_id, "expired")

    def _take(self, task: Leased, lane: str, met: list[str]) -> None:
        queue, end = self.queues[task.mac, lane], self._served_end()
        while queue[end] != task.task_id:
            assert queue[end] in met, f"{queue[end]} was to be served before {task.task_id}"
            met.remove(queue[end])
            self._expire(self.entries[queue[end]])
        queue.pop(end)
        entry, settings = self.entries[task.task_id], self.settings
        assert self.now <= entry.expires_at, f"{task.task_id} had expired"
        assert entry.state == "pending"
        if not entry.came_back:
            self.firsts.setdefault((task.mac, lane), []).append(entry.number)
        entry.state, entry.attempt = "leased", entry.attempt + 1
        lease = min(settings.lease_ms * 2 // 3 * 2**entry.misses, LONGEST_LEASE_MS)
        entry.lease_until = self.now + lease
        self.limits_of(task.mac).leased_at.append(self.now)

    def _meet(self, met: list[str]) -> None:
        while met:
            at_end = [q[self._served_end()] for q in self.queues.values() if q]
            (task_id, *_) = [task_id for task_id in at_end if task_id in met]
            met.remove(task_id)
            self._expire(self.entries[task_id])
