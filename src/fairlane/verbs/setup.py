"""One configuration for all processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fairlane.ids import new_nonce
from fairlane.model import Seen
from fairlane.settings import Settings
from fairlane.verbs.epoch import seen_args
from fairlane.verbs.verb import Arg, Verb, pairs, text, texts


@dataclass(frozen=True)
class Join(Verb[tuple[Mapping[str, str], Seen]]):
    """Agree on the configuration: the first process writes it, later ones adopt it or are refused.

    `insists` are the settings that this process wants as they are, text by name; `seen` is what it
    last saw of the store, which may have come back empty or older since. Raises ConfigMismatch
    naming both values.
    """

    insists: Mapping[str, str] = field(default_factory=dict)
    seen: Seen = Seen()
    nonce: str = field(default_factory=new_nonce)
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> list[Arg]:
        """Return what was seen, how many settings are insisted on, these, and all settings."""
        args: list[Arg] = [*seen_args(self.seen, self.nonce), len(self.insists)]
        for pair in (*self.insists.items(), *_stored(settings).items()):
            args += pair
        return args

    def decode(self, reply: Any) -> tuple[Mapping[str, str], Seen]:
        """Return the stored configuration, and what to remember of the store."""
        stored, epoch_id, sweeps, at_ms, lost = reply
        seen = Seen(text(epoch_id), int(sweeps), int(at_ms), text(lost))
        return {name: value.decode() for name, value in pairs(stored)}, seen


@dataclass(frozen=True)
class Migrate(Verb[tuple[str, ...]]):
    """Change the stored configuration; after a change of policy or lanes, reconcile every device.

    Writes the settings of the client that runs it; `Client.migrate` also reconciles. Returns the
    changed fields. Raises LaneInUse.
    """

    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> list[Arg]:
        """Return the whole configuration."""
        args: list[Arg] = []
        for pair in _stored(settings).items():
            args += pair
        return args

    def decode(self, reply: Any) -> tuple[str, ...]:
        """Return the changed fields."""
        return texts(reply)


def _stored(settings: Settings) -> dict[str, str]:
    # The scripts read the lanes; they never parse the task types.
    return {**settings.shared(), "lanes": ",".join(settings.lanes), "digest": settings.digest}
