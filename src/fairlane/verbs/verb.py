"""What a verb is, and how replies are read.

The rule: a verb's script is the file of its own name in snake case; its first sentence is the
file's first sentence; REPEATABLE says what the file's `Twice` line says, and only repeatable verbs
are sent again when a reply is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from fairlane.errors import InvalidData
from fairlane.settings import Settings

R = TypeVar("R", covariant=True)
Arg: TypeAlias = str | bytes | int | float

_HUMP = re.compile(r"(?<!^)(?=[A-Z])")


class Verb(Generic[R]):
    """One operation on the store: a script, its arguments and what its reply means."""

    __slots__ = ()

    SCRIPT: ClassVar[str]
    REPEATABLE: ClassVar[bool]
    #: Whether it promises to keep what it was given, so that replicas may have to have it first.
    ACCEPTS: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Name the script after the class."""
        cls.SCRIPT = _HUMP.sub("_", cls.__name__).lower()

    def args(self, settings: Settings) -> Sequence[Arg]:
        """Return what follows the clock in ARGV. Raises InvalidInput for what cannot be sent."""
        raise NotImplementedError

    def decode(self, reply: Any) -> R:
        """Return the reply as a value. Raises ValueError, TypeError or IndexError on nonsense."""
        raise NotImplementedError


def every_verb() -> tuple[type[Verb[Any]], ...]:
    """Return every verb, by name."""
    return tuple(sorted(Verb.__subclasses__(), key=lambda verb: verb.__name__))


def storable(words: str, most: int = 1_024) -> str:
    """Return text that UTF-8 can carry, cut to `most` characters: its end, where a cause stands.

    Raises InvalidData for anything but text.
    """
    if not isinstance(words, str):
        raise InvalidData(f"expected text, got {type(words).__name__}")
    return words[-most:].encode(errors="replace").decode()


def text(value: Any) -> str:
    """Return a reply's bytes as text."""
    decoded: str = value.decode() if isinstance(value, bytes) else str(value)
    return decoded


def texts(values: Sequence[Any]) -> tuple[str, ...]:
    """Return a reply's list of bytes as texts."""
    return tuple(map(text, values))


def pairs(flat: Sequence[Any]) -> Iterator[tuple[str, bytes]]:
    """Return a flat `field, value, …` reply as pairs."""
    return ((text(flat[at]), flat[at + 1]) for at in range(0, len(flat), 2))
