"""Task ids and nonces.

The rule: a client chooses a task's id before it sends it, so that a re-send is recognised. Ids are
UUIDv7 (RFC 9562): they sort by time, which keeps an operator's listing readable, and carry 74
random bits. The time in an id is for people; no decision reads it.
"""

from __future__ import annotations

import os
import re
import time
from functools import cache
from typing import Final

from fairlane.errors import InvalidTaskId

_TASK_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_SHOWN: Final = 64

# What follows the time is made for many ids at once: to ask the system for chance, and to write it
# down, costs for one about what it costs for all.
_AT_ONCE: Final = 256
_tails: Final[list[str]] = []
_stamp = (0, "")

if hasattr(os, "register_at_fork"):
    # Two processes must not hand out the same.
    os.register_at_fork(after_in_child=_tails.clear)


def new_task_id() -> str:
    """Return a new UUIDv7 in its usual text form."""
    global _stamp
    milliseconds = time.time_ns() // 1_000_000
    at, stamp = _stamp
    if at != milliseconds:
        stamp = f"{milliseconds >> 16:08x}-{milliseconds & 0xFFFF:04x}-"
        _stamp = (milliseconds, stamp)
    while True:
        try:
            return stamp + _tails.pop()
        except IndexError:
            _tails.extend(_new_tails())


def new_nonce() -> str:
    """Return 64 random bits as text, to tell two runs of one name apart."""
    return os.urandom(8).hex()


def checked_task_id(text: str) -> str:
    """Return a task id that a caller chose.

    Raises InvalidTaskId unless it is 1 to 128 letters, digits and `._:-`, a letter or digit first.
    """
    if not isinstance(text, str) or _TASK_ID.fullmatch(text) is None:
        shown = ascii(text)[:_SHOWN]
        raise InvalidTaskId(
            f"task_id: {shown}; use 1 to 128 letters, digits and `._:-`, a letter or digit first"
        )
    return text


def _new_tails() -> list[str]:
    """Return the last three groups of many ids: version and variant, and 74 random bits."""
    versions = _words(2, free=0x0FFF, fixed=0x7000)
    variants = _words(2, free=0x3FFF, fixed=0x8000)
    nodes = _words(6, free=(1 << 48) - 1, fixed=0)
    return list(map("-".join, zip(versions, variants, nodes, strict=True)))


def _words(size: int, *, free: int, fixed: int) -> list[str]:
    """Return many words of `size` bytes as digits: `free` bits are random, the others `fixed`."""
    chance = int.from_bytes(os.urandom(size * _AT_ONCE))
    chance = chance & _repeated(free, size) | _repeated(fixed, size)
    return chance.to_bytes(size * _AT_ONCE).hex("-", size).split("-")


@cache
def _repeated(word: int, size: int) -> int:
    return int.from_bytes(word.to_bytes(size) * _AT_ONCE)
