"""One task's life: started, ended, put off, given up, read; and the keepers of all of them.

The rule: `(task_id, attempt)` is the fence. An attempt that is not the current one changes nothing,
and what a verb answers the second time is what the first time did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from fairlane.errors import CorruptRecord, InvalidData
from fairlane.ids import checked_task_id
from fairlane.model import Outcome, Started, Swept, Task, TaskRecord, TaskState
from fairlane.payload import decode, encode
from fairlane.settings import Settings
from fairlane.verbs.bounds import checked_attempt, checked_flag, checked_limit
from fairlane.verbs.verb import Arg, Verb, pairs, storable, text, texts

MAX_ERROR_CHARS: Final = 16_384


@dataclass(frozen=True)
class Start(Verb[Started]):
    """Begin to run a leased task; only its current attempt may, once.

    `run_id` is this run's own nonce, so a re-send is told from a second delivery. Raises
    TaskNotFound, TaskEnded, StaleAttempt, and CorruptRecord when it runs now, but its data cannot
    be read: whoever started it gives it up (`Quarantine`).
    """

    task_id: str
    attempt: int
    worker: str
    run_id: str
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return id, attempt, worker, run."""
        worker, run_id = storable(self.worker), storable(self.run_id)
        return (checked_task_id(self.task_id), checked_attempt(self.attempt), worker, run_id)

    def decode(self, reply: Any) -> Started:
        """Return the task with its data."""
        kind, mac, created_at, payload, deadline, *trace = reply
        try:
            data = decode(payload or b"nothing")
        except (ValueError, RecursionError) as error:
            kept = f"its {len(payload or b'')} bytes are kept"
            raise CorruptRecord(
                f"task_id: the data of {self.task_id} cannot be read ({error}); {kept}"
            ) from error
        task = Task(self.task_id, text(kind), text(mac), int(created_at), self.attempt, data)
        return Started(task, int(deadline), text(trace[0]) if trace else "")


@dataclass(frozen=True)
class Finish(Verb[bool]):
    """End a running task as done, with its result.

    False when this attempt had ended it already. Raises InvalidData, PayloadTooLarge,
    TaskNotFound, TaskEnded, StaleAttempt.
    """

    task_id: str
    attempt: int
    result: Mapping[str, Any] | None = None
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return id, attempt, encoded result."""
        result = self.result
        encoded = b"" if result is None else encode("result", result, settings.max_result_bytes)
        return (checked_task_id(self.task_id), checked_attempt(self.attempt), encoded)

    def decode(self, reply: Any) -> bool:
        """Return whether this call ended it."""
        return bool(int(reply))


@dataclass(frozen=True)
class Fail(Verb[Outcome]):
    """Record that a running task's attempt failed: it is retried, failed or dead.

    `final` ends it as failed, with no other attempt. `error` is cut to 16,384 characters, its end
    kept. Raises TaskNotFound, TaskEnded, StaleAttempt.
    """

    task_id: str
    attempt: int
    cause: str
    error: str = ""
    final: bool = False
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return id, attempt, cause, error, 1 if final."""
        error = storable(self.error, MAX_ERROR_CHARS)
        return (
            checked_task_id(self.task_id),
            checked_attempt(self.attempt),
            storable(self.cause),
            error,
            checked_flag("final", self.final),
        )

    def decode(self, reply: Any) -> Outcome:
        """Return where the task is now."""
        return Outcome(TaskState(text(reply[0])), int(reply[1]))


@dataclass(frozen=True)
class Quarantine(Verb[bool]):
    """Give up a running task whose data cannot be read: it is dead with cause corrupt.

    False when this attempt was given up already. Raises TaskNotFound, TaskEnded, StaleAttempt.
    """

    task_id: str
    attempt: int
    error: str = ""
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return id, attempt, error."""
        error = storable(self.error, MAX_ERROR_CHARS)
        return (checked_task_id(self.task_id), checked_attempt(self.attempt), error)

    def decode(self, reply: Any) -> bool:
        """Return whether this call gave it up."""
        return bool(int(reply))


@dataclass(frozen=True)
class Defer(Verb[Outcome]):
    """Put a leased or running task back to wait, with backoff; past max_defers it is dead.

    `scope` is `task` (its device's others go on) or `device` (the whole device backs off, spec
    3.4). Raises InvalidData, TaskNotFound, TaskEnded, StaleAttempt.
    """

    task_id: str
    attempt: int
    reason: str = ""
    scope: Literal["task", "device"] = "task"
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return id, attempt, reason, scope."""
        if self.scope not in ("task", "device"):
            raise InvalidData(f"scope: {self.scope!r}; write task or device")
        reason = storable(self.reason, MAX_ERROR_CHARS)
        return (checked_task_id(self.task_id), checked_attempt(self.attempt), reason, self.scope)

    def decode(self, reply: Any) -> Outcome:
        """Return where the task is now, and how often it was deferred."""
        return Outcome(TaskState(text(reply[0])), int(reply[1]), int(reply[2]))


@dataclass(frozen=True)
class Cancel(Verb[bool]):
    """Cancel a task that has not ended; one that runs only with `force`.

    False when it was cancelled already. A forced cancel lets the run go on, but its result is
    refused. Raises TaskNotFound, TaskRunning, TaskEnded.
    """

    task_id: str
    force: bool = False
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return id, 1 to force."""
        return (checked_task_id(self.task_id), checked_flag("force", self.force))

    def decode(self, reply: Any) -> bool:
        """Return whether this call cancelled it."""
        return bool(int(reply))


@dataclass(frozen=True)
class Purge(Verb[tuple[str, ...]]):
    """End up to `limit` pending or delayed tasks that are past their TTL.

    Run it until it returns none: it looks up at most four tasks in the middle of queues a time.
    Raises InvalidData for a limit outside 1 to 1,000.
    """

    limit: int = 50
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return the limit."""
        return (checked_limit(self.limit),)

    def decode(self, reply: Any) -> tuple[str, ...]:
        """Return the expired ids."""
        return texts(reply)


@dataclass(frozen=True)
class Sweep(Verb[Swept]):
    """Take back what ended on its own: lost leases, backoffs, delays, dead turns and workers.

    At most `limit` of these in all. Raises InvalidData for a limit outside 1 to 1,000.
    """

    limit: int = 50
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return the limit."""
        return (checked_limit(self.limit),)

    def decode(self, reply: Any) -> Swept:
        """Return what was taken back."""
        lost, dead, backoffs, delays, turns, workers, receipts = reply
        counts = (int(backoffs), int(delays), int(turns))
        return Swept(texts(lost), texts(dead), *counts, texts(workers), int(receipts))


@dataclass(frozen=True)
class InspectTask(Verb[TaskRecord]):
    """Read a task: its state, times, attempts, result or cause, and its place in the queue.

    O(place) for a queued task. Raises TaskNotFound, InvalidTaskId.
    """

    task_id: str
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return the id."""
        return (checked_task_id(self.task_id),)

    def decode(self, reply: Any) -> TaskRecord:
        """Return the record."""
        return record_of(self.task_id, dict(pairs(reply[2])), place=int(reply[1]))


def record_of(task_id: str, fields: Mapping[str, bytes], *, place: int = -1) -> TaskRecord:
    """Return a stored record as a value."""

    def number(name: str) -> int:
        # What another program spoilt must not hide the rest, nor its neighbours in a list.
        digits = fields.get(name, b"")
        return int(digits) if digits.isdigit() and len(digits) < 20 else 0

    def words(name: str) -> str:
        return fields.get(name, b"").decode(errors="replace")

    return TaskRecord(
        task_id=task_id,
        state=TaskState(words("state")),
        task_type=words("task_type"),
        mac=words("mac"),
        lane=words("lane"),
        created_at_ms=number("created_at"),
        expires_at_ms=number("expires_at"),
        attempt=number("attempt"),
        failures=number("failures"),
        defers=number("defers"),
        place=place,
        payload=fields.get("payload", b""),
        claimed_at_ms=number("claimed_at"),
        started_at_ms=number("started_at"),
        ended_at_ms=number("ended_at"),
        due_at_ms=number("due_at"),
        worker=words("worker"),
        cause=words("cause"),
        error=words("error"),
        result=fields.get("result", b""),
    )
