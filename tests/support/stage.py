"""The stage of a fault: a system whose deadlines are short, whose stream keeps every event.

The rule: the times are scaled down alike, so that what holds here holds at the defaults, which are
fifteen times as long; the recovery bounds of the defaults have tests of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from fairlane import TaskType
from fairlane.ids import new_task_id
from fairlane.model import Receipt
from fairlane.verbs import InspectTask
from fairlane.verbs.accept import MAX_ITEMS
from support.processes import COMMAND, Program
from support.store import mac
from support.system import TEXT, Place, System, on, running
from support.tally import UNTRIMMED
from support.tickets import Tickets

LEASE_MS: Final = 2_000
SWEEP_MS: Final = 500
#: What a machine that is busy with other tests may add to any wait.
SLACK_S: Final = 15.0
_SCALED: Final = {
    "events_maxlen": UNTRIMMED,
    "task_types": (TaskType("text", "text", TEXT),),
    "lease_ms": LEASE_MS,
    "heartbeat_every_ms": LEASE_MS // 4,
    "sweep_every_ms": SWEEP_MS,
    "retry_backoff_base_ms": 200,
}


class Stage:
    """A system, and what a fault needs of it: tickets, programs by their part, tasks that note."""

    def __init__(self, system: System) -> None:
        self.system: Final = system
        self.tickets: Final = Tickets(system)

    def dispatcher(self, name: str = "dispatcher") -> Program:
        """Start a dispatcher, which also sweeps while it leads; wait until one leads."""
        dispatcher = self.start_dispatcher(name)
        leader = self.system.client.keys.name("LEADER")
        self.system.explained(lambda: bool(self.system.redis.exists(leader)), 30.0)
        return dispatcher

    def start_dispatcher(self, name: str = "dispatcher") -> Program:
        """Start a dispatcher, and do not wait for it."""
        return self.system.start(name, *COMMAND, "-v", "dispatcher")

    def worker(self, name: str = "worker", slots: int = 2) -> Program:
        """Start a worker of the text lane and wait until it has registered."""
        return self.system.worker(name, TEXT, slots=slots)

    def send(
        self, count: int, devices: int = 5, *, ttl_ms: int | None = None, **data: Any
    ) -> list[str]:
        """Enqueue tasks of some devices in turn, each of which notes its run; return their ids."""
        ids = [new_task_id() for _ in range(count)]
        task: dict[str, Any] = {"task_type": "text", "data": self.noting(**data)}
        task |= {} if ttl_ms is None else {"ttl_ms": ttl_ms}
        for first in range(0, count, MAX_ITEMS):
            verdicts = self.system.client.enqueue_many(
                {**task, "mac": mac(at % devices), "task_id": ids[at]}
                for at in range(first, min(first + MAX_ITEMS, count))
            )
            refused = [verdict for verdict in verdicts if not isinstance(verdict, Receipt)]
            assert not refused, refused[0]
        return ids

    def noting(self, **data: Any) -> dict[str, Any]:
        """Return the data of a task that notes its run."""
        return {"do": "note", "notes": str(self.system.notes), **data}

    def inspected(self, task_id: str) -> InspectTask:
        """Return the verb that reads a task's record."""
        return InspectTask(task_id)

    def unstarted(self, ids: Sequence[str]) -> list[str]:
        """Return those of some tasks that no worker has started yet."""
        started = {
            name.rpartition(".")[0]
            for event in self.system.events("started")
            for name in event.tasks
        }
        return [task_id for task_id in ids if task_id not in started]


@contextmanager
def staged(kind: str = "valkey9", **settings: Any) -> Iterator[Stage]:
    """Give a stage on a server of its own, without programs yet; gone with all it started."""
    with running(kind, **{**_SCALED, **settings}) as system:
        yield Stage(system)


@contextmanager
def staged_on(server: Place, **settings: Any) -> Iterator[Stage]:
    """Give a stage on a server that is the test's."""
    with on(server, **{**_SCALED, **settings}) as system:
        yield Stage(system)
