"""Task ids and nonces.

The rule: a client chooses a task's id before it sends it, so that a re-send is recognised. Ids are
UUIDv7 (RFC 9562): they sort by time, which keeps an operator's listing readable, and carry 74
random bits. The time in an id is for people; no decision reads it.
"""

from __future__ import annotations

import os
import re
import socket
import time
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
    stamp = _now()
    while True:
        try:
            return stamp + _tails.pop()
        except IndexError:  # none is left, or another thread took the last
            _tails.extend(_new_tails(_AT_ONCE))


def new_task_ids(count: int) -> list[str]:
    """Return new ids of one moment."""
    stamp = _now()
    return [stamp + tail for tail in (_new_tails(count) if count else ())]


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


def new_worker_id() -> str:
    """Return `hostname:pid:nonce`: containers use a hostname and a pid again, not the nonce."""
    return f"{socket.gethostname()}:{os.getpid()}:{new_nonce()}"


def _now() -> str:
    """Return what ids of this millisecond begin with."""
    global _stamp
    milliseconds = time.time_ns() // 1_000_000
    at, stamp = _stamp
    if at != milliseconds:
        stamp = f"{milliseconds >> 16:08x}-{milliseconds & 0xFFFF:04x}-"
        _stamp = (milliseconds, stamp)
    return stamp


def _new_tails(count: int) -> list[str]:
    """Return the last three groups of `count` ids: version and variant, and 74 random bits."""
    versions = _words(count, b"\x0f\xff", b"\x70\x00")
    variants = _words(count, b"\x3f\xff", b"\x80\x00")
    nodes = os.urandom(6 * count).hex("-", 6).split("-")
    return list(map("-".join, zip(versions, variants, nodes, strict=True)))


def _words(count: int, free: bytes, fixed: bytes) -> list[str]:
    """Return `count` words as hex digits: their `free` bits are random, the others `fixed`."""
    size = len(free) * count
    chance = int.from_bytes(os.urandom(size)) & int.from_bytes(free * count)
    words = chance | int.from_bytes(fixed * count)
    return words.to_bytes(size).hex("-", len(free)).split("-")
