"""Which function runs which task type.

The rule: a task type has one handler in a process. `@handler("type")` registers a function of the
user's own; the entry point group `fairlane.handlers` brings those of installed packages, fairlane's
`text` and `ocr` among them, loaded only when a task of the type arrives. A registered function
goes before an entry point, so an application can replace what is shipped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeAlias, TypeVar

from fairlane.errors import InvalidHandler, UnknownTaskType
from fairlane.model import Task

Handler: TypeAlias = Callable[[Task], Mapping[str, Any] | None]
H = TypeVar("H", bound=Handler)

GROUP = "fairlane.handlers"

_registered: dict[str, Handler] = {}


def handler(task_type: str) -> Callable[[H], H]:
    """Register the decorated `f(task) -> result` for a task type.

    The result is a JSON object or None. Raise `fairlane.Defer` to wait with backoff,
    `fairlane.Fail` to end without a retry; any other exception is retried up to `max_attempts`.

    Raises InvalidHandler if another function of this process already serves the type.
    """

    def register(function: H) -> H:
        if not callable(function):
            raise InvalidHandler(f"handler for {task_type!r}: {function!r} is not callable")
        known = _registered.get(task_type)
        if known is not None and not _same(known, function):
            raise InvalidHandler(
                f"handler for {task_type!r}: "
                f"{known.__module__}.{known.__qualname__} serves it already"
            )
        _registered[task_type] = function
        return function

    return register


def serves(task_type: str) -> bool:
    """Whether this process has a handler for a task type; nothing is loaded for the answer."""
    return task_type in _registered or task_type in _installed()


def find(task_type: str) -> Handler:
    """Return the handler of a task type, loading its entry point the first time.

    Raises UnknownTaskType if neither this process nor an installed package serves it.
    """
    known = _registered.get(task_type)
    if known is not None:
        return known
    if (entry := _installed().get(task_type)) is not None:
        loaded: Handler = entry.load()
        return _registered.setdefault(task_type, loaded)
    served = sorted({*_registered, *_installed()})
    raise UnknownTaskType(
        f"task_type: no handler for {task_type!r}; "
        f"this process serves {', '.join(served) or 'none'}"
    )


@cache
def _installed() -> Mapping[str, EntryPoint]:
    """Return the entry points of installed packages, the first of each name.

    To find them every package's files are opened, 13 ms with a hundred packages; so it is done once
    in a process, which a package that is installed later needs to be started anew anyway.
    """
    return {entry.name: entry for entry in reversed(tuple(entry_points(group=GROUP)))}


def _same(one: Handler, other: Handler) -> bool:
    # A module that is imported twice (as __main__ and by name) registers equal functions.
    return one.__qualname__ == other.__qualname__ and one.__code__ == other.__code__
