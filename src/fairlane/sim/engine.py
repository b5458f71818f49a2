"""Discrete events: the clock jumps from one to the next, and a policy says who is next.

The rule: the engine knows slots and times, never an order. It does what the real parts do: the
dispatcher claims as soon as a lane may have a credit, a worker starts what it was sent when a slot
is free and reports every 15 s what it runs, the janitor sweeps every 5 s.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, Final, NamedTuple

from fairlane.errors import TaskConflict
from fairlane.model import Claimed, Receipt, Refusal, Swept
from fairlane.settings import Settings
from fairlane.sim.clock import START_MS
from fairlane.sim.lane import Lane
from fairlane.sim.policies import Policy
from fairlane.sim.record import Record
from fairlane.sim.window import FAR, Window
from fairlane.sim.workload import Arrival, Outage, Workload
from fairlane.verbs import Claim, Configure, Enqueue, Finish, Heartbeat, Start, Sweep

#: The server forgets a worker's row by its own clock, so not too many steps pass without a report.
_STEPS_A_REPORT: Final = 10_000
#: With nothing left but reports and sweeps, what waits so long will wait for ever.
_STUCK_MS: Final = 3_600_000
_ITEMS: Final = 1_000

Progress = Callable[[int, int], None]


class _End(NamedTuple):
    """An attempt of a task ends."""

    lane: Lane
    task: int
    attempt: int


class _Return(NamedTuple):
    """A returning device sends its next task."""

    lane: Lane
    number: int


class _Look(NamedTuple):
    """Something in the lane has become due."""

    lane: Lane


class Engine:
    """Run a workload under a policy. Use once.

    `progress` is told now and then how many tasks are done, and of how many.
    """

    def __init__(
        self,
        workload: Workload,
        policy: Policy,
        settings: Settings,
        progress: Progress = lambda done, of: None,
    ) -> None:
        self._workload = workload
        self._policy = policy
        self._settings = settings
        self._progress = progress
        self._record = Record(sorted(workload.slots))
        self._lanes = [
            Lane(kind, workload.slots[kind], workload.shortest_ms(kind),
                 knows_limits=bool(workload.limited))
            for kind in self._record.kinds
        ]  # fmt: skip
        self._lane_of = {lane.name: lane for lane in self._lanes}
        self._window = Window()
        self._arrivals = iter(workload.arrivals)
        self._next: Arrival | None = next(self._arrivals, None)
        self._events: list[tuple[int, int, _End | _Return | _Look]] = []
        self._order = count()
        self._timed = deque(sorted(_timed(workload), key=lambda timed: timed[0]))
        self._returns: dict[int, int] = {}
        self._report_ms = self._sweep_ms = 0
        self._steps = 0
        self._planned_ms = 0
        self._last_end_ms = 0
        self._open = 0
        self._done = 0
        for number, device in enumerate(workload.returning):
            self._push(device.first_ms, _Return(self._lane_of[device.kind], number))

    def run(self) -> Record:
        """Run it to its end and return what happened. Raises what a verb raises."""
        while self._plan() or not self._window.is_empty:
            self._steps += self._window.send(self._policy)
            if self._steps > _STEPS_A_REPORT:
                self._steps, self._report_ms = 0, 0
            self._progress(self._done, len(self._workload.arrivals) or len(self._record))
        limit_ms = self._workload.until_ms
        end_ms = self._record.end_ms = self._last_end_ms if limit_ms is None else limit_ms
        for lane in self._lanes:
            for task, since_ms in lane.lose_workers():
                self._record.run(task, since_ms, end_ms)
        return self._record

    # What happens next.

    def _plan(self) -> bool:
        """Plan a window, instant after instant; False when nothing happens any more."""
        self._window.open()
        while (at_ms := self._next_ms()) < self._stop_ms() and self._window.takes(at_ms):
            if at_ms >= self._known_until_ms() and self._window.is_bounded:
                break
            self._planned_ms = at_ms
            self._instant(at_ms)
        return self._window.has_plans

    def _next_ms(self) -> int:
        at_ms = self._next_event_ms()
        if self._open > 0 or self._window.arrived:
            return min(at_ms, self._report_ms, self._sweep_ms)
        if at_ms < FAR:
            # Nobody has a task: reports and sweeps would change nothing.
            self._report_ms, self._sweep_ms = (
                max(self._report_ms, at_ms),
                max(self._sweep_ms, at_ms),
            )
        return at_ms

    def _next_event_ms(self) -> int:
        return min(
            self._events[0][0] if self._events else FAR,
            self._next.at_ms if self._next is not None else FAR,
            self._timed[0][0] if self._timed else FAR,
        )

    def _stop_ms(self) -> int:
        limit_ms = FAR if self._workload.until_ms is None else self._workload.until_ms
        if self._next_event_ms() == FAR:
            return min(limit_ms, self._last_end_ms + _STUCK_MS)
        return limit_ms

    def _known_until_ms(self) -> int:
        """Up to when a step needs no knowledge of what runs, as a report or an outage does."""
        return min(self._report_ms, self._sweep_ms, self._timed[0][0] if self._timed else FAR)

    def _instant(self, at_ms: int) -> None:
        """Plan all that happens at one time; the claims come last. True marks a lane with room."""
        touched: dict[Lane, bool] = {}
        if at_ms >= self._known_until_ms():
            self._change(at_ms, touched)
            self._report_and_sweep(at_ms)
        while self._events and self._events[0][0] <= at_ms:
            _, _, event = heapq.heappop(self._events)
            if isinstance(event, _Return):
                self._come_back(event, at_ms)
                touched.setdefault(event.lane, False)
            elif isinstance(event, _Look):
                touched[event.lane] = True
            elif event.lane.runs(event.task, event.attempt):
                self._end(event, at_ms)
                touched[event.lane] = True
        self._let_arrive(at_ms, touched)
        for lane, has_room in touched.items():
            self._claim(lane, at_ms, has_room=has_room)

    def _change(self, at_ms: int, touched: dict[Lane, bool]) -> None:
        while self._timed and self._timed[0][0] <= at_ms:
            _, happening = self._timed.popleft()
            if isinstance(happening, Configure):
                self._window.add(at_ms, happening)
                touched.update(dict.fromkeys(self._lanes, True))
                continue
            lane = self._lane_of[happening.lane]
            if at_ms < happening.until_ms:
                for task, since_ms in lane.lose_workers():
                    self._record.run(task, since_ms, at_ms)
                    self._record.lost += 1
            else:
                lane.raise_workers()
                touched[lane] = True
                self._report_ms = at_ms

    def _report_and_sweep(self, at_ms: int) -> None:
        if at_ms >= self._report_ms:
            self._report_ms = at_ms + self._settings.heartbeat_every_ms
            for lane in self._lanes:
                for worker in lane.workers:
                    active = [(_id(task), attempt) for task, (attempt, _) in worker.running.items()]
                    self._window.add(
                        at_ms, Heartbeat(worker.worker_id, [lane.name], worker.slots, active=active)
                    )
        if at_ms >= self._sweep_ms:
            self._sweep_ms = at_ms + self._settings.sweep_every_ms
            self._window.add(at_ms, Sweep(1_000), partial(self._swept, at_ms))
            if self._workload.limited or any(lane.may_lose for lane in self._lanes):
                self._window.bound(at_ms + 1)

    def _end(self, end: _End, at_ms: int) -> None:
        self._window.ended[end.lane.name] += 1
        # The slot's next task may come from the broker.
        self._window.bound(at_ms + end.lane.shortest_ms)
        finish = Finish(_id(end.task), end.attempt)
        self._window.add(at_ms, finish, partial(self._ended, end, at_ms))
        number = self._returns.pop(end.task, None)
        if number is not None:
            device = self._workload.returning[number]
            if at_ms + device.think_ms < device.until_ms:
                self._push(at_ms + device.think_ms, _Return(end.lane, number))

    def _come_back(self, event: _Return, at_ms: int) -> None:
        device = self._workload.returning[event.number]
        task = self._arrive(Arrival(at_ms, device.mac, device.kind, device.service_ms))
        self._returns[task] = event.number
        self._window.add(at_ms, self._enqueue(task), partial(self._stored, task))

    def _let_arrive(self, at_ms: int, touched: dict[Lane, bool]) -> None:
        tasks: list[int] = []
        while (arrival := self._next) is not None and arrival.at_ms <= at_ms:
            tasks.append(self._arrive(arrival))
            touched.setdefault(self._lane_of[arrival.kind], False)
            self._next = next(self._arrivals, None)
        if len(tasks) == 1:
            self._window.add(at_ms, self._enqueue(tasks[0]), partial(self._stored, tasks[0]))
            return
        for first in range(0, len(tasks), _ITEMS):
            some = tasks[first : first + _ITEMS]
            many = tuple(self._enqueue(task) for task in some)
            self._window.add(at_ms, many, partial(self._stored_many, some))

    def _arrive(self, arrival: Arrival) -> int:
        self._window.arrived[arrival.kind] += 1
        return self._record.arrive(arrival)

    def _enqueue(self, task: int) -> Enqueue:
        mac, kind = self._record.mac_of(task), self._record.kind_of(task)
        site = self._workload.sites.get(mac)
        more: dict[str, Any] = {} if site is None else {"site": site}
        return Enqueue(mac, kind, {}, task_id=_id(task), **more)

    def _claim(self, lane: Lane, at_ms: int, *, has_room: bool) -> None:
        arrived, ended = self._window.arrived[lane.name], self._window.ended[lane.name]
        if lane.may_claim(arrived=arrived, ended=ended, has_room=has_room):
            self._window.bound(at_ms + lane.shortest_ms)
            claim = Claim(lane.name, holder="simulate")
            self._window.add(at_ms, claim, partial(self._claimed, lane, at_ms))

    # What the replies lead to.

    def _stored(self, task: int, verdict: Receipt | Refusal | TaskConflict) -> None:
        if isinstance(verdict, Receipt):
            self._lane_of[self._record.kind_of(task)].waiting += 1
            self._open += 1
        else:
            self._record.refuse(task)
            self._returns.pop(task, None)

    def _stored_many(
        self, tasks: list[int], verdicts: list[Receipt | Refusal | TaskConflict]
    ) -> None:
        for task, verdict in zip(tasks, verdicts, strict=True):
            self._stored(task, verdict)

    def _claimed(self, lane: Lane, at_ms: int, claimed: Claimed) -> None:
        for leased in claimed.leased:
            lane.broker.append((int(leased.task_id), leased.attempt))
        lane.leased += len(claimed.leased)
        lane.waiting -= len(claimed.leased) + len(claimed.expired)
        self._open -= len(claimed.expired)
        for task_id in claimed.expired:
            self._record.expire(int(task_id))
        lane.is_full = lane.waiting > 0 and not lane.knows_limits
        self._begin(lane, at_ms)
        due_ms = claimed.next_due_ms - START_MS
        if claimed.next_due_ms and due_ms != lane.look_ms:
            lane.look_ms = due_ms
            self._push(max(due_ms, self._planned_ms + 1), _Look(lane))

    def _ended(self, end: _End, at_ms: int, _: bool) -> None:
        lane = end.lane
        lane.leased -= 1
        lane.is_full = False
        self._open -= 1
        self._done += 1
        self._last_end_ms = at_ms
        self._record.end(end.task, lane.end(end.task), at_ms)
        self._begin(lane, at_ms)

    def _begin(self, lane: Lane, at_ms: int) -> None:
        for task, attempt, worker_id in lane.begin(at_ms):
            self._record.start(task, at_ms)
            self._window.add(at_ms, Start(_id(task), attempt, worker_id, "run"))
            self._push(at_ms + self._record.service_ms[task], _End(lane, task, attempt))

    def _swept(self, at_ms: int, swept: Swept) -> None:
        dead = frozenset(swept.dead)
        if swept.lost or swept.backoffs or swept.delays:
            for lane in self._lanes:
                self._push(max(at_ms, self._planned_ms), _Look(lane))
        for lost in swept.lost:
            task_id, _, attempt = lost.partition(".")
            lane = self._lane_of[self._record.kind_of(int(task_id))]
            lane.forget(int(task_id), int(attempt))
            lane.leased -= 1
            lane.is_full = False
            if task_id in dead:
                self._record.dead += 1
                self._open -= 1
            else:
                lane.waiting += 1

    def _push(self, at_ms: int, event: _End | _Return | _Look) -> None:
        heapq.heappush(self._events, (at_ms, next(self._order), event))


def _id(task: int) -> str:
    return str(task)


def _timed(workload: Workload) -> list[tuple[int, Configure | Outage]]:
    outages = [(at_ms, outage) for outage in workload.outages
               for at_ms in (outage.from_ms, outage.until_ms)]  # fmt: skip
    return [*workload.changes, *outages]
