"""Whether the store is the one that it was: it may come back empty, or as an older copy.

The rule: a loss that some process can notice is recorded in the store and told until a person has
taken note of it. A process remembers what it last saw; the store alone cannot know what it forgot.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from fairlane.errors import InvalidData
from fairlane.ids import checked_task_id, new_nonce
from fairlane.model import Epoch, Seen
from fairlane.settings import Settings
from fairlane.verbs.bounds import checked_count, checked_flag
from fairlane.verbs.verb import Arg, Verb, pairs, text

_MOST = 10**15


@dataclass(frozen=True)
class CheckEpoch(Verb[Seen]):
    """Compare the store with what this process last saw of it; a loss is recorded.

    `seen` is what the last call returned; `is_sweep` counts a sweep, by which an older copy is
    told. `Client.check_epoch` remembers, and logs a loss. Raises InvalidData.
    """

    seen: Seen = Seen()
    is_sweep: bool = False
    nonce: str = field(default_factory=new_nonce)
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return what was seen, the name of an epoch that begins now, 1 for a sweep."""
        return (*seen_args(self.seen, self.nonce), checked_flag("is_sweep", self.is_sweep))

    def decode(self, reply: Any) -> Seen:
        """Return what to remember, and what was lost."""
        epoch_id, sweeps, at_ms, lost = reply
        return Seen(text(epoch_id), int(sweeps), int(at_ms), text(lost))


@dataclass(frozen=True)
class InspectEpoch(Verb[Epoch]):
    """Read whether the store came back empty or older, and since when it has lost nothing."""

    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return nothing."""
        return ()

    def decode(self, reply: Any) -> Epoch:
        """Return the epoch."""
        fields = {name: text(value) for name, value in pairs(reply)}
        return Epoch(
            epoch_id=fields.get("id", ""),
            sweeps=int(fields.get("sweeps", 0)),
            began_at_ms=int(fields.get("began_at", 0)),
            lost=fields.get("lost", ""),
            lost_at_ms=int(fields.get("lost_at", 0)),
            acknowledged_at_ms=int(fields.get("acknowledged_at", 0)),
        )


@dataclass(frozen=True)
class Acknowledge(Verb[bool]):
    """Take note that the store came back empty or older, so that it is not told any more.

    False when there was nothing to take note of.
    """

    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return nothing."""
        return ()

    def decode(self, reply: Any) -> bool:
        """Return whether this call took note."""
        return bool(int(reply))


def seen_args(seen: Seen, nonce: str) -> tuple[Arg, ...]:
    """Return epoch, sweeps and clock as they were last seen, and the nonce. Raises InvalidData."""
    if not isinstance(seen, Seen):
        raise InvalidData("seen: send what CheckEpoch returned")
    epoch_id = checked_task_id(seen.epoch_id) if seen.epoch_id else ""
    sweeps = checked_count("sweeps", seen.sweeps, _MOST)
    return (epoch_id, sweeps, checked_count("at_ms", seen.at_ms, _MOST), checked_task_id(nonce))
