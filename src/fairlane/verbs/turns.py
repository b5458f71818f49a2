"""A device's turn: in one step by Claim, or in two by the document's flow.

The rule: whoever leases a task holds `(task_id, attempt)`, whoever opens a turn holds its token;
both are fences, and an old one changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fairlane.errors import InvalidData, UnknownLane
from fairlane.mac import canonical
from fairlane.model import Claimed, Leased, Released, Turn, TurnStatus
from fairlane.settings import Settings
from fairlane.verbs.bounds import checked_flag, shown
from fairlane.verbs.verb import Arg, Verb, storable, text, texts

MAX_WANT = 1_000


@dataclass(frozen=True)
class Claim(Verb[Claimed]):
    """Lease up to `want` tasks of a lane, the device that is owed most first.

    `want` 0 is as many as the lane has credits; `holder` names who leases, for people;
    `exclude_mac` is skipped while another device can go. O(tasks × log devices).
    Raises UnknownLane, InvalidData for `want` outside 0 to 1,000, InvalidMac.
    """

    lane: str
    want: int = 0
    holder: str = ""
    exclude_mac: str = ""
    with_payload: bool = False
    REPEATABLE: ClassVar[bool] = False

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return lane, want, holder, excluded device, 1 to have the payloads."""
        if type(self.want) is not int or not 0 <= self.want <= MAX_WANT:
            raise InvalidData(
                f"want: {shown(self.want)}; ask for 0 (the credits) to {MAX_WANT} tasks"
            )
        exclude_mac = canonical(self.exclude_mac) if self.exclude_mac else ""
        lane = known_lane(self.lane, settings)
        with_payload = checked_flag("with_payload", self.with_payload)
        return (lane, self.want, storable(self.holder), exclude_mac, with_payload)

    def decode(self, reply: Any) -> Claimed:
        """Return what was leased, what had expired, and when to look again."""
        return Claimed(
            leased=tuple(map(_leased, reply[1])),
            expired=texts(reply[2]),
            next_due_ms=int(reply[0]),
            now_ms=int(reply[3]),
        )


@dataclass(frozen=True)
class ClaimDevice(Verb[Turn | None]):
    """Open a two-step turn for the device that is owed most, with a lock on it.

    None when no device can go. Raises UnknownLane, InvalidMac.
    """

    lane: str
    exclude_mac: str = ""
    REPEATABLE: ClassVar[bool] = False

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return lane and excluded device."""
        exclude_mac = canonical(self.exclude_mac) if self.exclude_mac else ""
        return (known_lane(self.lane, settings), exclude_mac)

    def decode(self, reply: Any) -> Turn | None:
        """Return the turn with its token."""
        if reply is None:
            return None
        return Turn(text(reply[0]), self.lane, text(reply[1]), int(reply[2]))


@dataclass(frozen=True)
class _InTurn:
    mac: str
    lane: str
    token: str

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return device, lane and token."""
        return (canonical(self.mac), known_lane(self.lane, settings), storable(self.token))


@dataclass(frozen=True)
class Renew(_InTurn, Verb[TurnStatus]):
    """Extend a two-step turn, and tell how large its batch may be now.

    Raises TurnLost, UnknownLane, InvalidMac.
    """

    REPEATABLE: ClassVar[bool] = True

    def decode(self, reply: Any) -> TurnStatus:
        """Return the turn's new deadline and batch."""
        return TurnStatus(int(reply[0]), int(reply[1]), reply[2] == 1)


@dataclass(frozen=True)
class Pop(_InTurn, Verb[Claimed]):
    """Lease the next task of a device whose two-step turn is open.

    Nothing is leased when the queue is empty. Raises TurnLost, UnknownLane, InvalidMac.
    """

    holder: str = ""
    REPEATABLE: ClassVar[bool] = False

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return device, lane, token and holder."""
        return (*super().args(settings), storable(self.holder))

    def decode(self, reply: Any) -> Claimed:
        """Return the leased task, if any, and what had expired before it."""
        return Claimed(tuple(map(_leased, reply[0])), texts(reply[1]), 0)


@dataclass(frozen=True)
class Release(_InTurn, Verb[Released]):
    """End a two-step turn and put the device back into the schedule if it has a queue.

    Raises TurnLost, UnknownLane, InvalidMac.
    """

    REPEATABLE: ClassVar[bool] = False

    def decode(self, reply: Any) -> Released:
        """Return what the device has left and whether another one starves."""
        return Released(int(reply[0]), reply[1] == 1)


def known_lane(lane: str, settings: Settings) -> str:
    """Return the lane. Raises UnknownLane unless a task type goes through it."""
    if lane not in settings.lanes:
        raise UnknownLane(
            f"lane: {ascii(lane)[:80]} does not exist; known are {', '.join(settings.lanes)}"
        )
    return lane


def _leased(row: Sequence[Any]) -> Leased:
    return Leased(text(row[0]), int(row[1]), text(row[2]), text(row[3]), bytes(row[4]))
