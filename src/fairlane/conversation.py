"""A call on the store as a conversation: what to send, what a reply means, what an error changes.

The rule: no I/O here. A conversation is a generator that yields commands and is sent replies, or
has a fairlane error thrown into it; both clients carry the messages of the same conversation, so
there is one protocol and no twin.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias, TypeVar

from fairlane.errors import (
    ConfigChanged,
    CorruptReply,
    FairlaneError,
    StoreError,
    StoreNotDurable,
    StoreUnavailable,
    StoreUnsupported,
)
from fairlane.keys import Keys
from fairlane.model import Event, Fullness, Seen
from fairlane.scripts import PREFIX, Library, is_library, library_of
from fairlane.settings import Settings
from fairlane.verbs import CheckEpoch, Join, Measure, Migrate, Overload, Reconcile, Verb
from fairlane.verbs.verb import Arg, pairs, text

R = TypeVar("R")
Command: TypeAlias = tuple[Arg, ...]
Talk: TypeAlias = Generator[Command, Any, R]

log = logging.getLogger("fairlane.store")

_OLDEST: Final = {"redis": (7, 0), "valkey": (7, 2)}
#: A library may be flushed just after it was loaded, but hardly time and again.
_MOST_LOADS: Final = 10
_LOST: Final = {
    "empty": (
        "store: it came back empty: every task accepted before is gone from it. Restore its data "
        "(a backup, or the append-only file) or let the producers send again; find out why "
        "(persistence, eviction, a FLUSH), then acknowledge it"
    ),
    "older": (
        "store: it came back older than it was: what was accepted or ended since that copy is "
        "forgotten, and a task may run again. Let the producers send again what they have no "
        "result of; find out why (a restored backup, a lagging replica), then acknowledge it"
    ),
}
_WHERE: Final = re.compile(r" script: .*on @user_(script|function).*$")


class NoFunction(Exception):
    """The server does not have the library of the function."""


class Confirmed(tuple[Arg, ...]):
    """A command whose effect so many replicas must have before its reply counts.

    `wait` is sent behind it on the same connection, and answers how many have it.
    """

    replicas: int
    wait: Command

    @classmethod
    def by(cls, command: Command, settings: Settings) -> Confirmed:
        """Return a command that the settings' replicas confirm, in half of a socket's patience."""
        confirmed = cls(command)
        confirmed.replicas = settings.min_replicas
        confirmed.wait = ("WAIT", settings.min_replicas, settings.socket_timeout_ms // 2)
        return confirmed

    def reply(self, replies: Sequence[Any]) -> Any:
        """Return the command's reply. Raises StoreUnavailable when too few replicas have it."""
        reply, kept = replies
        for answer in replies:
            if isinstance(answer, Exception):
                raise answer
        if int(kept) < self.replicas:
            raise StoreUnavailable(
                f"store: it has it, but only {int(kept)} of {self.replicas} replicas do "
                "(min_replicas); send it again, under the same task id"
            )
        return reply


class Session:
    """What a client knows of its store: the keys, the clock, and the settings they agreed on."""

    def __init__(self, settings: Settings, clock: Callable[[], int] | None = None) -> None:
        self.keys = Keys(settings.namespace, settings.tag)
        self.settings = settings
        self.is_open = False
        self._wanted = settings
        self._clock = clock or (lambda: 0)
        #: What this process last saw of the store, to notice one that came back empty or older.
        self._seen = Seen()
        self._declared = self.keys.config
        self._digest = ""
        #: What every call of a verb begins with, by its name.
        self._heads: dict[str, Command] = {}

    def call(self, verb: Verb[R], failed: Exception | None = None) -> Talk[R]:
        """Run a verb: agree on the settings first, load its library if needed, decode the reply.

        `failed` is what became of a first try that the client made on its own: most calls need no
        conversation.
        """
        if not self.is_open:
            yield from self.open()
        try:
            reply = yield from self._evaluate(verb, failed)
        except ConfigChanged:
            # Somebody migrated the store, or it came back empty: agree anew, with a new library.
            before = self._digest
            yield from self.open()
            if self._digest == before:
                log.warning("store: it had no settings any more, and has those of this process now")
            else:
                log.warning("store: its settings were changed (`fairlane migrate`); going on with "
                            "the new ones")  # fmt: skip
            reply = yield from self._evaluate(verb)
        return self.decode(verb, reply)

    def open(self) -> Talk[None]:
        """Check the store, and agree with it on the shared settings."""
        info = yield ("INFO", "server", "cluster", "memory", "persistence")
        yield from _check(info_of(info), self._wanted)
        join = Join(self._wanted.opinions(), self._seen)
        stored, seen = self.decode(join, (yield from self._evaluate(join)))
        self._remember(seen)
        self.settings = self._wanted.adopt(stored)
        # The store's own word, not a digest made here: during a rolling deploy two releases know
        # different sets of settings, and both must be able to go on.
        self._digest = stored["digest"]
        self._heads.clear()
        self.is_open = True

    def check_epoch(self, *, is_sweep: bool) -> Talk[Seen]:
        """Compare the store with what this process last saw of it; a loss is logged."""
        seen = yield from self.call(CheckEpoch(self._seen, is_sweep))
        self._remember(seen)
        return seen

    def measure(self, lasts_ms: int) -> Talk[Fullness]:
        """Ask the server how full its memory is, and note that in the store; a change is logged."""
        info = info_of((yield ("INFO", "memory")))
        # What the server itself leaves out when it compares with its limit.
        used = int(info["used_memory"]) - int(info.get("mem_not_counted_for_evict", 0))
        found = yield from self.call(Measure(max(0, used), int(info["maxmemory"]), lasts_ms))
        if found.has_changed and found.is_full:
            log.error(
                "store: %d %% of its maxmemory is used, so no task is taken in; it drains. Give it "
                "more memory, or wait", found.percent,
            )  # fmt: skip
        elif found.has_changed:
            log.warning("store: %d %% of its maxmemory is used; it takes tasks in", found.percent)
        return found

    def _remember(self, seen: Seen) -> None:
        # A loss that the join in between has told is not told again.
        if seen.lost and seen.epoch_id != self._seen.epoch_id:
            log.error(_LOST[seen.lost])
        self._seen = seen

    def impose(self, settings: Settings) -> Talk[tuple[str, ...]]:
        """Make `settings` the store's, whatever it had; return the changed fields."""
        before = self._wanted, self.settings
        self._wanted = self.settings = settings
        try:
            changed = yield from self._evaluate(Migrate())
        except FairlaneError:
            # The store kept what it had, and so does this session.
            self._wanted, self.settings = before
            raise
        self.is_open = False
        yield from self.open()
        yield from self._forget_libraries()
        return self.decode(Migrate(), changed)

    @property
    def digest(self) -> str:
        """The store's digest of the shared settings that were agreed; empty before that."""
        return self._digest

    @property
    def library(self) -> str:
        """The name of the library of the verbs, for these settings."""
        return self._library(Overload()).name

    def confirms(self, verb: Verb[Any]) -> bool:
        """Whether replicas must have what a verb accepts before its reply counts."""
        return verb.ACCEPTS and self.settings.min_replicas > 0

    def command(self, verb: Verb[Any]) -> Command:
        """Return the command of a verb."""
        head = self._heads.get(verb.SCRIPT)
        if head is None:
            function = self._library(verb).function(verb.SCRIPT)
            head = self._heads[verb.SCRIPT] = ("FCALL", function, 1, self._declared)
        return (*head, self._clock(), *verb.args(self.settings))

    def decode(self, verb: Verb[R], reply: Any) -> R:
        """Return a reply's value. Raises CorruptReply for what the verb cannot read."""
        try:
            return verb.decode(reply)
        except (ValueError, TypeError, IndexError, KeyError) as error:
            raise CorruptReply(f"{verb.SCRIPT}: {error} in the reply {reply!r:.200}") from error

    def _library(self, verb: Verb[Any]) -> Library:
        return library_of(verb.SCRIPT, self.keys, (self.settings, self._digest))

    def _forget_libraries(self) -> Talk[None]:
        """Delete what earlier settings and releases left; whoever still calls it loads it again."""
        listed = yield ("FUNCTION", "LIST", "LIBRARYNAME", f"{PREFIX}*")
        kept = {self._library(verb).name for verb in (Join({}), Overload(), Reconcile())}
        for library in listed:
            fields = library if isinstance(library, dict) else dict(pairs(library))
            name = text({text(field): value for field, value in fields.items()}["library_name"])
            if is_library(name) and name not in kept:
                yield ("FUNCTION", "DELETE", name)

    def _evaluate(self, verb: Verb[Any], failed: Exception | None = None) -> Talk[Any]:
        command = self.command(verb)
        lost_once, loads = False, 0
        while True:
            try:
                if failed is not None:
                    raise failed
                sent = Confirmed.by(command, self.settings) if self.confirms(verb) else command
                return (yield sent)
            except NoFunction as missing:
                if loads == _MOST_LOADS:
                    raise StoreError(f"store: {missing}, though it was just loaded") from missing
                # Twice the same is no harm: a name stands for its content.
                yield ("FUNCTION", "LOAD", "REPLACE", self._library(verb).source)
                # Another thread may have joined anew since: call what is there now.
                command, failed, loads = self.command(verb), None, loads + 1
            except StoreUnavailable:
                # The reply may be lost after the script ran: only a repeatable verb goes again.
                if lost_once or not verb.REPEATABLE:
                    raise
                lost_once, failed = True, None


def error_of(message: str) -> FairlaneError | None:
    """Return the error that a script's reply names by its first word, or None."""
    code, _, detail = message.partition(" ")
    known = FairlaneError.codes.get(code)
    return None if known is None else known(_WHERE.sub("", detail))


def event_of(event_id: bytes, fields: Sequence[bytes] | Mapping[bytes, bytes]) -> Event:
    """Return an entry of the event stream."""
    flat = (
        [part for pair in fields.items() for part in pair] if isinstance(fields, dict) else fields
    )
    named = {name: value.decode(errors="replace") for name, value in pairs(list(flat))}
    return Event(
        event_id=text(event_id),
        event=named.get("event", ""),
        at_ms=int(event_id.split(b"-")[0]),
        mac=named.get("mac", ""),
        lane=named.get("lane", ""),
        tasks=tuple(named.get("tasks", "").split()),
        detail=named.get("detail", ""),
    )


def info_of(reply: bytes | str | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of an INFO reply."""
    if isinstance(reply, Mapping):
        return reply
    lines = (line.partition(":") for line in text(reply).splitlines())
    return {name: value for name, colon, value in lines if colon}


def _check(info: Mapping[str, Any], settings: Settings) -> Talk[None]:
    """Raise for a store that cannot hold our state, or not yet; warn of one that can lose it."""
    if int(info.get("cluster_enabled", 0)):
        raise StoreUnsupported(
            "store: it is a cluster; fairlane's scripts touch many keys, so name a single "
            "Redis or Valkey server (with replicas, if you like)"
        )
    name = "valkey" if "valkey_version" in info else "redis"
    version = str(info.get(f"{name}_version", "0"))
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST[name]:
        oldest = ".".join(map(str, _OLDEST[name]))
        raise StoreUnsupported(f"store: {name} {version} is too old; {oldest} is the oldest")
    if int(info.get("loading", 0)):
        # Only then does it say what it will do: until its log is read, it says that it has none.
        raise StoreUnavailable("store: it is loading its data; try again when it is done")
    risks = []
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        risks.append(f"maxmemory-policy is {policy}, so keys may vanish; set noeviction")
    if not int(info.get("aof_enabled", 0)):
        risks.append("appendonly is off, so a crash loses accepted tasks; set appendonly yes")
    elif settings.durability == "strict" and (yield from _syncs_never()):
        risks.append("appendfsync is no, so a power cut loses 30 s of tasks; set everysec")
    if risks and settings.durability == "strict":
        raise StoreNotDurable("store: " + "; ".join(risks))
    for risk in risks:
        _warn(settings.store_url, risk)


def _syncs_never() -> Talk[bool]:
    """Whether the server leaves it to its system when to write; False where it may not be asked.

    Asked by who is strict only: a refusal stands in the server's log of access.
    """
    try:
        reply = yield ("CONFIG", "GET", "appendfsync")
    except StoreUnavailable:
        raise
    except FairlaneError:
        return False
    flat = [part for pair in reply.items() for part in pair] if isinstance(reply, dict) else reply
    return [text(part) for part in flat][1:] == ["no"]


@cache
def _warn(store_url: str, risk: str) -> None:
    """Say a risk once, however many clients this process has."""
    log.warning("store: %s", risk)
