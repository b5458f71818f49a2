"""A lane's workers in a simulation: their slots, what they run, what waits in their broker.

The rule: a worker takes what it is sent in the order in which it is sent, one task a slot, as a
Celery worker with a prefetch of one does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

#: A heartbeat names at most 1,000 running tasks.
_SLOTS_A_WORKER: Final = 500
#: More than a lane ever has leased: slots, and headroom of twice as many.
_MOST_LEASED: Final = 4


@dataclass(slots=True)
class SimulatedWorker:
    """A worker with its slots and the tasks that it runs: (attempt, since when) by number."""

    worker_id: str
    slots: int
    running: dict[int, tuple[int, int]] = field(default_factory=dict)


class Lane:
    """The workers of a lane, and what the engine knows of its tasks."""

    def __init__(self, name: str, slots: int, shortest_ms: int, *, knows_limits: bool) -> None:
        self.name = name
        self.slots = slots
        #: No task of the lane runs shorter: what a claim leads to cannot end before.
        self.shortest_ms = shortest_ms
        #: A device may have tasks that nobody may take, so a claim may leave them and be full.
        self.knows_limits = knows_limits
        self.broker: deque[tuple[int, int]] = deque()
        self.waiting = 0
        self.leased = 0
        #: The last claim left tasks behind for want of credits, and nothing has ended since.
        self.is_full = False
        self.look_ms = 0
        self.workers: list[SimulatedWorker] = []
        self._free: deque[SimulatedWorker] = deque()
        self._place: dict[int, SimulatedWorker] = {}
        self._generation = 0
        self.raise_workers()

    def raise_workers(self) -> None:
        """Let new workers offer the lane's slots."""
        self._generation += 1
        left = self.slots
        while left > 0:
            slots = min(left, _SLOTS_A_WORKER)
            number = len(self.workers)
            name = f"{self.name}{number}:{self._generation}:simulated"
            self.workers.append(SimulatedWorker(name, slots))
            self._free.extend([self.workers[-1]] * slots)
            left -= slots

    def lose_workers(self) -> Iterator[tuple[int, int]]:
        """Let every worker vanish with its tasks; return these, with the time each began."""
        for worker in self.workers:
            for task, (_, since_ms) in worker.running.items():
                yield task, since_ms
        self.workers.clear()
        self._free.clear()
        self._place.clear()
        self.broker.clear()

    def begin(self, at_ms: int) -> Iterator[tuple[int, int, str]]:
        """Start what waits in the broker while slots are free: (task, attempt, worker)."""
        while self._free and self.broker:
            task, attempt = self.broker.popleft()
            worker = self._free.popleft()
            worker.running[task] = (attempt, at_ms)
            self._place[task] = worker
            yield task, attempt, worker.worker_id

    @property
    def may_lose(self) -> bool:
        """Whether a lease of it may end: a task waits in the broker, or its worker is gone."""
        return self.leased > len(self._place)

    def forget(self, task: int, attempt: int) -> None:
        """Drop a message whose lease has ended: its start would be refused."""
        if (task, attempt) in self.broker:
            self.broker.remove((task, attempt))

    def end(self, task: int) -> int:
        """Free the slot of a task; return since when it ran."""
        worker = self._place.pop(task)
        self._free.append(worker)
        return worker.running.pop(task)[1]

    def runs(self, task: int, attempt: int) -> bool:
        """Whether this attempt of a task runs."""
        worker = self._place.get(task)
        return worker is not None and worker.running[task][0] == attempt

    def may_claim(self, *, arrived: int, ended: int, has_room: bool) -> bool:
        """Whether a claim could bring a task; `arrived` and `ended` are not yet counted here.

        A wrong yes costs a call that changes nothing, a wrong no would lose a turn.
        """
        if self.waiting + arrived == 0 or not self.workers:
            return False
        return has_room or not (self._stays_full(ended) or (self.is_full and not ended))

    def _stays_full(self, ended: int) -> bool:
        """Whether every claim of late has left tasks behind, whatever it took."""
        most = _MOST_LEASED * (self.slots + 1)
        return not self.knows_limits and self.waiting > most + ended - self.leased
