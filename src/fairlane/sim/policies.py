"""Plain queues that answer the same calls as the store: what fairness is compared with.

The rule: they know nothing of devices' weights, pauses, limits or sites, and never publish more
than there are slots. All else (workers, leases, lost ones) is as in the store.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import Any, Final, Protocol, Self, TypeAlias

from fairlane.model import Claimed, Leased, Receipt, Swept
from fairlane.settings import Settings
from fairlane.verbs import (
    Claim,
    Configure,
    Enqueue,
    Finish,
    Heartbeat,
    Start,
    Sweep,
    Verb,
)

#: What is asked: a verb, or tasks that come at one time.
Call: TypeAlias = Verb[Any] | tuple[Enqueue, ...]
#: A call and its time, in ms since the simulation's begin.
Step: TypeAlias = tuple[int, Call]


class Policy(Protocol):
    """Whatever decides who is next: it answers calls, in order, each at its time."""

    def run(self, steps: Sequence[Step]) -> list[Any]:
        """Return what each call comes to; a list of verdicts for several tasks."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Waiting(Protocol):
    """The tasks of a lane that wait, in the order of a policy."""

    def put(self, task: Leased) -> None:
        """Add a task that has come."""

    def put_back(self, task: Leased) -> None:
        """Add a task that was lost, to be next."""

    def take(self) -> Leased | None:
        """Remove and return the task that is next."""


class OldestFirst:
    """One queue for all."""

    def __init__(self) -> None:
        self._tasks: deque[Leased] = deque()

    def put(self, task: Leased) -> None:
        """Add a task at the end."""
        self._tasks.append(task)

    def put_back(self, task: Leased) -> None:
        """Add a task at the head."""
        self._tasks.appendleft(task)

    def take(self) -> Leased | None:
        """Remove the head."""
        return self._tasks.popleft() if self._tasks else None


class RoundRobin:
    """One queue a device, a task of each in turn; who comes goes to the end of the round."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[Leased]] = {}
        self._round: deque[str] = deque()

    def put(self, task: Leased) -> None:
        """Add a task at the end of its device's queue."""
        self._queue(task.mac).append(task)

    def put_back(self, task: Leased) -> None:
        """Add a task at the head of its device's queue."""
        self._queue(task.mac).appendleft(task)

    def take(self) -> Leased | None:
        """Remove the head of the queue whose turn it is."""
        if not self._round:
            return None
        mac = self._round.popleft()
        queue = self._queues[mac]
        task = queue.popleft()
        if queue:
            self._round.append(mac)
        else:
            del self._queues[mac]
        return task

    def _queue(self, mac: str) -> deque[Leased]:
        queue = self._queues.get(mac)
        if queue is None:
            queue = self._queues[mac] = deque()
            self._round.append(mac)
        return queue


class PlainQueues:
    """A queue for each lane, in the memory of this process."""

    def __init__(self, waiting: Callable[[], Waiting], settings: Settings) -> None:
        self._settings = settings
        self._lanes = {lane: _PlainLane(waiting(), settings.lease_ms) for lane in settings.lanes}
        self._lane_of: dict[str, _PlainLane] = {}
        self._answers: Mapping[type[Call], Callable[[Any, int], Any]] = MappingProxyType(
            {
                Enqueue: lambda verb, at_ms: self._store(verb, at_ms),
                tuple: lambda tasks, at_ms: [self._store(task, at_ms) for task in tasks],
                Claim: lambda verb, at_ms: self._lanes[verb.lane].claim(at_ms),
                Start: lambda verb, at_ms: self._lane_of[verb.task_id].hold(verb.task_id, at_ms),
                Finish: lambda verb, at_ms: self._lane_of.pop(verb.task_id).finish(verb.task_id),
                Heartbeat: self._hear,
                Sweep: self._sweep,
                Configure: lambda verb, at_ms: None,
            }
        )

    def run(self, steps: Sequence[Step]) -> list[Any]:
        """Return what each call comes to."""
        return [self._answers[type(call)](call, at_ms) for at_ms, call in steps]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def _store(self, verb: Enqueue, at_ms: int) -> Receipt:
        lane = self._lanes[self._settings.lane_by_type[verb.task_type]]
        self._lane_of[verb.task_id] = lane
        lane.waiting.put(Leased(verb.task_id, 0, verb.task_type, verb.mac))
        return Receipt(verb.task_id, verb.mac, at_ms, 0)

    def _hear(self, verb: Heartbeat, at_ms: int) -> tuple[str, ...]:
        for name in verb.lanes:
            lane = self._lanes[name]
            lane.workers[verb.worker_id] = (at_ms + self._settings.lease_ms, verb.slots)
            for task_id, _ in verb.active:
                lane.hold(task_id, at_ms)
        return ()

    def _sweep(self, verb: Sweep, at_ms: int) -> Swept:
        lost = [task for lane in self._lanes.values() for task in lane.sweep(at_ms)]
        return Swept(tuple(f"{task.task_id}.{task.attempt}" for task in lost), (), 0, 0, 0, ())


class _PlainLane:
    def __init__(self, waiting: Waiting, lease_ms: int) -> None:
        self.waiting = waiting
        self.workers: dict[str, tuple[int, int]] = {}
        self._lease_ms = lease_ms
        self._leases: dict[str, tuple[int, Leased]] = {}

    def claim(self, at_ms: int) -> Claimed:
        """Lease a task for each slot that has none."""
        free = sum(slots for _, slots in self.workers.values()) - len(self._leases)
        leased: list[Leased] = []
        while len(leased) < free and (task := self.waiting.take()):
            again = Leased(task.task_id, task.attempt + 1, task.task_type, task.mac)
            self._leases[task.task_id] = (at_ms + self._lease_ms, again)
            leased.append(again)
        return Claimed(tuple(leased), (), 0)

    def hold(self, task_id: str, at_ms: int) -> None:
        """Extend a lease."""
        if task_id in self._leases:
            self._leases[task_id] = (at_ms + self._lease_ms, self._leases[task_id][1])

    def finish(self, task_id: str) -> bool:
        """End a lease."""
        return self._leases.pop(task_id, None) is not None

    def sweep(self, at_ms: int) -> list[Leased]:
        """Put back the tasks of leases that have ended, and forget silent workers."""
        self.workers = {name: row for name, row in self.workers.items() if row[0] > at_ms}
        lost = [task for until_ms, task in self._leases.values() if until_ms <= at_ms]
        for task in reversed(lost):
            del self._leases[task.task_id]
            self.waiting.put_back(task)
        return lost


QUEUES: Final[Mapping[str, Callable[[], Waiting]]] = {"fifo": OldestFirst, "rr": RoundRobin}
