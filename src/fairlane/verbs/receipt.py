"""The idempotency key of a task: one key of a caller is one task, however often it is sent.

The rule: a key is text that prints, in the scope of its caller; the store sees hashes only. Two
bodies are the same when all that was said of the task is equal, whatever the order of its keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import msgspec

from fairlane.errors import InvalidData
from fairlane.payload import decode
from fairlane.verbs.bounds import shown

MAX_CHARS: Final = 255
_encode: Final = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A key in its caller's scope, and the task id that came with it, if one did.

    Raises InvalidData for a key of other than 1 to 255 printable characters, or such a caller.
    """

    key: str
    caller: str = ""
    task_id: str | None = None

    def __post_init__(self) -> None:
        _check("idempotency_key", self.key, least=1)
        _check("caller", self.caller, least=0)

    def receipt(self, payload: bytes, *said: Any) -> str:
        """Return 32 digits for the key and 16 for the body: its data and what else was said."""
        scope = sha256(_encode([self.caller, self.key]))
        body = sha256(_encode([self.task_id, said, decode(payload)]))
        return scope.hexdigest()[:32] + body.hexdigest()[:16]


def _check(name: str, words: object, *, least: int) -> None:
    if (
        not isinstance(words, str)
        or not least <= len(words) <= MAX_CHARS
        or not words.isprintable()
        or least > len(words.strip())
    ):
        raise InvalidData(
            f"{name}: {shown(words)}; use {least} to {MAX_CHARS} characters that can be printed"
        )
