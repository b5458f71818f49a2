"""Handlers that end badly, each in its own way, and the cause that their task must end with.

The rule: none of them may cost another task, another child or the worker itself anything.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NoReturn

from fairlane.model import Task

#: What a child that is gone leaves behind.
LOST: Final = "worker_lost"


class UnpicklableError(Exception):
    """An error that no other process can be told."""

    def __reduce__(self) -> NoReturn:
        raise TypeError("not to be pickled")


class UntellableError(Exception):
    """An error that raises when it is asked what it is."""

    def __str__(self) -> str:
        raise RuntimeError("never to be told")

    __repr__ = __str__


class Stop(BaseException):
    """What `except Exception` does not see, and no other process can be told."""

    def __reduce__(self) -> NoReturn:
        raise TypeError("not to be pickled")


class Changing(Mapping[str, Any]):
    """An object that can be stored when it is looked at first, and never after."""

    def __init__(self) -> None:
        self._looks = 0

    def __getitem__(self, key: str) -> Any:
        return "fine" if self._looks < 2 else object()

    def __iter__(self) -> Iterator[str]:
        self._looks += 1
        return iter(("key",))

    def __len__(self) -> int:
        return 1


class Hostile(Mapping[str, Any]):
    """An object that raises when it is looked at."""

    def __getitem__(self, key: str) -> Any:
        raise KeyError(key)

    def __iter__(self) -> NoReturn:
        raise ZeroDivisionError("a mapping without keys")

    def __len__(self) -> NoReturn:
        raise ZeroDivisionError("a mapping without a size")


def _raises(error: BaseException | type[BaseException]) -> Callable[[Task], NoReturn]:
    def act(task: Task) -> NoReturn:
        raise error

    return act


def _answers(make: Callable[[], Any]) -> Callable[[Task], Any]:
    return lambda task: make()


def _recursive() -> dict[str, Any]:
    endless: dict[str, Any] = {}
    endless["again"] = endless
    return endless


def _overflow(task: Task) -> None:
    _overflow(task)


def _raise_in_a_chain(task: Task) -> NoReturn:
    for _ in range(200):
        try:
            raise ValueError("x" * 50_000)
        except ValueError as error:
            last = error
    raise RuntimeError("a traceback of 10 MB" + "y" * 10_000_000) from last


def _segfault(task: Task) -> None:
    ctypes.string_at(0)


def _close_everything(task: Task) -> NoReturn:
    sys.stdout.close()
    sys.stderr.close()
    raise ValueError("without a standard output")


def _kills(number: signal.Signals) -> Callable[[Task], None]:
    return lambda task: os.kill(os.getpid(), number)


#: What a handler does, by name, and the cause of its attempts' end.
POISONS: Final[Mapping[str, tuple[Callable[[Task], Any], str]]] = {
    "raise what cannot be pickled": (_raises(UnpicklableError(lambda: 0)), "UnpicklableError"),
    "raise what cannot be told": (_raises(UntellableError()), "UntellableError"),
    "raise with a traceback of 10 MB": (_raise_in_a_chain, "RuntimeError"),
    "recurse without end": (_overflow, "RecursionError"),
    "raise a group": (_raises(ExceptionGroup("two", [ValueError(), KeyError()])), "ExceptionGroup"),
    "raise what is no Exception": (_raises(Stop()), "Stop"),
    "be interrupted": (_raises(KeyboardInterrupt), "KeyboardInterrupt"),
    "be cancelled": (_raises(asyncio.CancelledError), "CancelledError"),
    "end a generator": (_raises(GeneratorExit), "GeneratorExit"),
    "run out of memory": (_raises(MemoryError), "MemoryError"),
    "call sys.exit()": (lambda task: sys.exit(), "SystemExit"),
    "call sys.exit with an object": (lambda task: sys.exit(object()), "SystemExit"),  # type: ignore[arg-type]
    "close its standard output": (_close_everything, "ValueError"),
    "answer NaN": (_answers(lambda: {"n": float("nan")}), "InvalidData"),
    "answer a set": (_answers(lambda: {"s": {1}}), "InvalidData"),
    "answer bytes": (_answers(lambda: {"b": b"x"}), "InvalidData"),
    "answer keys that are numbers": (_answers(lambda: {1: 1}), "InvalidData"),
    "answer a lone surrogate": (_answers(lambda: {"s": "\ud800"}), "InvalidData"),
    "answer 5,000 digits": (_answers(lambda: {"n": 10**5_000}), "InvalidData"),
    "answer itself": (_answers(_recursive), "InvalidData"),
    "answer a megabyte": (_answers(lambda: {"t": "x" * 1_000_000}), "PayloadTooLarge"),
    "answer what changes": (_answers(Changing), "InvalidData"),
    "answer what raises": (_answers(Hostile), "ZeroDivisionError"),
    "answer an iterator": (_answers(lambda: iter([1])), "TypeError"),
    "exit with 0": (lambda task: os._exit(0), LOST),
    "exit with 1": (lambda task: os._exit(1), LOST),
    "abort": (lambda task: os.abort(), LOST),
    "read address 0": (_segfault, LOST),
    "kill itself": (_kills(signal.SIGKILL), LOST),
    "terminate itself": (_kills(signal.SIGTERM), "SystemExit"),
}


def poison(task: Task) -> Any:
    """Do what `how` names."""
    return POISONS[task.data["how"]][0](task)
