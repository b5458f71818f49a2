"""GET /metrics: the system's levels and counts, for Prometheus.

The rule: what is counted is read from the store, so any process tells the same; no label names a
device. Times of tasks come from the event stream, from the first scrape on: each process sees all
events and has a histogram of all tasks, so take one process's (or an average), and not their sum.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from fairlane import model, verbs
from fairlane.errors import FairlaneError
from fairlane.http.body import StrictRoute
from fairlane.http.caller import READERS, caller
from fairlane.http.feed import Feed
from fairlane.http.gate import Gate, within_limit
from fairlane.http.openapi import problems
from fairlane.model import TERMINAL, Event

router = APIRouter(route_class=StrictRoute, tags=["health"])

_SECONDS: Final = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800)
#: Tasks on their way whose times are remembered; past it the oldest is forgotten.
_MOST_TASKS: Final = 200_000
_LANE_GAUGES: Final = (
    ("pending", "Tasks that wait in a queue"),
    ("leased", "Tasks that are leased or running"),
    ("scheduled", "Devices that can go now"),
    ("slots", "Slots that workers offer"),
    ("credits", "Tasks that can be taken now"),
)
#: Counts of the store by their name there, with our name and label.
_COUNTS: Final = (
    ("accepted", "fairlane_tasks_accepted", "Tasks that were accepted"),
    ("redriven", "fairlane_dead_letters_redriven", "Dead letters that were brought back"),
    ("dead_dropped", "fairlane_dead_letters_dropped", "Dead letters that were dropped"),
    ("lost_leases", "fairlane_leases_lost", "Leases that ended without an end of their task"),
    ("abnormal_dropped", "fairlane_abnormal_dropped", "Abnormal records that made room"),
)


class TaskTimes:
    """How long tasks take, from the event stream, by lane."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def histogram(name: str, about: str) -> Histogram:
            name = f"fairlane_{name}_seconds"
            return Histogram(name, about, ["lane"], buckets=_SECONDS, registry=registry)

        self._wait = histogram("queue_wait", "From the acceptance of a task to its first claim")
        self._dispatch = histogram("dispatch", "From a claim to the start of the attempt")
        self._run = histogram("run", "From the start of an attempt to the end of its task")
        self._whole = histogram("end_to_end", "From the acceptance of a task to its end")
        #: When a task was accepted, claimed and started; 0 for what has not happened.
        self._tasks: OrderedDict[str, list[int]] = OrderedDict()
        self.started: dict[str, int] = {}
        self.deferred: dict[str, int] = {}

    def observe(self, events: Sequence[Event]) -> None:
        """Take in what happened."""
        for event in events:
            for told in event.tasks:
                self._see(event, told)
        while len(self._tasks) > _MOST_TASKS:
            self._tasks.popitem(last=False)

    def _see(self, event: Event, told: str) -> None:
        task_id = told.rpartition(".")[0]
        if event.event == "accepted":
            self._tasks[told] = [event.at_ms, 0, 0]
        elif event.event == "claimed":
            self._claimed(task_id, event)
        elif event.event == "started":
            self._started(task_id, event)
        elif event.event == "deferred":
            self.deferred[event.lane] = self.deferred.get(event.lane, 0) + 1
        elif event.event in TERMINAL:
            self._ended(told, event)

    def _claimed(self, task_id: str, event: Event) -> None:
        times = self._tasks.setdefault(task_id, [0, 0, 0])
        if times[0] and not times[1]:
            self._wait.labels(event.lane).observe((event.at_ms - times[0]) / 1000)
        times[1] = event.at_ms

    def _started(self, task_id: str, event: Event) -> None:
        self.started[event.lane] = self.started.get(event.lane, 0) + 1
        times = self._tasks.setdefault(task_id, [0, 0, 0])
        if times[1]:
            self._dispatch.labels(event.lane).observe((event.at_ms - times[1]) / 1000)
        times[2] = event.at_ms

    def _ended(self, task_id: str, event: Event) -> None:
        accepted, _, started = self._tasks.pop(task_id, (0, 0, 0))
        if started:
            self._run.labels(event.lane).observe((event.at_ms - started) / 1000)
        if accepted:
            self._whole.labels(event.lane).observe((event.at_ms - accepted) / 1000)


class Metrics:
    """The registry of an application."""

    def __init__(self, gate: Gate, feed: Feed) -> None:
        self._gate, self._feed = gate, feed
        self._registry = CollectorRegistry()
        self._times = TaskTimes(self._registry)
        feed.observe(self._times.observe)

    async def page(self) -> bytes:
        """Return the metrics as text. Raises StoreError."""
        await self._feed.start()
        await self._feed.look()
        lanes, totals, workers, overload, oldest = await self._gate.run_many(
            [
                *(verbs.InspectLanes(), verbs.InspectTotals(), verbs.InspectWorkers()),
                *(verbs.Overload(), verbs.Devices(0, 1)),
            ]
        )
        for found in (lanes, totals, workers, overload, oldest):
            if isinstance(found, FairlaneError):
                raise found
        waited_s = 0.0
        for mac, _ in oldest:
            waited_s = (await self._gate.run(verbs.InspectDevice(mac))).waited_ms / 1000
        page = CollectorRegistry()
        page.register(
            _Levels(
                [
                    *_of_lanes(lanes),
                    *_of_totals(totals),
                    *_of_workers(workers),
                    *_of_devices(overload, waited_s),
                    _counter("fairlane_tasks_started", "Attempts that began", self._times.started),
                    _counter("fairlane_tasks_deferred", "Defers", self._times.deferred),
                ]
            )
        )
        return generate_latest(page) + generate_latest(self._registry)


class _Levels:
    """What was read, as prometheus-client asks for it."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> list[Metric]:
        """Return the families."""
        return self._families


@router.get(
    "/metrics",
    summary="Tell levels, counts and times for Prometheus.",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
        **problems(401, 403, 503),
    },
)
async def metrics(request: Request) -> Response:
    """Answer the metrics as text."""
    caller(request).needs(READERS)
    found: Metrics = request.app.state.metrics
    async with within_limit():
        page = await found.page()
    return Response(page, headers={"Content-Type": CONTENT_TYPE_LATEST})


def _of_lanes(lanes: Sequence[model.Lane]) -> Iterator[Metric]:
    for name, about in _LANE_GAUGES:
        family = GaugeMetricFamily(f"fairlane_lane_{name}", about, labels=["lane"])
        for lane in lanes:
            family.add_metric([lane.name], getattr(lane, name))
        yield family


def _of_totals(totals: model.Totals) -> Iterator[Metric]:
    counts = totals.counts
    for name, ours, about in _COUNTS:
        yield CounterMetricFamily(ours, about, counts.get(name, 0))
    refused = {
        name.removeprefix("refused_"): count
        for name, count in counts.items()
        if name.startswith("refused_")
    }
    yield _counter("fairlane_tasks_refused", "Tasks that were refused", refused, "reason")
    ended = {str(state): counts.get(str(state), 0) for state in sorted(TERMINAL)}
    yield _counter("fairlane_tasks_ended", "Tasks that ended", ended, "outcome")
    for name in ("pending", "delayed", "leased", "dead_letters"):
        yield GaugeMetricFamily(f"fairlane_{name}", f"{name} in the store", getattr(totals, name))


def _of_workers(workers: Sequence[model.Worker]) -> Iterator[Metric]:
    states = {"offering": 0, "full": 0, "paused": 0}
    for worker in workers:
        state = "paused" if worker.reason else "offering" if worker.slots else "full"
        states[state] += 1
    family = GaugeMetricFamily("fairlane_workers", "Workers that report", labels=["state"])
    for state, count in states.items():
        family.add_metric([state], count)
    yield family


def _of_devices(overload: model.Overload, waited_s: float) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "fairlane_overloaded_devices", "Devices over their limit", overload.overloaded_devices
    )
    yield GaugeMetricFamily(
        "fairlane_overloaded", "1 while the document's formula says so", int(overload.overloaded)
    )
    yield GaugeMetricFamily("fairlane_oldest_wait_seconds", "The longest backlog's age", waited_s)


def _counter(name: str, about: str, counts: Mapping[str, Any], label: str = "lane") -> Metric:
    family = CounterMetricFamily(name, about, labels=[label])
    for value, count in counts.items():
        family.add_metric([value], count)
    return family
