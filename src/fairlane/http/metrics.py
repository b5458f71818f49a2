"""GET /metrics: the system's levels and counts, for Prometheus.

The rule: all is read from the store, so any process tells the same, and the sum over processes is
wrong; no label names a device. Times are counted when an attempt, or a task, ends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from fairlane import model, verbs
from fairlane.errors import FairlaneError
from fairlane.http.body import StrictRoute
from fairlane.http.caller import READERS, caller
from fairlane.http.gate import Gate, within_limit
from fairlane.http.openapi import problems
from fairlane.http.shares import Shares
from fairlane.model import TERMINAL

router = APIRouter(route_class=StrictRoute, tags=["health"])

log = logging.getLogger("fairlane.http")

_LANE_GAUGES: Final = (
    ("pending", "Tasks that wait in a queue"),
    ("leased", "Tasks that are leased or running"),
    ("scheduled", "Devices that can go now"),
    ("slots", "Slots that workers offer"),
    ("credits", "Tasks that can be taken now"),
    ("starved", "Devices that can go and have waited for starvation_after_ms or more"),
)
_GAUGES: Final = (
    ("pending", "Tasks that wait, delayed ones too"),
    ("delayed", "Tasks that wait for a due time of their own"),
    ("leased", "Tasks that are leased or running"),
    ("dead_letters", "Dead letters that are kept"),
)
_TIMES: Final = (
    (
        "wait",
        "queue_wait",
        "From the acceptance of a task to the claim that led to its first start",
    ),
    ("dispatch", "dispatch", "From a claim to the start of the attempt"),
    ("run", "run", "From the start of an attempt to its end"),
    ("whole", "end_to_end", "From the acceptance of a task that ran to its end"),
)
#: Counts of the store by their name there, with our name and label.
_COUNTS: Final = (
    ("accepted", "fairlane_tasks_accepted", "Tasks that were accepted"),
    ("redriven", "fairlane_dead_letters_redriven", "Dead letters that were brought back"),
    ("dead_dropped", "fairlane_dead_letters_dropped", "Dead letters that were dropped"),
    ("lost_leases", "fairlane_leases_lost", "Leases that ended without an end of their task"),
    ("abnormal_dropped", "fairlane_abnormal_dropped", "Abnormal records that made room"),
)


class Metrics:
    """What an application tells of its store."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._shares = Shares()

    async def page(self) -> bytes:
        """Return the metrics as text; what cannot be read is left out. Raises StoreError."""
        asked = (verbs.InspectLanes(), verbs.InspectTotals(), verbs.InspectWorkers(),
                 verbs.Overload(), verbs.Devices(0, 1), verbs.InspectTimes(),
                 verbs.InspectShares())  # fmt: skip
        read = await self._gate.run_many(asked)
        if all(isinstance(one, FairlaneError) for one in read):
            raise read[0]
        lanes, totals, workers, overload, oldest, times, shares = map(_readable, read)
        waited_s = None if oldest is None else 0.0
        for mac, _ in oldest or ():
            try:
                device = await self._gate.run(verbs.InspectDevice(mac))
            except FairlaneError as error:
                # Also of a name that is no device's: another program wrote there.
                _readable(error)
                waited_s = None
            else:
                waited_s = device.waited_ms / 1000
        if totals is not None and totals.spoiled:
            log.warning(
                "metrics: left out, since another program changed these counts, which begin anew: "
                "%s", ", ".join(map(ascii, totals.spoiled[:20])),
            )  # fmt: skip
        page = CollectorRegistry()
        jain = None if shares is None else self._shares.index(shares)
        page.register(Levels(lanes, totals, workers, overload, waited_s, times, jain))
        return generate_latest(page)


# A registry tells its collectors apart by which they are.
@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """What was read of a store, as prometheus-client asks for it; None is what was not."""

    lanes: Sequence[model.Lane] | None
    totals: model.Totals | None
    workers: Sequence[model.Worker] | None
    overload: model.Overload | None
    waited_s: float | None
    times: Sequence[model.Histogram] | None
    #: Jain's index by lane.
    shares: Mapping[str, float] | None

    def collect(self) -> list[Metric]:
        """Return every family of metrics whose values were read."""
        told: list[tuple[Callable[[Any], Iterable[Metric]], Any]] = [
            (_of_lanes, self.lanes),
            (_of_totals, self.totals),
            (_of_workers, self.workers),
            (_of_overload, self.overload),
            (_of_wait, self.waited_s),
            (_of_times, self.times),
            (_of_shares, self.shares),
        ]
        return [family for families, read in told if read is not None for family in families(read)]


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


def _readable(read: Any) -> Any:
    """Return what was read, or None for what could not be, which is told in the log."""
    if not isinstance(read, FairlaneError):
        return read
    log.warning("metrics: left out what cannot be read: %s: %s", read.code, read)
    return None


def _of_lanes(lanes: Sequence[model.Lane]) -> Iterator[Metric]:
    for name, about in _LANE_GAUGES:
        family = GaugeMetricFamily(f"fairlane_lane_{name}", about, labels=["lane"])
        for lane in lanes:
            family.add_metric([lane.name], getattr(lane, name))
        yield family
    family = GaugeMetricFamily(
        "fairlane_lane_wait_seconds", "How long a device has waited for its turn", labels=["lane"]
    )
    for lane in lanes:
        family.add_metric([lane.name], lane.waited_ms / 1000)
    yield family


def _of_times(times: Sequence[model.Histogram]) -> Iterator[Metric]:
    for what, name, about in _TIMES:
        family = HistogramMetricFamily(f"fairlane_{name}_seconds", about, labels=["lane"])
        started = CounterMetricFamily(
            "fairlane_attempts_ended", "Attempts that began and are over", labels=["lane"]
        )
        for found in times:
            if found.what == what:
                bounds = [*(str(bound / 1000) for bound in found.bounds_ms), "+Inf"]
                counts = accumulate(map(float, found.counts))
                family.add_metric(
                    [found.lane], [*zip(bounds, counts, strict=True)], found.sum_ms / 1000
                )
                started.add_metric([found.lane], sum(found.counts))
        yield family
        if what == "run":
            yield started


def _of_shares(index: Mapping[str, float]) -> Iterator[Metric]:
    family = GaugeMetricFamily(
        "fairlane_jain_index",
        "Fairness of worker time over weight among devices that waited all the time, 1 at best",
        labels=["lane"],
    )
    for lane, found in index.items():
        family.add_metric([lane], found)
    yield family


def _of_totals(totals: model.Totals) -> Iterator[Metric]:
    counts = totals.counts
    for name, ours, about in _COUNTS:
        # A counter that fell to 0 would look as if the store had begun anew.
        told = None if name in totals.spoiled else counts.get(name, 0)
        yield CounterMetricFamily(ours, about, told)
    refused = {
        name.removeprefix("refused_"): count
        for name, count in counts.items()
        if name.startswith("refused_")
    }
    yield _counter("fairlane_tasks_refused", "Tasks that were refused", refused, "reason")
    states = [str(state) for state in sorted(TERMINAL)]
    ended = {name: counts.get(name, 0) for name in states if name not in totals.spoiled}
    yield _counter("fairlane_tasks_ended", "Tasks that ended", ended, "outcome")
    deferred = {
        name.removeprefix("deferred:"): count
        for name, count in counts.items()
        if name.startswith("deferred:")
    }
    yield _counter("fairlane_tasks_deferred", "Defers", deferred)
    for name, about in _GAUGES:
        yield GaugeMetricFamily(f"fairlane_{name}", about, getattr(totals, name))


def _of_workers(workers: Sequence[model.Worker]) -> Iterator[Metric]:
    states = {"offering": 0, "full": 0, "paused": 0}
    for worker in workers:
        state = "paused" if worker.reason else "offering" if worker.slots else "full"
        states[state] += 1
    family = GaugeMetricFamily("fairlane_workers", "Workers that report", labels=["state"])
    for state, count in states.items():
        family.add_metric([state], count)
    yield family


def _of_overload(overload: model.Overload) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "fairlane_overloaded_devices", "Devices over their limit", overload.overloaded_devices
    )
    yield GaugeMetricFamily(
        "fairlane_overloaded", "1 while the document's formula says so", int(overload.overloaded)
    )


def _of_wait(waited_s: float) -> Iterator[Metric]:
    yield GaugeMetricFamily("fairlane_oldest_wait_seconds", "The longest backlog's age", waited_s)


def _counter(name: str, about: str, counts: Mapping[str, Any], label: str = "lane") -> Metric:
    family = CounterMetricFamily(name, about, labels=[label])
    for value, count in counts.items():
        family.add_metric([value], count)
    return family
