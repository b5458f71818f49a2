"""The reporter: tells the store what a worker offers, how loaded it is and what it runs.

The rule: a report is true when it is sent and void after its TTL. It carries the running attempts,
so a task's lease lives exactly as long as its worker says that it runs.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
from collections.abc import Callable, Sequence

from fairlane import handlers
from fairlane.client import Client
from fairlane.services.load import Load, LoadMeter, Valve
from fairlane.tasktype import TaskType
from fairlane.verbs import Deregister, Heartbeat, InspectWorkers

log = logging.getLogger("fairlane.worker")

Active = Callable[[], Sequence[tuple[str, int]]]


class Reporter:
    """Reports a worker at every step, and takes its offer away at the end."""

    def __init__(
        self,
        client: Client,
        worker_id: str,
        *,
        queues: Sequence[str],
        slots: int,
        active: Active,
        name: str = "",
    ) -> None:
        settings = client.settings
        self.every_s = settings.heartbeat_every_ms / 1000
        self.worker_id = worker_id
        self._name = name
        self._client = client
        self._queues = frozenset(queues)
        self._slots = slots
        self._active = active
        self._meter = LoadMeter(others_only=settings.backpressure_cpu == "others")
        self._valve = Valve(settings.pause_percent, settings.resume_percent)
        self._reason = ""
        self._leaving = False
        #: The last report to be sent must be the last that was made: `drain` comes in between.
        self._reporting = threading.Lock()

    def step(self) -> None:
        """Report now. Tasks that are no longer this worker's are logged; their ends are refused."""
        with self._reporting:
            self._client.check_epoch()
            self._report_now()

    def drain(self) -> None:
        """Offer nothing from now on; what runs goes on, and its leases are kept."""
        self._leaving = True
        self.step()

    def leave(self) -> None:
        """Take the worker's row away."""
        self._client.run(Deregister(self.worker_id))

    def _report_now(self) -> None:
        load = self._meter.sample(self._workers_here())
        reason = "shutting down" if self._leaving else self._valve.reason(load)
        if bool(reason) != bool(self._reason):
            level = logging.INFO if self._leaving else logging.WARNING
            log.log(level, "worker %s: %s", self.worker_id, reason or "offers its slots again")
        self._reason = reason
        has_gpu = load.gpus is not None
        obstacles = self._obstacles(has_gpu=has_gpu)
        # A lane that is not offered is told, but holds no other one up.
        held = [f"{lane}: {lacks}" for lane, lacks in obstacles.items() if lacks]
        stale = self._client.run(
            Heartbeat(
                self.worker_id,
                lanes=[lane for lane, lacks in obstacles.items() if not lacks],
                slots=0 if reason else self._slots,
                gpu=has_gpu,
                active=self._active(),
                report=self._report(load, reason or ", ".join(held)),
            )
        )
        for attempt in stale:
            log.warning("attempt %s runs here, but is not current any more", attempt)

    def _workers_here(self) -> set[int]:
        """Return the process ids of this host's workers: their load is no load of others."""
        hostname = socket.gethostname()
        rows = [worker.report for worker in self._client.run(InspectWorkers())]
        pids = [row.get("pid", "") for row in rows if row.get("hostname") == hostname]
        return {os.getpid(), *(int(pid) for pid in pids if pid.isdecimal())}

    def _obstacles(self, *, has_gpu: bool) -> dict[str, str]:
        """Return, for every lane whose queues this worker serves, what it lacks, or nothing."""
        obstacles: dict[str, str] = {}
        for lane in self._client.settings.lanes:
            kinds = [kind for kind in self._client.settings.task_types if kind.lane == lane]
            if all(kind.queue in self._queues for kind in kinds):
                lacks = filter(None, (_lacks(kind, has_gpu=has_gpu) for kind in kinds))
                obstacles[lane] = next(lacks, "")
        return obstacles

    def _report(self, load: Load, reason: str) -> dict[str, str]:
        hostname, pid, nonce = self.worker_id.rsplit(":", 2)
        gpus = [
            {"name": gpu.name, "utilisation": gpu.utilisation, "memory": gpu.memory}
            for gpu in load.gpus or ()
        ]
        return {
            "hostname": hostname,
            "pid": pid,
            "nonce": nonce,
            "name": self._name,
            "queues": ",".join(sorted(self._queues)),
            "cpu": "" if load.cpu is None else str(load.cpu),
            "memory": "" if load.memory is None else str(load.memory),
            "gpus": json.dumps(gpus) if gpus else "",
            "reason": reason,
        }


def _lacks(kind: TaskType, *, has_gpu: bool) -> str:
    """Return why this worker cannot run a task type: its attempts would only be burnt here."""
    if kind.requires == "gpu" and not has_gpu:
        return "no GPU"
    return "" if handlers.serves(kind.name) else f"no handler for {kind.name}"
