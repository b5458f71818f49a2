"""A whole system for a test: a store of its own, real Celery workers, and what these did.

The rule: verdicts come from the store (records, levels, the event stream) and from effects, never
from inside a worker.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from fairlane import Client, Settings
from fairlane.model import TERMINAL, Event, Lane, TaskRecord, TaskState, Worker
from fairlane.verbs import InspectLanes, InspectTask, InspectWorkers
from support.eventually import eventually, eventually_passes
from support.invariants import check_invariants
from support.processes import Program
from support.servers import Server

DISPATCH: Final = "sensitive.dispatch"
TEXT: Final = "sensitive.text"
OCR: Final = "sensitive.ocr"
#: The real handlers, and those of the tests.
FAIRLANE: Final = "fairlane.celery"
DEEDS: Final = "support.deeds"
#: Workers of a busy machine must offer their slots all the same.
UNMINDFUL: Final = {"pause_percent": 100, "resume_percent": 100}


class Place(Protocol):
    """Where a system's store is."""

    @property
    def folder(self) -> Path:
        """Where its programs write."""

    @property
    def url(self) -> str:
        """The store's URL."""

    @property
    def broker_url(self) -> str:
        """The URL of Celery's broker, in a database apart."""

    def raw(self, db: int = 0) -> Any:
        """Return a connection to a database without fairlane."""


class System:
    """A store, its broker in a database apart, and the programs started on them."""

    def __init__(self, server: Place, **settings: Any) -> None:
        self.folder: Final = server.folder
        self.settings = Settings(
            **{
                "store_url": server.url,
                "broker_url": server.broker_url,
                "data_dir": server.folder / "data",
                **UNMINDFUL,
                **settings,
            }
        )
        self.client = Client(self.settings)
        self.client.ping()
        self.redis: Any = server.raw()
        #: The broker's database, if it is the one that a system has by itself.
        self.broker: Any = server.raw(db=1)
        self.programs: Final[list[Program]] = []
        #: What every program gets beside the settings.
        self.environ: Final[dict[str, str]] = {}
        #: What the deeds `note` and `wait` write.
        self.notes: Final = server.folder / "notes"

    def start(self, name: str, *command: str, **more: str) -> Program:
        """Start a program with this system's settings."""
        environ = {**self.settings.environ(), **self.environ, **more}
        program = Program(command, self.folder / f"{name}.log", environ)
        self.programs.append(program)
        return program

    def worker(
        self, name: str, *queues: str, slots: int = 2, pool: str = "prefork", **more: Any
    ) -> Program:
        """Start a Celery worker and wait until it has registered."""
        before = {row.worker_id for row in self.workers()}
        program = self.start_worker(name, *queues, slots=slots, pool=pool, **more)
        self.explained(lambda: bool({row.worker_id for row in self.workers()} - before), 30.0)
        return program

    def start_worker(
        self,
        name: str,
        *queues: str,
        app: str = DEEDS,
        slots: int = 2,
        pool: str = "prefork",
        arguments: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
    ) -> Program:
        """Start a Celery worker, and do not wait for it."""
        return self.start(
            name, sys.executable, "-m", "celery", "-A", app, "worker", f"--hostname={name}@%h",
            f"--queues={','.join(queues)}", f"--concurrency={slots}", f"--pool={pool}",
            "--loglevel=INFO", "--without-gossip", "--without-mingle", *arguments,
            **(environ or {}),
        )  # fmt: skip

    def beat(self, name: str = "beat") -> Program:
        """Start a Beat."""
        command = ("-m", "celery", "-A", FAIRLANE, "beat", "--loglevel=INFO", "--pidfile=")
        return self.start(name, sys.executable, *command)

    def workers(self) -> tuple[Worker, ...]:
        """Return the registered workers."""
        return self.client.run(InspectWorkers())

    def lane(self, name: str = "text") -> Lane:
        """Return a lane's level."""
        return next(lane for lane in self.client.run(InspectLanes()) if lane.name == name)

    def do(self, device: str, deed: str = "echo", task_type: str = "text", **data: Any) -> str:
        """Enqueue a task that does a deed; return its id."""
        return self.client.enqueue(device, task_type, {"do": deed, **data}).task_id

    def records(self, ids: Iterable[str]) -> list[TaskRecord]:
        """Return the tasks' records."""
        return self.client.run_many([InspectTask(task_id) for task_id in ids])

    def ended(self, ids: Sequence[str], timeout_s: float = 20.0) -> list[TaskRecord]:
        """Wait until all tasks have ended, and return their records."""

        def all_ended() -> None:
            open_ = [r for r in self.records(ids) if r.state not in TERMINAL]
            assert not open_, f"{len(open_)} of {len(ids)} go on, first {open_[0]}"

        self.explained(all_ended, timeout_s)
        return self.records(ids)

    def becomes(self, task_id: str, state: TaskState, timeout_s: float = 20.0) -> TaskRecord:
        """Wait until a task is in a state, and return its record."""

        def is_there() -> None:
            assert self.client.task(task_id).state is state, self.client.task(task_id)

        self.explained(is_there, timeout_s)
        return self.client.task(task_id)

    def explained(self, check: Callable[[], object], timeout_s: float = 10.0) -> None:
        """Wait until `check` is true or asserts no more; a failure shows what the programs said."""
        __tracebackhide__ = True
        try:
            eventually(lambda: check() is not False, timeout_s)
        except AssertionError as error:
            said = "\n".join(program.output()[-3000:] for program in self.programs)
            raise AssertionError(f"{error}\n{said}") from error

    def events(self, *kinds: str) -> list[Event]:
        """Return the events of some kinds so far, oldest first."""
        return [event for event in self.client.events(limit=20_000) if event.event in kinds]

    def starts(self, task_id: str) -> list[str]:
        """Return the attempts of a task that were started, as `task_id.attempt`."""
        return [
            name
            for event in self.events("started")
            for name in event.tasks
            if name.rpartition(".")[0] == task_id
        ]

    @contextmanager
    def gated(self, devices: Sequence[str]) -> Iterator[list[str]]:
        """Give the ids of a running task for each device; they go on when the block is left."""
        gate = self.folder / f"gate-{len(list(self.folder.glob('gate-*')))}-{devices[0]}"
        ids = [self.do(each, "wait", gate=str(gate), notes=str(self.notes)) for each in devices]
        try:
            for task_id in ids:
                self.becomes(task_id, TaskState.RUNNING)
            yield ids
        finally:
            gate.touch()

    def noted(self, task_id: str) -> list[str]:
        """Return the attempts of a task whose handlers really ran, as `task_id.attempt`."""
        lines = self.notes.read_text().splitlines() if self.notes.exists() else []
        return [line for line in lines if line.startswith(task_id)]

    def check(self) -> None:
        """Prove that the store is healthy."""
        seconds, micros = self.redis.time()
        now_ms = seconds * 1000 + micros // 1000
        check_invariants(self.redis, self.client.keys, self.client.settings, now_ms)

    def at_rest(self) -> None:
        """Wait until nothing is leased and no turn is open, and prove that the store is healthy."""
        keys = self.client.keys
        busy = [keys.name("TURNS"), *(keys.lane("INFLIGHT", lane) for lane in self.settings.lanes)]

        def rests() -> None:
            assert not self.redis.exists(*busy)
            self.check()

        eventually_passes(rests)

    def close(self) -> None:
        """End every program and close the connections; how programs stop has tests of its own."""
        try:
            for program in self.programs:
                program.end()
        finally:
            self.client.close()
            self.redis.close()
            self.broker.close()


@contextmanager
def running(kind: str = "valkey9", **settings: Any) -> Iterator[System]:
    """Give a system on a server of its own, without workers yet; gone with all it started."""
    server = Server.start(kind)
    try:
        with on(server, **settings) as system:
            yield system
    finally:
        server.stop()


@contextmanager
def on(server: Place, **settings: Any) -> Iterator[System]:
    """Give a system on a server that is the test's; gone with all it started."""
    system = System(server, **settings)
    try:
        yield system
    finally:
        system.close()
