"""What can go wrong, as one tree; the codes are the protocol.

The rule: an expected outcome is a return value, a broken precondition is an error, and every
error changes nothing. The first word of a script's error reply is a code; the code names the
class here, the `type` of an HTTP problem and the message of a command. A test holds the codes
that Lua can answer and the classes below together.

    FairlaneError
    ├── InvalidInput                 what you sent cannot be stored
    │   ├── InvalidMac               INVALID_MAC
    │   ├── InvalidData              INVALID_DATA
    │   ├── InvalidTaskId            INVALID_TASK_ID
    │   ├── PayloadTooLarge          PAYLOAD_TOO_LARGE
    │   ├── UnknownTaskType          UNKNOWN_TASK_TYPE
    │   ├── UnknownLane              UNKNOWN_LANE
    │   ├── InvalidToken             INVALID_TOKEN
    │   ├── InvalidSettings          INVALID_SETTINGS
    │   └── InvalidHandler           INVALID_HANDLER
    ├── NotFound
    │   ├── TaskNotFound             TASK_NOT_FOUND
    │   ├── TokenNotFound            TOKEN_NOT_FOUND
    │   └── FileNotKnown             FILE_NOT_FOUND
    ├── Conflict                     the state of things does not allow it
    │   ├── TaskConflict             TASK_CONFLICT      same id, another body
    │   ├── IdempotencyConflict      IDEMPOTENCY_CONFLICT  same key, another body
    │   ├── TaskRunning              TASK_RUNNING       cancel it with force
    │   ├── TaskEnded                TASK_ENDED
    │   ├── StaleAttempt             STALE_ATTEMPT      a newer attempt, or an end, exists
    │   ├── TurnLost                 TURN_LOST          the device's turn ended or is another's
    │   ├── LaneInUse                LANE_IN_USE        it still has tasks
    │   ├── LimitsChanged            LIMITS_CHANGED     somebody else set the device's limits
    │   ├── ConfigMismatch           CONFIG_MISMATCH    the store was set up otherwise
    │   └── ProcessesDisagree        PROCESSES_DISAGREE one that runs was started otherwise
    ├── Refused                      REFUSED            admission said no; carries the Refusal
    ├── StoreError
    │   ├── StoreUnavailable         STORE_UNAVAILABLE
    │   │   └── StoreDenied          STORE_DENIED       wrong user or password
    │   ├── StoreReadOnly            STORE_READ_ONLY
    │   ├── StoreFull                STORE_FULL
    │   ├── StoreNotDurable          STORE_NOT_DURABLE
    │   ├── StoreUnsupported         STORE_UNSUPPORTED
    │   ├── ConfigChanged            CONFIG_CHANGED     the client joins anew and repeats the call
    │   ├── ForeignKey               FOREIGN_KEY        another program's value under our prefix
    │   ├── CorruptRecord            CORRUPT_RECORD     a task's data cannot be read
    │   └── CorruptReply             CORRUPT_REPLY
    └── ClockRefused                 CLOCK_REFUSED      a virtual clock on a real store

    Defer, Fail                      raised by a handler: an outcome, no error of fairlane
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from fairlane.model import Refusal


class FairlaneError(Exception):
    """Anything fairlane raises on purpose; `code` is stable, the message is for people."""

    code: ClassVar[str] = "FAIRLANE"
    codes: ClassVar[dict[str, type[FairlaneError]]] = {}

    def __init_subclass__(cls, code: str | None = None) -> None:
        """Register the class under its code, so that a reply's first word finds it."""
        if code is not None:
            if code in FairlaneError.codes:
                message = f"two error classes claim the code {code}"
                raise TypeError(message)
            cls.code = code
            FairlaneError.codes[code] = cls


class InvalidInput(FairlaneError):
    """What was sent cannot be stored as it is; nothing was."""


class InvalidMac(InvalidInput, code="INVALID_MAC"):
    """The text is no usable device address (EUI-48 or EUI-64, unicast, not all zero)."""


class InvalidData(InvalidInput, code="INVALID_DATA"):
    """A task's data is no JSON object of plain values."""


class InvalidTaskId(InvalidInput, code="INVALID_TASK_ID"):
    """A task id is empty, too long, or holds other than letters, digits and `._:-`."""


class PayloadTooLarge(InvalidInput, code="PAYLOAD_TOO_LARGE"):
    """A task's encoded data is over `max_payload_bytes`; send large things by reference."""


class UnknownTaskType(InvalidInput, code="UNKNOWN_TASK_TYPE"):
    """No lane serves this task type."""


class UnknownLane(InvalidInput, code="UNKNOWN_LANE"):
    """No lane has this name."""


class InvalidToken(InvalidInput, code="INVALID_TOKEN"):
    """A token does not hold: its signature, its times, its audience, or what it allows."""


class InvalidSettings(InvalidInput, code="INVALID_SETTINGS"):
    """One or more settings are out of range; the message lists every one."""


class InvalidHandler(InvalidInput, code="INVALID_HANDLER"):
    """A handler is registered twice or is no function."""


class NotFound(FairlaneError):
    """There is nothing under this name, or its retention is over."""


class TaskNotFound(NotFound, code="TASK_NOT_FOUND"):
    """No such task, or its record's retention is over."""


class TokenNotFound(NotFound, code="TOKEN_NOT_FOUND"):
    """No such token was issued here, or it has expired."""


class FileNotKnown(NotFound, code="FILE_NOT_FOUND"):
    """No stored file has this name."""


class Conflict(FairlaneError):
    """The state of things does not allow the call."""


class TaskConflict(Conflict, code="TASK_CONFLICT"):
    """The task id is taken by a task with another device, type or body."""


class IdempotencyConflict(Conflict, code="IDEMPOTENCY_CONFLICT"):
    """The idempotency key stands for a task that was sent with another body."""


class TaskRunning(Conflict, code="TASK_RUNNING"):
    """The task runs; cancel it with `force` if its result may be thrown away."""


class TaskEnded(Conflict, code="TASK_ENDED"):
    """The task has reached a final state, which never changes."""


class StaleAttempt(Conflict, code="STALE_ATTEMPT"):
    """This attempt is not the task's current one, or it was started by somebody else."""


class TurnLost(Conflict, code="TURN_LOST"):
    """The fencing token is not that of the device's open turn."""


class LaneInUse(Conflict, code="LANE_IN_USE"):
    """A lane that still has tasks cannot be removed."""


class LimitsChanged(Conflict, code="LIMITS_CHANGED"):
    """The device's settings are not those that were read; somebody else has set them."""


class ConfigMismatch(Conflict, code="CONFIG_MISMATCH"):
    """This process insists on a setting that the store has otherwise; see `fairlane migrate`."""


class ProcessesDisagree(Conflict, code="PROCESSES_DISAGREE"):
    """A new process was started otherwise than one that runs; the message names both values."""


class Refused(FairlaneError, code="REFUSED"):
    """Admission refused the task; nothing was stored. `refusal` says why and when to try again."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(
            f"{refusal.reason}: {refusal.pending} pending, limit {refusal.limit}; "
            f"try again in {refusal.retry_after_ms / 1000:.0f} s"
        )


class StoreError(FairlaneError):
    """The store could not do it; nothing was changed, or the call is safe to send again."""


class StoreUnavailable(StoreError, code="STORE_UNAVAILABLE"):
    """The store does not answer (down, hung, loading, or too many connections)."""


class StoreDenied(StoreUnavailable, code="STORE_DENIED"):
    """The store runs, and does not let this user in: the user or password is wrong, or missing."""


class StoreReadOnly(StoreError, code="STORE_READ_ONLY"):
    """The store is a replica, or refuses writes because it cannot persist them."""


class StoreFull(StoreError, code="STORE_FULL"):
    """The store is at its memory limit; draining goes on, accepting does not."""


class StoreNotDurable(StoreError, code="STORE_NOT_DURABLE"):
    """The store can lose data silently (eviction or no persistence) and `durability` is strict."""


class StoreUnsupported(StoreError, code="STORE_UNSUPPORTED"):
    """The store is a cluster, or older than Redis 7.0 and Valkey 7.2."""


class ConfigChanged(StoreError, code="CONFIG_CHANGED"):
    """The store's settings are not those that this client joined; it joins anew and repeats."""


class ForeignKey(StoreError, code="FOREIGN_KEY"):
    """A key under our prefix has a value of a type that is not ours; the message names it."""


class CorruptRecord(StoreError, code="CORRUPT_RECORD"):
    """What the store holds as a task's data is no JSON object; see `Quarantine`."""


class CorruptReply(StoreError, code="CORRUPT_REPLY"):
    """A script answered what its verb cannot read: a foreign key under our prefix, or a bug."""


class ClockRefused(FairlaneError, code="CLOCK_REFUSED"):
    """A caller sent a clock of its own to a store without the virtual-clock mark."""


class Defer(Exception):
    """Raise in a handler: not now. The task waits with backoff; past `max_defers` it is dead."""


class Fail(Exception):
    """Raise in a handler: never. The task ends as `failed`, without another attempt."""
