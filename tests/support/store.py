"""A store with a virtual clock, and one client on it: where the behaviour of the verbs is proved.

The rule: time passes only when a test says so, and what a test leaves behind is a healthy store
(`invariants.py`), unless it spoils it on purpose and says that too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import pytest
import redis

from fairlane import Client, Settings, verbs
from fairlane.errors import FairlaneError
from fairlane.model import Leased, Receipt, Started, TaskState
from fairlane.services.examination import examine
from fairlane.verbs import Verb
from support import servers
from support.invariants import check_invariants

R = TypeVar("R")

START_MS: Final = 1_750_000_000_000
LANE: Final = "text"
ESTIMATE_MS: Final = 10


class Clock:
    """A virtual time in ms, the same for every client of a store."""

    def __init__(self) -> None:
        self.now_ms = START_MS

    def __call__(self) -> int:
        return self.now_ms

    def advance(self, ms: int) -> int:
        """Let time pass; return the new time."""
        self.now_ms += ms
        return self.now_ms


class Store:
    """A real server with a virtual clock, its raw connection and a client that has joined it."""

    def __init__(self, url: str, **settings: Any) -> None:
        self.url = url
        self.clock = Clock()
        self.redis: Any = redis.Redis.from_url(
            url, decode_responses=True, encoding_errors="surrogateescape"
        )
        self.settings = Settings(store_url=url, **settings)
        self.client = Client(self.settings, clock=self.clock)
        self.keys = self.client.keys
        self.is_spoilt = False
        self._others: list[Client] = []
        self.redis.set(self.keys.clock, "virtual")
        self.client.ping()

    def run(self, verb: Verb[R]) -> R:
        """Run a verb, and prove that the store is healthy after it."""
        reply = self.client.run(verb)
        if not self.is_spoilt:
            self.check()
        return reply

    def other(self, **settings: Any) -> Client:
        """Return another client, which has not joined yet."""
        client = Client(Settings(**{"store_url": self.url, **settings}), clock=self.clock)
        self._others.append(client)
        return client

    def enqueue(self, device: int | str, count: int = 1, **options: Any) -> list[str]:
        """Store tasks of a device and return their ids, oldest first."""
        task_type = options.pop("task_type", LANE)
        address = mac(device) if isinstance(device, int) else device
        receipts = [
            self.client.enqueue(address, task_type, {"n": n}, **options) for n in range(count)
        ]
        return [receipt.task_id for receipt in receipts]

    def claim(self, want: int = 1, **options: Any) -> tuple[Leased, ...]:
        """Lease tasks of the lane and return them."""
        return self.run(verbs.Claim(options.pop("lane", LANE), want, **options)).leased

    def start(self, leased: Leased, run_id: str = "run") -> Started:
        """Start a leased task."""
        return self.run(verbs.Start(leased.task_id, leased.attempt, "worker", run_id))

    def finish(self, leased: Leased, result: Mapping[str, Any] | None = None) -> bool:
        """Finish a running task."""
        return self.run(verbs.Finish(leased.task_id, leased.attempt, result))

    def served(self, turns: int, run_ms: int = ESTIMATE_MS, **options: Any) -> list[str]:
        """Take one task after the other, each leased, run and done; return whose they were.

        A run takes `run_ms`: by default what the store assumes before any task has run.
        """
        run, macs = self.client.run, []
        for _ in range(turns):
            for leased in run(verbs.Claim(LANE, 1, **options)).leased:
                run(verbs.Start(leased.task_id, leased.attempt, "worker", "run"))
                self.clock.advance(run_ms)
                run(verbs.Finish(leased.task_id, leased.attempt))
                macs.append(leased.mac)
        self.check()
        return macs

    def running(self, device: int = 1, **options: Any) -> Leased:
        """Store, lease and start a task."""
        self.enqueue(device, **options)
        (leased,) = self.claim()
        self.start(leased)
        return leased

    def bury(self, device: int = 1, **options: Any) -> str:
        """Store a task, and let it fail as often as it may; return the dead task's id."""
        (task_id,) = self.enqueue(device, **options)
        for _ in range(self.settings.max_attempts):
            (leased,) = self.claim()
            self.start(leased)
            outcome = self.run(verbs.Fail(task_id, leased.attempt, "boom", "Traceback: boom"))
            self.clock.now_ms = max(self.clock.now_ms, outcome.due_ms)
        assert self.state(task_id) is TaskState.DEAD
        return task_id

    def offer(self, slots: int, *lanes: str, worker_id: str = "host:1:a", **options: Any) -> None:
        """Report a worker with free slots."""
        self.run(verbs.Heartbeat(worker_id, lanes or (LANE,), slots, **options))

    def state(self, task_id: str) -> TaskState:
        """Return a task's state."""
        return self.client.task(task_id).state

    def digest(self) -> str:
        """Return the digest of all that the store holds."""
        return servers.digest(self.url)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Prove that what happens inside changes nothing in the store."""
        before = self.digest()
        yield
        assert self.digest() == before, "the store was changed"

    def refuses(
        self, error: type[FairlaneError], verb: Verb[Any], match: str | None = None
    ) -> None:
        """Prove that a verb raises this very error and changes nothing."""
        with self.unchanged(), pytest.raises(error, match=match) as raised:
            self.run(verb)
        assert type(raised.value) is error

    def check(self) -> None:
        """Prove that the store is healthy."""
        check_invariants(self.redis, self.keys, self.client.settings, self.clock.now_ms)

    def is_well(self) -> None:
        """Prove that an examination finds nothing, and a repair changes nothing (Q28).

        What is large, or has no virtual clock any more, has tests of its own.
        """
        small = self.redis.xlen(self.keys.events) < 1_000 and self.redis.dbsize() < 1_000
        if not small or not self.redis.exists(self.keys.clock):
            return
        self.client.ping()
        with self.unchanged():
            for repair in (False, True):
                found = examine(self.client, repair=repair).flaws
                assert not found, [str(flaw) for flaw in found]

    def close(self) -> None:
        """Close every connection."""
        for client in (self.client, *self._others):
            client.close()
        self.redis.close()


def mac(number: int) -> str:
    """Return the address of the device with a number."""
    return f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}"


def receipt_of(verdict: object) -> Receipt:
    """Return a verdict that must be a receipt."""
    assert isinstance(verdict, Receipt), verdict
    return verdict
