"""What both clients do alike around `run`."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import redis

from fairlane import verbs
from fairlane.client.store import ours
from fairlane.conversation import Command, NoFunction, Session, Talk, event_of
from fairlane.errors import ConfigChanged, FairlaneError, InvalidData, Refused, StoreUnavailable
from fairlane.keys import Keys
from fairlane.model import Event, Receipt, Refusal
from fairlane.settings import Settings
from fairlane.verbs import Verb
from fairlane.verbs.accept import MAX_ITEMS, Item, Verdict

R = TypeVar("R")
V = TypeVar("V", bound=Verdict)
#: What an event is called in the stream; `-` comes before all of them.
EVENT_ID: Final = "-|[0-9]{1,19}(-[0-9]{1,19})?"
log = logging.getLogger("fairlane.admission")

Clock: TypeAlias = Callable[[], int]
#: A thousand tasks of a thousand devices would keep the store for over 20 ms.
AT_ONCE: Final = 100
#: What a verb of a pipeline comes to when nothing of it ran: it is run again on its own.
UNRUN: Final = (NoFunction, ConfigChanged)


def events_command(keys: Keys, after: str, limit: int) -> Command:
    """Return the command that reads up to `limit` events after an id.

    Raises InvalidData for anything but `-`, or digits as in `1796-0`.
    """
    if not isinstance(after, str) or re.fullmatch(EVENT_ID, after) is None:
        raise InvalidData(f"after: {ascii(after)[:80]} is no event id; start with `-`")
    return ("XRANGE", keys.events, after if after == "-" else f"({after}", "+", "COUNT", limit)


def events_of(reply: Any) -> list[Event]:
    """Return the events that a reply holds."""
    return [event_of(*entry) for entry in reply or ()]


def once(command: Command) -> Talk[Any]:
    """Send one command and return its reply."""
    return (yield command)


async def follow(
    run: Callable[[Verb[Any]], Awaitable[Any]], steps: Generator[Verb[Any], Any, R]
) -> R:
    """Run each verb that is yielded, send back what it came to, return what is returned."""
    try:
        verb = next(steps)
        while True:
            verb = steps.send(await run(verb))
    except StopIteration as end:
        value: R = end.value
        return value


def result(session: Session, verb: Verb[Any], reply: Any) -> Any:
    """Return what a verb of a pipeline came to: its value, or its error."""
    if isinstance(reply, redis.RedisError):
        return ours(reply)
    try:
        return session.decode(verb, reply)
    except FairlaneError as error:
        return error


def accepted(verdict: Receipt | Refusal) -> Receipt:
    """Return the receipt. Raises Refused for a refusal, which a caller might overlook."""
    if isinstance(verdict, Refusal):
        told([verdict])
        raise Refused(verdict)
    return verdict


def batches(items: Iterable[Item], settings: Settings) -> list[verbs.EnqueueMany]:
    """Return the calls that store up to 1,000 items, none of which keeps the store for long.

    Raises what EnqueueMany raises.
    """
    items = list(items)
    if len(items) <= AT_ONCE or len(items) > MAX_ITEMS:
        return [verbs.EnqueueMany(items)]
    calls = [
        verbs.EnqueueMany(items[at : at + AT_ONCE], first=at)
        for at in range(0, len(items), AT_ONCE)
    ]
    for call in calls:
        # Nothing is to be sent if one of them cannot be.
        call.args(settings)
    return calls


def may_go_again(batch: Sequence[Verb[Any]], lost: Exception) -> bool:
    """Whether verbs whose replies were lost may be sent once more: each of them, as alone."""
    return isinstance(lost, StoreUnavailable) and all(verb.REPEATABLE for verb in batch)


def told(verdicts: list[V]) -> list[V]:
    """Return the verdicts, and log the refusals among them."""
    for refusal in [verdict for verdict in verdicts if isinstance(verdict, Refusal)]:
        log.info(
            "task %s of %s is refused: %s, %d pending, limit %d",
            refusal.task_id,
            refusal.mac,
            refusal.reason,
            refusal.pending,
            refusal.limit,
        )
    return verdicts


def inspect_device(mac: str, settings: Settings) -> verbs.InspectDevice:
    """Return the verb that scores a device by the store's settings."""
    return verbs.InspectDevice(mac, settings.aging_max_wait_ms, settings.aging_weight)
