"""Logs of the processes that serve: text for people, or JSON for programs by `log_format`.

The rule: the code speaks to the standard library's loggers, and only here is it decided how a line
looks. Every line of JSON has when, level, logger, role and what was bound (request_id, task_id,
attempt). No line has a secret: what is written is masked, tracebacks too; of a line of JSON it is
each value before it is encoded, so that the line stays JSON.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final, TextIO

import structlog
from structlog.contextvars import (
    bind_contextvars,
    bound_contextvars,
    get_contextvars,
)
from structlog.typing import EventDict, Processor

from fairlane.settings import Settings
from fairlane.settings.mask import MASK, secrets_of, without_secrets

#: Let every line of this task or thread from now on carry what is given by name.
bind: Final = bind_contextvars
#: The same for a block.
bound: Final = bound_contextvars

#: What looks like a token, whoever wrote it: its first group stays.
_TOKENS: Final = re.compile(
    r"((?i:bearer) +)[\w.~+/=-]{8,}"
    r"|(\beyJ)[\w-]{8,}\.[\w-]+\.[\w-]*"
)


#: What a variable has that no line is to carry.
UNBOUND: Final = Ellipsis


def _variable(name: str) -> ContextVar[Any]:
    """Return the variable that `bind` sets for a name."""
    return bind_contextvars(**{name: UNBOUND})[name].var


#: What `bind` sets by these names, for who sets them ten thousand times a second.
REQUEST_ID: Final = _variable("request_id")
TASK_ID: Final = _variable("task_id")


class Masked(logging.Formatter):
    """Format as another formatter does, and then hide what is secret."""

    def __init__(self, formatter: logging.Formatter, mask: Callable[[str], str]) -> None:
        super().__init__()
        self._formatter = formatter
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return self._mask(self._formatter.format(record))


def masking(settings: Settings) -> Callable[[str], str]:
    """Return what hides secrets in a text: those of the settings, and what looks like one."""
    known = {settings.token_secret}
    for url in (settings.store_url, settings.broker_url, settings.files_url):
        known.update(secrets_of(url))
    literal = re.compile(
        "|".join(
            re.escape(secret) for secret in sorted(known, key=len, reverse=True) if len(secret) > 3
        )
        or r"$^"
    )

    def mask(text: str) -> str:
        return without_secrets(_TOKENS.sub(_kept, literal.sub(MASK, text)))

    return mask


def configure(
    settings: Settings, role: str, level: int | str = logging.WARNING, stream: TextIO | None = None
) -> None:
    """Let the root logger write to `stream` (standard error) as the settings say; twice is once."""
    talk = logging.StreamHandler(stream or sys.stderr)
    talk.setFormatter(formatter(settings, role))
    logging.basicConfig(handlers=[talk], level=_level(level), force=True)


def formatter(settings: Settings, role: str) -> logging.Formatter:
    """Return how a line of a process looks."""
    mask = masking(settings)
    if settings.log_format != "json":
        return Masked(_Text("%(levelname)s %(name)s: %(message)s"), mask)

    def told_by(_: Any, __: str, event: EventDict) -> EventDict:
        event["role"] = role
        return event

    chain: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        told_by,
    ]

    def masked(_: Any, __: str, event: EventDict) -> EventDict:
        return {name: _without_secrets(value, mask) for name, value in event.items()}

    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=chain,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            masked,
            structlog.processors.JSONRenderer(sort_keys=True),
        ],
    )


def _without_secrets(value: Any, mask: Callable[[str], str]) -> Any:
    """Return a value of a line as JSON can have it, each text in it masked."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {mask(str(name)): _without_secrets(part, mask) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_secrets(part, mask) for part in value]
    return mask(value if isinstance(value, str) else repr(value))


class _Text(logging.Formatter):
    """A line for people, with what was bound at its end."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - its name is given
        line = super().formatMessage(record)
        bound_now = get_contextvars()
        told = " ".join(f"{name}={value}" for name, value in sorted(bound_now.items()))
        return f"{line} [{told}]" if told else line


def _kept(found: re.Match[str]) -> str:
    return next((group for group in found.groups() if group), "") + MASK


def _level(level: int | str) -> int | str:
    return level.upper() if isinstance(level, str) else level
