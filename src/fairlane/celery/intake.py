"""What a worker lets in: every message is looked at before Celery takes it apart.

The rule: a message can only harm itself. One that is not what fairlane or Celery sends is refused,
with one line in the log, and the worker goes on; kombu and Celery would end the process, or lose a
slot of it, over most of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from celery.worker.consumer import Consumer
from kombu import Connection
from kombu.transport import redis as over_redis

from fairlane.celery.beat import execute_name
from fairlane.celery.publish import attempt_of

log = logging.getLogger("fairlane.intake")

_MOST_CHARS: Final = 200
#: Headers that Celery takes apart, and what it takes them for; what is not there is None.
_HEADERS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "id": str,
    **dict.fromkeys(("eta", "expires", "parent_id", "root_id", "group", "shadow"), str),
    **dict.fromkeys(("argsrepr", "kwargsrepr", "origin", "compression"), str),
    "retries": int,
    "stamped_headers": list,
    "stamps": dict,
}
#: The parts of a message's body: arguments, named arguments, and what follows the task.
_BODY: Final = (list, dict, dict)
_FOLLOWS: Final = ("callbacks", "errbacks", "chain", "chord")


class Intake(Consumer):  # type: ignore[misc]
    """Celery's consumer, behind a check of what comes in."""

    def connection_for_read(self, heartbeat: Any = None) -> Any:
        """Return a connection whose channels outlive an item that is no message."""
        connection = self.app.connection_for_read(heartbeat=heartbeat)
        connection.transport_cls = _tolerant(connection)
        return self.ensure_connected(connection)

    def create_task_handler(self, *args: Any, **options: Any) -> Callable[[Any], None]:
        """Return what takes a message in; it raises only what the broker's connection raises."""
        take_in = super().create_task_handler(*args, **options)
        away = _lost(self.connection_errors)
        types = {execute_name(kind) for kind in self.app.fairlane.client.settings.lane_by_type}

        def on_message(message: Any) -> None:
            try:
                fault = _fault(message, self.strategies, types)
                if not fault:
                    take_in(message)
            except away:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, it is this message's
                fault = f"{type(error).__name__}: {error}"
            if fault:
                log.error("a message is refused: %.500s; it was %s", fault, _shown(message))
                message.reject_log_error(log, away)

        return on_message


def _fault(message: Any, known: Mapping[str, Any], types: set[str]) -> str:
    """Return what is wrong with a message, or nothing. Raises what decoding its body raises."""
    headers = message.headers
    name = headers.get("task") if isinstance(headers, dict) else None
    if not isinstance(name, str) or name not in known:
        return f"no task {ascii(name)[:80]} is known here"
    for header, kind in _HEADERS.items():
        value = headers.get(header)
        if not (isinstance(value, kind) or (value is None and header != "id")):
            return f"its header {header} is {type(value).__name__}"
    limits = headers.get("timelimit")
    if limits is not None and not _are_limits(limits):
        return "its header timelimit is no pair of seconds"
    if not isinstance(message.delivery_info, dict):
        return "it has no delivery_info"
    body = message.payload
    if (
        not isinstance(body, list | tuple)
        or len(body) != len(_BODY)
        or not all(isinstance(part, kind) for part, kind in zip(body, _BODY, strict=True))
    ):
        return "its body is not arguments, named arguments and what follows"
    return _attempt_fault(headers, body) if name in types else ""


def _are_limits(limits: Any) -> bool:
    return (
        isinstance(limits, list | tuple)
        and len(limits) == 2
        and all(limit is None or type(limit) in (int, float) for limit in limits)
    )


def _attempt_fault(headers: Mapping[str, Any], body: Any) -> str:
    """Return what is wrong with a message that names an attempt: only the dispatcher sends them."""
    arguments, named, follows = body
    named_by_id = attempt_of(headers["id"])
    if named_by_id is None or named or arguments != list(named_by_id):
        return "its arguments are not the task's id and attempt that its own id names"
    if headers.get("eta") or any(follows.get(part) for part in _FOLLOWS):
        return "an attempt runs at once, and nothing follows it"
    return ""


def _shown(message: Any) -> str:
    return f"{ascii(message.headers)[:_MOST_CHARS]} {ascii(message.body)[:_MOST_CHARS]}"


def _lost(errors: tuple[type[BaseException], ...]) -> tuple[type[BaseException], ...]:
    """Return the errors of a lost connection: kombu counts KeyError, which a bad item raises."""
    return tuple(error for error in errors if error is not KeyError)


def _tolerant(connection: Connection) -> Any:
    """Return the transport of a connection; on Redis, one that outlives an item that is no message.

    There a message is an item of a list that anybody may push to. Other brokers frame their own.
    """
    transport = connection.get_transport_cls()
    if not issubclass(transport, over_redis.Transport) or issubclass(transport, _Marked):
        return transport
    channel = type("TolerantChannel", (_Tolerant, transport.Channel), {})
    return type("TolerantTransport", (_Marked, transport), {"Channel": channel})


class _Marked:
    """A transport that was made tolerant already."""


class _Tolerant:
    """A channel that reads on after an item which nobody can read."""

    connection_errors: tuple[type[BaseException], ...]
    #: kombu's name for a channel's transport.
    connection: Any

    def _brpop_read(self, **options: Any) -> Any:
        return self._read_on(super()._brpop_read, **options)  # type: ignore[misc]

    def _receive_one(self, client: Any) -> Any:
        return self._read_on(super()._receive_one, client)  # type: ignore[misc]

    def _read_on(self, read: Callable[..., Any], *args: Any, **options: Any) -> Any:
        try:
            return read(*args, **options)
        except (over_redis.Empty, *_lost(self.connection_errors), *self.connection.channel_errors):
            raise
        except Exception as error:  # noqa: BLE001 - the item is gone from the list by now
            log.error("an item of the broker's is no message, and dropped: %s: %.500s",
                      type(error).__name__, error)  # fmt: skip
            return True
