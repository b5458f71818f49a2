"""Abnormal data from `/decter`: bounded, short-lived, outside the promise that nothing is lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fairlane.payload import decode, encode
from fairlane.settings import Settings
from fairlane.verbs.bounds import Page, checked_limit
from fairlane.verbs.verb import Arg, Verb


@dataclass(frozen=True)
class ReportAbnormal(Verb[tuple[int, int]]):
    """Store abnormal data for another service to read; the oldest makes room.

    Returns (records kept, records dropped). Raises InvalidData, PayloadTooLarge.
    """

    records: Sequence[Mapping[str, Any]]
    REPEATABLE: ClassVar[bool] = False

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return the encoded records."""
        checked_limit(len(self.records))
        return tuple(encode("record", item, settings.max_payload_bytes) for item in self.records)

    def decode(self, reply: Any) -> tuple[int, int]:
        """Return how many are kept and dropped."""
        return int(reply[0]), int(reply[1])


@dataclass(frozen=True)
class ReadAbnormal(Page, Verb[tuple[Mapping[str, Any], ...]]):
    """Read abnormal data, oldest first, and leave it there.

    Raises InvalidData for a limit outside 1 to 1,000.
    """

    def decode(self, reply: Any) -> tuple[Mapping[str, Any], ...]:
        """Return the records."""
        return tuple(map(decode, reply))
