"""The client for ordinary code."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import redis

from fairlane import tracing, verbs
from fairlane.client.broker import Broker, broker_of
from fairlane.client.calls import (
    UNRUN,
    Clock,
    accepted,
    batches,
    events_command,
    events_of,
    inspect_device,
    may_go_again,
    once,
    result,
    told,
)
from fairlane.client.store import Store, ours
from fairlane.client.wire import Wire
from fairlane.conversation import Confirmed, Session, Talk
from fairlane.errors import FairlaneError, StoreUnavailable
from fairlane.faults import arm, fault
from fairlane.keys import Keys
from fairlane.model import Device, Event, Fullness, Receipt, Seen, TaskRecord
from fairlane.probe import Probe, probe
from fairlane.settings import Settings
from fairlane.verbs import Verb
from fairlane.verbs.accept import Item, Verdict
from fairlane.verbs.cancel import Cancelled, cancelling
from fairlane.verbs.search import TaskQuery

R = TypeVar("R")


class Client:
    """A connection to the store for ordinary code. Safe to share between threads.

    `settings` are what this process insists on; after the first call `settings` are those agreed
    with the store. `clock` returns a virtual time in ms, for tests and the simulator.
    """

    def __init__(self, settings: Settings | None = None, *, clock: Clock | None = None) -> None:
        self._session = Session(settings or Settings(), clock)
        arm(self._session.settings.fault_tickets)
        self._store = Store(self._session.settings)
        self._wire = Wire(self._store.url, **self._store.options)

    @classmethod
    def from_url(cls, url: str) -> Self:
        """Return a client for a store URL, with every other setting as the store has it."""
        return cls(Settings(store_url=url))

    @property
    def settings(self) -> Settings:
        """The settings agreed with the store; before the first call, those that are wanted."""
        return self._session.settings

    @property
    def digest(self) -> str:
        """The store's digest of the settings that were agreed; empty before the first call."""
        return self._session.digest

    @property
    def keys(self) -> Keys:
        """The names of the keys."""
        return self._session.keys

    @property
    def store_url(self) -> str:
        """The URL of the server itself: for `embedded://`, that of its socket."""
        return self._store.url

    @property
    def broker_url(self) -> str:
        """Celery's broker as the setting names it, else the same server."""
        return self._store.broker_url

    @property
    def broker(self) -> Broker:
        """Celery's broker as Celery takes it. Raises InvalidSettings for a URL of no server."""
        return broker_of(self.broker_url, self._session.settings.socket_timeout_ms / 1000)

    def run(self, verb: Verb[R]) -> R:
        """Run a verb and return what it decodes. Raises what the verb's docstring names.

        Raises StoreError when the store cannot do it.
        """
        session = self._session
        if not session.is_open or session.confirms(verb):
            return self._carry(session.call(verb))
        try:
            reply = self._wire.send(session.command(verb))
        except redis.RedisError as error:
            return self._carry(session.call(verb, ours(error)))
        return session.decode(verb, reply)

    def run_many(self, batch: Sequence[Verb[Any]]) -> list[Any]:
        """Run verbs, 128 a round trip; each result, or its FairlaneError, stands in its place."""
        self.join()
        commands = [*map(self._session.command, batch)]
        try:
            replies = self._wire.send_many(commands)
        except redis.RedisError as error:
            lost = ours(error)
            if not may_go_again(batch, lost):
                raise lost from error
            try:
                replies = self._wire.send_many(commands)
            except redis.RedisError as again:
                raise ours(again) from again
        results = [result(self._session, *pair) for pair in zip(batch, replies, strict=True)]
        for at, got in enumerate(results):
            if isinstance(got, UNRUN):
                results[at] = self._attempt(batch[at])
        return results

    def follow(self, steps: Generator[Verb[Any], Any, R]) -> R:
        """Run each verb that is yielded, send back what it came to, return what is returned."""
        try:
            verb = next(steps)
            while True:
                verb = steps.send(self.run(verb))
        except StopIteration as end:
            value: R = end.value
            return value

    def enqueue(
        self,
        mac: str,
        task_type: str,
        data: Mapping[str, Any],
        *,
        task_id: str | None = None,
        ttl_ms: int | None = None,
        cost_ms: int | None = None,
        site: str | None = None,
        idempotency_key: str | None = None,
        caller: str = "",
    ) -> Receipt:
        """Store a task. Raises Refused (with the reason and when to try again) or InvalidInput."""
        task = verbs.Enqueue(
            mac, task_type, data, task_id=task_id, ttl_ms=ttl_ms, cost_ms=cost_ms, site=site,
            idempotency_key=idempotency_key, caller=caller, traceparent=tracing.current(),
        )  # fmt: skip
        fault("client.before_enqueue")
        verdict = self.run(task)
        fault("client.after_enqueue")
        return accepted(verdict)

    def enqueue_many(self, items: Iterable[Item]) -> list[Verdict]:
        """Store up to 1,000 tasks, 100 in a step, with a verdict for each."""
        # What may be sent is the store's word.
        self.join()
        verdicts: list[Verdict] = []
        for batch in batches(items, self.settings):
            verdicts += self.run(batch)
        return told(verdicts)

    def task(self, task_id: str) -> TaskRecord:
        """Return a task's record. Raises TaskNotFound."""
        return self.run(verbs.InspectTask(task_id))

    def cancel(self, task_id: str, *, force: bool = False) -> bool:
        """Cancel a task; False when it was cancelled already. Raises TaskRunning, TaskEnded."""
        return self.run(verbs.Cancel(task_id, force))

    def cancel_many(self, query: TaskQuery, *, dry_run: bool = False) -> Cancelled:
        """Cancel what a query means: without a state, what waits; `dry_run` only counts.

        A task that has begun meanwhile is left alone. Raises InvalidData for a state that ends.
        """
        self.join()
        return self.follow(cancelling(query, self.settings, dry_run=dry_run))

    def device(self, mac: str) -> Device:
        """Return a device's load, place and score."""
        return self.run(inspect_device(mac, self.settings))

    def devices(self, *, offset: int = 0, limit: int = 100) -> tuple[tuple[str, int], ...]:
        """Return (mac, pending) of the devices that have tasks, the longest backlogged first."""
        return self.run(verbs.Devices(offset, limit))

    def migrate(self, settings: Settings) -> tuple[str, ...]:
        """Make `settings` the store's, and seat every device anew; return the changed fields."""
        changed = self._carry(self._session.impose(settings))
        offset = 0
        while offset >= 0:
            offset, _ = self.run(verbs.Reconcile(offset))
        return changed

    def wait(self, timeout_s: float) -> bool:
        """Sleep until the doorbell rings; False after `timeout_s`."""
        # A part must end well before the socket's patience, or silence would pass for a hung store.
        part_s, left_s = self.settings.socket_timeout_ms / 2_000, timeout_s
        while left_s > 0:
            command = ("BLPOP", self._session.keys.doorbell, min(part_s, left_s))
            if self._carry(once(command)) is not None:
                return True
            left_s -= part_s
        return False

    def events(self, after: str = "-", *, limit: int = 1_000) -> list[Event]:
        """Return up to `limit` events that follow the event id `after`, `-` being the first.

        Raises InvalidData for what is no event id.
        """
        return events_of(self._carry(once(events_command(self._session.keys, after, limit))))

    def check_epoch(self, *, is_sweep: bool = False) -> Seen:
        """Compare the store with what this client last saw of it, and log what was lost.

        The store may come back empty or older; `is_sweep` counts a sweep, by which that is told.
        """
        return self._carry(self._session.check_epoch(is_sweep=is_sweep))

    def measure(self, lasts_ms: int = 30_000) -> Fullness:
        """Note in the store how full its memory is, for `lasts_ms`; over the high mark it refuses.

        Run it every so often, as the janitor does.
        """
        return self._carry(self._session.measure(lasts_ms))

    def join(self) -> None:
        """Agree with the store on the settings, if that was not done yet."""
        if not self._session.is_open:
            self._carry(self._session.open())

    def ping(self) -> None:
        """Raise StoreError unless the store answers and has our configuration."""
        self.run(verbs.Overload())

    def probe(self) -> Probe:
        """Look at the store: what its server says, and what could not be read, and why."""
        return self._carry(probe(self._session))

    def revive(self) -> bool:
        """Start an embedded server that has ended; True when it had. Raises StoreUnavailable."""
        return self._store.revive()

    def close(self) -> None:
        """Close the connections; an embedded server that this client started stops."""
        self._wire.close()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _attempt(self, verb: Verb[Any]) -> Any:
        try:
            return self.run(verb)
        except FairlaneError as error:
            return error

    def _carry(self, talk: Talk[R]) -> R:
        try:
            command = next(talk)
            while True:
                try:
                    if isinstance(command, Confirmed):
                        both = self._wire.send_many([command, command.wait])
                        reply = command.reply(both)
                    else:
                        reply = self._wire.send(command)
                except redis.RedisError as error:
                    command = talk.throw(ours(error))
                except StoreUnavailable as error:
                    command = talk.throw(error)
                else:
                    command = talk.send(reply)
        except StopIteration as end:
            value: R = end.value
            return value
