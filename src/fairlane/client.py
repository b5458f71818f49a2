"""The two clients: the only place that talks to the store.

The rule: `run(verb)` is everything. The clients carry the messages of a conversation
(`conversation.py`) and turn the driver's errors into ours; connections never re-send by themselves,
since a lost reply may belong to a script that ran. The everyday methods are one line over `run`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from fairlane import verbs
from fairlane.conversation import Command, NoScript, Session, Talk, error_of, event_of
from fairlane.embedded import Embedded, folder_of
from fairlane.errors import (
    FairlaneError,
    InvalidSettings,
    Refused,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    StoreUnsupported,
    TaskConflict,
)
from fairlane.model import Device, Event, Receipt, Refusal, TaskRecord
from fairlane.settings import Settings
from fairlane.verbs import Verb

R = TypeVar("R")
Clock = Callable[[], int]
#: (mac, task_type, data), or a ready Enqueue with an id or a TTL of its own.
Item = tuple[str, str, Mapping[str, Any]] | verbs.Enqueue

_SCHEMES: Final = {"redis": "redis", "rediss": "rediss", "unix": "unix", "valkey": "redis",
                   "valkeys": "rediss"}  # fmt: skip


class Client:
    """A connection to the store for ordinary code. Safe to share between threads.

    `settings` are what this process insists on; after the first call `settings` are those agreed
    with the store. `clock` returns a virtual time in ms, for tests and the simulator.
    """

    def __init__(self, settings: Settings | None = None, *, clock: Clock | None = None) -> None:
        self._session = Session(settings or Settings(), clock)
        self._store = _Store(self._session.settings)
        self._redis = redis.Redis(
            connection_pool=redis.ConnectionPool.from_url(
                self._store.url, retry=Retry(NoBackoff(), 0), **self._store.options
            )
        )

    @classmethod
    def from_url(cls, url: str) -> Self:
        """Return a client for a store URL, with every other setting as the store has it."""
        return cls(Settings(store_url=url))

    @property
    def settings(self) -> Settings:
        """The settings agreed with the store; before the first call, those that are wanted."""
        return self._session.settings

    @property
    def keys(self) -> Any:
        """The names of the keys."""
        return self._session.keys

    @property
    def store_url(self) -> str:
        """The URL of the server itself: for `embedded://`, that of its socket."""
        return self._store.url

    @property
    def broker_url(self) -> str:
        """Celery's broker: the setting, else the same server."""
        return self._store.broker_url

    def run(self, verb: Verb[R]) -> R:
        """Run a verb and return what it decodes. Raises what the verb's docstring names.

        Raises StoreError when the store cannot do it.
        """
        return self._carry(self._session.call(verb))

    def run_many(self, batch: Sequence[Verb[Any]]) -> list[Any]:
        """Run verbs in one round trip; each result, or its FairlaneError, stands in its place."""
        if not self._session.is_open:
            self._carry(self._session.open())
        commands = _pipelined(self._session, batch)
        try:
            with self._redis.pipeline(transaction=False) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)
                replies = pipeline.execute(raise_on_error=False)
        except redis.RedisError as error:
            raise _ours(error) from error
        results = [_result(self._session, *pair) for pair in zip(batch, replies, strict=True)]
        for at, result in enumerate(results):
            if isinstance(result, NoScript):
                results[at] = self._attempt(batch[at])
        return results

    def enqueue(
        self,
        mac: str,
        task_type: str,
        data: Mapping[str, Any],
        *,
        task_id: str | None = None,
        ttl_ms: int | None = None,
    ) -> Receipt:
        """Store a task. Raises Refused (with the reason and when to try again) or InvalidInput."""
        return _accepted(
            self.run(verbs.Enqueue(mac, task_type, data, task_id=task_id, ttl_ms=ttl_ms))
        )

    def enqueue_many(self, items: Iterable[Item]) -> list[Receipt | Refusal | TaskConflict]:
        """Store up to 1,000 tasks in one round trip, with a verdict for each."""
        return self.run(verbs.EnqueueMany([*map(_item, items)]))

    def task(self, task_id: str) -> TaskRecord:
        """Return a task's record. Raises TaskNotFound."""
        return self.run(verbs.InspectTask(task_id))

    def cancel(self, task_id: str, *, force: bool = False) -> bool:
        """Cancel a task; False when it was cancelled already. Raises TaskRunning, TaskEnded."""
        return self.run(verbs.Cancel(task_id, force))

    def device(self, mac: str) -> Device:
        """Return a device's load, place and score."""
        return self.run(_inspect_device(mac, self.settings))

    def devices(self, *, offset: int = 0, limit: int = 100) -> tuple[tuple[str, int], ...]:
        """Return (mac, pending) of the devices that have tasks, the most laden first."""
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
        command = ("BLPOP", self._session.keys.doorbell, timeout_s)
        return self._carry(_once(command)) is not None

    def events(self, after: str = "-", *, limit: int = 1_000) -> list[Event]:
        """Return up to `limit` events that follow the event id `after`."""
        start = after if after == "-" else f"({after}"
        command = ("XRANGE", self._session.keys.events, start, "+", "COUNT", limit)
        return [event_of(*entry) for entry in self._carry(_once(command)) or ()]

    def ping(self) -> None:
        """Raise StoreError unless the store answers and has our configuration."""
        self.run(verbs.Overload())

    def close(self) -> None:
        """Close the connections; an embedded server that this client started stops."""
        self._redis.close()
        self._redis.connection_pool.disconnect()
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
                    reply = self._redis.execute_command(*command)
                except redis.RedisError as error:
                    command = talk.throw(_ours(error))
                else:
                    command = talk.send(reply)
        except StopIteration as end:
            value: R = end.value
            return value


class AsyncClient:
    """A connection to the store for asyncio code; the same calls as Client, awaited."""

    def __init__(self, settings: Settings | None = None, *, clock: Clock | None = None) -> None:
        self._session = Session(settings or Settings(), clock)
        self._store = _Store(self._session.settings)
        self._redis = redis.asyncio.Redis(
            connection_pool=redis.asyncio.ConnectionPool.from_url(
                self._store.url, retry=AsyncRetry(NoBackoff(), 0), **self._store.options
            )
        )

    @classmethod
    def from_url(cls, url: str) -> Self:
        """Return a client for a store URL, with every other setting as the store has it."""
        return cls(Settings(store_url=url))

    @property
    def settings(self) -> Settings:
        """The settings agreed with the store; before the first call, those that are wanted."""
        return self._session.settings

    async def run(self, verb: Verb[R]) -> R:
        """Run a verb and return what it decodes. Raises what the verb's docstring names."""
        return await self._carry(self._session.call(verb))

    async def run_many(self, batch: Sequence[Verb[Any]]) -> list[Any]:
        """Run verbs in one round trip; each result, or its FairlaneError, stands in its place."""
        if not self._session.is_open:
            await self._carry(self._session.open())
        commands = _pipelined(self._session, batch)
        try:
            async with self._redis.pipeline(transaction=False) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)
                replies = await pipeline.execute(raise_on_error=False)
        except redis.RedisError as error:
            raise _ours(error) from error
        results = [_result(self._session, *pair) for pair in zip(batch, replies, strict=True)]
        for at, result in enumerate(results):
            if isinstance(result, NoScript):
                results[at] = await self._attempt(batch[at])
        return results

    async def enqueue(
        self,
        mac: str,
        task_type: str,
        data: Mapping[str, Any],
        *,
        task_id: str | None = None,
        ttl_ms: int | None = None,
    ) -> Receipt:
        """Store a task. Raises Refused (with the reason and when to try again) or InvalidInput."""
        return _accepted(
            await self.run(verbs.Enqueue(mac, task_type, data, task_id=task_id, ttl_ms=ttl_ms))
        )

    async def enqueue_many(self, items: Iterable[Item]) -> list[Receipt | Refusal | TaskConflict]:
        """Store up to 1,000 tasks in one round trip, with a verdict for each."""
        return await self.run(verbs.EnqueueMany([*map(_item, items)]))

    async def task(self, task_id: str) -> TaskRecord:
        """Return a task's record. Raises TaskNotFound."""
        return await self.run(verbs.InspectTask(task_id))

    async def cancel(self, task_id: str, *, force: bool = False) -> bool:
        """Cancel a task; False when it was cancelled already. Raises TaskRunning, TaskEnded."""
        return await self.run(verbs.Cancel(task_id, force))

    async def device(self, mac: str) -> Device:
        """Return a device's load, place and score."""
        return await self.run(_inspect_device(mac, self.settings))

    async def devices(self, *, offset: int = 0, limit: int = 100) -> tuple[tuple[str, int], ...]:
        """Return (mac, pending) of the devices that have tasks, the most laden first."""
        return await self.run(verbs.Devices(offset, limit))

    async def close(self) -> None:
        """Close the connections; an embedded server that this client started stops."""
        await self._redis.aclose()
        await self._redis.connection_pool.disconnect()
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

    async def _carry(self, talk: Talk[R]) -> R:
        try:
            command = next(talk)
            while True:
                try:
                    reply = await self._redis.execute_command(*command)
                except redis.RedisError as error:
                    command = talk.throw(_ours(error))
                else:
                    command = talk.send(reply)
        except StopIteration as end:
            value: R = end.value
            return value


class _Store:
    """Where the store is: the URL that the driver takes, and the embedded server behind it."""

    def __init__(self, settings: Settings) -> None:
        self._embedded: Embedded | None = None
        scheme, _, rest = settings.store_url.partition("://")
        if scheme == "embedded":
            self._embedded = Embedded(folder_of(settings.store_url)).start()
            self.url = self._embedded.url
        elif scheme in _SCHEMES:
            self.url = f"{_SCHEMES[scheme]}://{rest}"
        elif scheme in ("redis+cluster", "redis+sentinel"):
            raise StoreUnsupported(f"store_url: {scheme}:// is not supported; name a single server")
        else:
            raise InvalidSettings(
                f"store_url: unknown scheme {scheme!r}; use embedded://, redis://, rediss:// or unix://"
            )
        self.broker_url = settings.broker_url or self._same_server()
        timeout_s = settings.socket_timeout_ms / 1000
        self.options: Final[dict[str, Any]] = {
            "socket_timeout": timeout_s,
            "socket_connect_timeout": timeout_s,
        }
        if self.url.startswith("unix"):
            del self.options["socket_connect_timeout"]

    def _same_server(self) -> str:
        if self._embedded is not None:
            return self._embedded.celery_url
        return self.url.replace("unix://", "redis+socket://", 1)

    def close(self) -> None:
        if self._embedded is not None:
            self._embedded.stop()


def _once(command: Command) -> Talk[Any]:
    return (yield command)


def _pipelined(session: Session, batch: Sequence[Verb[Any]]) -> list[Command]:
    """Return the commands of a pipeline: the first of each script whole, so that it is loaded."""
    seen: set[str] = set()
    commands = []
    for verb in batch:
        commands.append(session.command(verb, whole=verb.SCRIPT not in seen))
        seen.add(verb.SCRIPT)
    return commands


def _result(session: Session, verb: Verb[Any], reply: Any) -> Any:
    if isinstance(reply, redis.RedisError):
        return _ours(reply)
    try:
        return session.decode(verb, reply)
    except FairlaneError as error:
        return error


def _accepted(verdict: Receipt | Refusal) -> Receipt:
    if isinstance(verdict, Refusal):
        raise Refused(verdict)
    return verdict


def _item(item: Item) -> verbs.Enqueue:
    return item if isinstance(item, verbs.Enqueue) else verbs.Enqueue(*item)


def _inspect_device(mac: str, settings: Settings) -> verbs.InspectDevice:
    return verbs.InspectDevice(mac, settings.aging_max_wait_ms, settings.aging_weight)


def _ours(error: redis.RedisError) -> Exception:
    """Return the driver's error as one of ours."""
    message = str(error)
    if isinstance(error, redis.exceptions.NoScriptError):
        return NoScript(message)
    if isinstance(error, redis.ReadOnlyError) or message.startswith(("READONLY", "MISCONF")):
        return StoreReadOnly(f"store: {message}")
    if isinstance(error, redis.exceptions.OutOfMemoryError) or message.startswith("OOM"):
        return StoreFull(f"store: {message}")
    if isinstance(error, redis.ConnectionError | redis.TimeoutError):
        return StoreUnavailable(f"store: {message}; is it running, and reachable from here?")
    if message.startswith(("LOADING", "MASTERDOWN", "TRYAGAIN", "BUSY")):
        return StoreUnavailable(f"store: {message}")
    return error_of(message) or StoreError(f"store: {message}")
