"""Task ids and nonces.

The rule: a client chooses a task's id before it sends it, so that a re-send is recognised. Ids are
UUIDv7 (RFC 9562): they sort by time, which keeps an operator's listing readable, and carry 74
random bits. The time in an id is for people; no decision reads it.
"""

from __future__ import annotations

import os
import random
import re
import time
from typing import Final

from fairlane.errors import InvalidTaskId

_TASK_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_SHOWN: Final = 64
_RAND_B: Final = (1 << 62) - 1
_VARIANT: Final = 0b10 << 62


def new_task_id() -> str:
    """Return a new UUIDv7 in its usual text form."""
    milliseconds = time.time_ns() // 1_000_000
    chance = random.getrandbits(74)
    text = f"{milliseconds << 16 | 0x7000 | chance >> 62:016x}{chance & _RAND_B | _VARIANT:016x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


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
