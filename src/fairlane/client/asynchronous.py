"""The client for asyncio code."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import redis

from fairlane import tracing, verbs
from fairlane.client.calls import (
    UNRUN,
    Clock,
    accepted,
    batches,
    events_command,
    events_of,
    follow,
    inspect_device,
    may_go_again,
    once,
    result,
    told,
)
from fairlane.client.pipe import Pipe
from fairlane.client.store import Store, ours
from fairlane.conversation import Confirmed, Session, Talk
from fairlane.errors import FairlaneError, StoreUnavailable
from fairlane.faults import arm, fault
from fairlane.model import Device, Event, Receipt, Seen, TaskRecord
from fairlane.probe import Probe, probe
from fairlane.settings import Settings
from fairlane.verbs import Verb
from fairlane.verbs.accept import Item, Verdict
from fairlane.verbs.cancel import Cancelled, cancelling
from fairlane.verbs.search import TaskQuery

R = TypeVar("R")


class AsyncClient:
    """A connection to the store for asyncio code; the same calls as Client, awaited."""

    def __init__(self, settings: Settings | None = None, *, clock: Clock | None = None) -> None:
        self._session = Session(settings or Settings(), clock)
        arm(self._session.settings.fault_tickets)
        self._store = Store(self._session.settings)
        self._wire = Pipe(self._store.url, **self._store.options)
        #: Who waits for the bell holds up a connection, which must not be the one of all calls.
        self._bell = Pipe(self._store.url, **self._store.options)
        self._mending: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    @classmethod
    def from_url(cls, url: str) -> Self:
        """Return a client for a store URL, with every other setting as the store has it."""
        return cls(Settings(store_url=url))

    @property
    def settings(self) -> Settings:
        """The settings agreed with the store; before the first call, those that are wanted."""
        return self._session.settings

    @property
    def is_open(self) -> bool:
        """Whether the settings are agreed with the store; the first call does that."""
        return self._session.is_open

    async def run(self, verb: Verb[R]) -> R:
        """Run a verb and return what it decodes. Raises what the verb's docstring names."""
        session = self._session
        if not session.is_open:
            return await self._mend(verb)
        if session.confirms(verb):
            return await self._carry(session.call(verb))
        try:
            reply = await self._wire.send(session.command(verb))
        except redis.RedisError as error:
            failed = ours(error)
            if isinstance(failed, UNRUN):
                return await self._mend(verb)
            return await self._carry(session.call(verb, failed))
        return session.decode(verb, reply)

    async def run_many(self, batch: Sequence[Verb[Any]]) -> list[Any]:
        """Run verbs, 128 a round trip; each result, or its FairlaneError, stands in its place."""
        await self.join()
        commands = [*map(self._session.command, batch)]
        try:
            replies = await self._wire.send_many(commands)
        except redis.RedisError as error:
            lost = ours(error)
            if not may_go_again(batch, lost):
                raise lost from error
            try:
                replies = await self._wire.send_many(commands)
            except redis.RedisError as again:
                raise ours(again) from again
        results = [result(self._session, *pair) for pair in zip(batch, replies, strict=True)]
        for at, got in enumerate(results):
            if isinstance(got, UNRUN):
                results[at] = await self._attempt(batch[at])
        return results

    async def follow(self, steps: Generator[Verb[Any], Any, R]) -> R:
        """Run each verb that is yielded, send back what it came to, return what is returned."""
        return await follow(self.run, steps)

    async def enqueue(
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
        verdict = await self.run(task)
        fault("client.after_enqueue")
        return accepted(verdict)

    async def enqueue_many(self, items: Iterable[Item]) -> list[Verdict]:
        """Store up to 1,000 tasks, 100 in a step, with a verdict for each."""
        # What may be sent is the store's word.
        await self.join()
        verdicts: list[Verdict] = []
        for batch in batches(items, self.settings):
            verdicts += await self.run(batch)
        return told(verdicts)

    async def task(self, task_id: str) -> TaskRecord:
        """Return a task's record. Raises TaskNotFound."""
        return await self.run(verbs.InspectTask(task_id))

    async def cancel(self, task_id: str, *, force: bool = False) -> bool:
        """Cancel a task; False when it was cancelled already. Raises TaskRunning, TaskEnded."""
        return await self.run(verbs.Cancel(task_id, force))

    async def cancel_many(self, query: TaskQuery, *, dry_run: bool = False) -> Cancelled:
        """Cancel what a query means: without a state, what waits; `dry_run` only counts.

        A task that has begun meanwhile is left alone. Raises InvalidData for a state that ends.
        """
        await self.join()
        return await self.follow(cancelling(query, self.settings, dry_run=dry_run))

    async def device(self, mac: str) -> Device:
        """Return a device's load, place and score."""
        return await self.run(inspect_device(mac, self.settings))

    async def devices(self, *, offset: int = 0, limit: int = 100) -> tuple[tuple[str, int], ...]:
        """Return (mac, pending) of the devices that have tasks, the longest backlogged first."""
        return await self.run(verbs.Devices(offset, limit))

    async def probe(self) -> Probe:
        """Look at the store: what its server says, and what could not be read, and why."""
        async with self._alone():
            return await self._carry(probe(self._session))

    async def check_epoch(self, *, is_sweep: bool = False) -> Seen:
        """Compare the store with what this client last saw of it, and log what was lost.

        The store may come back empty or older; `is_sweep` counts a sweep, by which that is told.
        """
        return await self._carry(self._session.check_epoch(is_sweep=is_sweep))

    async def migrate(self, settings: Settings) -> tuple[str, ...]:
        """Make `settings` the store's, and seat every device anew; return the changed fields."""
        async with self._alone():
            changed = await self._carry(self._session.impose(settings))
        offset = 0
        while offset >= 0:
            offset, _ = await self.run(verbs.Reconcile(offset))
        return changed

    async def wait(self, timeout_s: float) -> bool:
        """Sleep until the doorbell rings; False after `timeout_s`."""
        # A part must end well before the socket's patience, or silence would pass for a hung store.
        part_s, left_s = self.settings.socket_timeout_ms / 2_000, timeout_s
        while left_s > 0:
            command = ("BLPOP", self._session.keys.doorbell, min(part_s, left_s))
            if await self._carry(once(command), self._bell) is not None:
                return True
            left_s -= part_s
        return False

    async def events(self, after: str = "-", *, limit: int = 1_000) -> list[Event]:
        """Return up to `limit` events that follow the event id `after`, `-` being the first.

        Raises InvalidData for what is no event id.
        """
        return events_of(await self._carry(once(events_command(self._session.keys, after, limit))))

    async def last_event_id(self) -> str:
        """Return the id of the newest event, or `-` when there is none."""
        command = ("XREVRANGE", self._session.keys.events, "+", "-", "COUNT", 1)
        newest = events_of(await self._carry(once(command)))
        return newest[0].event_id if newest else "-"

    async def join(self) -> None:
        """Agree with the store on the settings, if that was not done yet; once for all who wait."""
        if not self._session.is_open:
            async with self._alone():
                if not self._session.is_open:
                    await self._carry(self._session.open())

    async def ping(self) -> None:
        """Raise StoreError unless the store answers and has our configuration."""
        await self.run(verbs.Overload())

    async def close(self) -> None:
        """Close the connections; an embedded server that this client started stops."""
        await self._wire.close()
        await self._bell.close()
        self._store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _attempt(self, verb: Verb[Any]) -> Any:
        try:
            return await self.run(verb)
        except FairlaneError as error:
            return error

    async def _mend(self, verb: Verb[R]) -> R:
        """Run a verb that finds the session not open, or the store without our library.

        One call at a time: the first one opens or loads for all that wait.
        """
        async with self._alone():
            return await self._carry(self._session.call(verb))

    def _alone(self) -> asyncio.Lock:
        """Return the lock of this event loop: a lock belongs to the first one that waited on it."""
        loop = asyncio.get_running_loop()
        if self._mending is None or self._mending[0] is not loop:
            self._mending = (loop, asyncio.Lock())
        return self._mending[1]

    async def _carry(self, talk: Talk[R], wire: Pipe | None = None) -> R:
        wire = wire or self._wire
        try:
            command = next(talk)
            while True:
                try:
                    if isinstance(command, Confirmed):
                        both = await wire.send_many([command, command.wait])
                        reply = command.reply(both)
                    else:
                        reply = await wire.send(command)
                except redis.RedisError as error:
                    command = talk.throw(ours(error))
                except StoreUnavailable as error:
                    command = talk.throw(error)
                else:
                    command = talk.send(reply)
        except StopIteration as end:
            value: R = end.value
            return value
