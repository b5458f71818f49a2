"""One attempt of a task, from its message to its recorded end.

The rule: nothing runs that did not start, nothing ends that is not recorded, and the record comes
before the broker's ack. What a handler raises decides how the attempt ends.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Mapping
from typing import Any, Final

from billiard.einfo import ExceptionInfo
from celery import Task as CeleryTask
from celery.exceptions import SoftTimeLimitExceeded, TimeLimitExceeded, WorkerLostError
from celery.worker.request import Request

from fairlane import handlers
from fairlane.celery.publish import attempt_of, publisher
from fairlane.client import Client
from fairlane.errors import (
    Conflict,
    CorruptRecord,
    Defer,
    Fail,
    FairlaneError,
    InvalidInput,
    NotFound,
    StaleAttempt,
    StoreError,
    TaskEnded,
)
from fairlane.faults import fault
from fairlane.ids import new_nonce
from fairlane.logs import bound
from fairlane.model import Leased, Outcome, Task, TaskState
from fairlane.tracing import span, tell
from fairlane.verbs import Defer as DeferVerb
from fairlane.verbs import Fail as FailVerb
from fairlane.verbs import Finish, Quarantine, Start, Verb

log = logging.getLogger("fairlane.attempt")

#: How long an end is offered to a store that is away: until about the lease is lost.
_PATIENCE_S = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0)
#: Of an error, in the log; the task's record keeps more of it.
_MOST_LOGGED = 4_000


def run_attempt(client: Client, worker_id: str, task_id: str, attempt: int) -> str:
    """Start the attempt, run its handler, record its end; return the state of the task after it.

    `not current` when the attempt may not run: its message was delivered twice, or came too late.
    What is logged meanwhile, by the handler too, tells the task and the attempt.
    """
    with bound(task_id=task_id, attempt=attempt):
        return _run(client, worker_id, task_id, attempt)


def _run(client: Client, worker_id: str, task_id: str, attempt: int) -> str:
    fault("worker.before_start")
    try:
        started = client.run(Start(task_id, attempt, worker_id, new_nonce()))
    except CorruptRecord as error:
        return _set_aside(client, task_id, attempt, error)
    except (StaleAttempt, TaskEnded, NotFound) as refused:
        log.info("attempt %s.%s is not run: %s", task_id, attempt, refused)
        return "not current"
    task = started.task
    fault("worker.after_start")
    try:
        with span(
            f"run {task.task_type}", started.traceparent, "CONSUMER",
            task_id=task_id, task_type=task.task_type, attempt=attempt,
        ) as opened:  # fmt: skip
            end = _end_of(client, task)
            cause = end.cause if isinstance(end, FailVerb) else ""
            tell(opened, end=end.SCRIPT, failed=cause)
    except BaseException as error:
        # sys.exit in a handler, or the pool's own way to stop this process: both end the attempt
        # here and now, and the second must go on.
        _record(client, task, _failed(task, error))
        raise
    fault("worker.before_finish")
    try:
        state = _record(client, task, end)
    except SoftTimeLimitExceeded:
        # It came after the handler had ended, and comes once.
        state = _record(client, task, end)
    fault("worker.after_finish")
    return state


def _set_aside(client: Client, task_id: str, attempt: int, error: CorruptRecord) -> str:
    """Give up a task whose data cannot be read; another attempt would read no more of it."""
    log.error("task %s is dead: %s", task_id, error)
    try:
        client.run(Quarantine(task_id, attempt, str(error)))
    except (Conflict, NotFound) as refused:
        log.warning("end of %s.%s is refused: %s", task_id, attempt, refused)
        return "not current"
    return "dead"


def _end_of(client: Client, task: Task) -> Verb[Any]:
    """Run the handler and return the verb that its outcome calls for."""
    task_id, attempt = task.task_id, task.attempt
    try:
        result = handlers.find(task.task_type)(task)
        if result is not None and not isinstance(result, Mapping):
            message = f"a handler returns an object or None, not {type(result).__name__}"
            raise TypeError(message)
        end = Finish(task_id, attempt, result)
        end.args(client.settings)
    except Defer as asked:
        in_turns = client.settings.flow == "turns"
        return DeferVerb(task_id, attempt, _words(asked), "device" if in_turns else "task")
    except Fail as asked:
        return FailVerb(task_id, attempt, "handler", _words(asked), final=True)
    except SoftTimeLimitExceeded:
        return FailVerb(task_id, attempt, "time_limit", traceback.format_exc())
    except Exception as error:  # noqa: BLE001 - whatever a handler raises ends its attempt only
        return _failed(task, error)
    return end


def _failed(task: Task, error: BaseException) -> Verb[Any]:
    try:
        trace = "".join(traceback.format_exception(error))
    except Exception as hidden:  # noqa: BLE001 - an exception of a handler's may be made to hide
        trace = f"{type(error).__name__}, whose traceback raises {type(hidden).__name__}"
    return FailVerb(task.task_id, task.attempt, type(error).__name__, trace)


def _words(asked: Exception) -> str:
    """Return what a handler said; its argument may be anything, one that cannot be told too."""
    try:
        return str(asked)
    except Exception as error:  # noqa: BLE001 - a handler's object may raise what it likes
        return f"{type(asked).__name__} with an argument that raises {type(error).__name__}"


def _record(client: Client, task: Task, end: Verb[Any]) -> str:
    """Record the end, waiting for a store that is away; a refused end is somebody else's task."""
    for pause_s in (*_PATIENCE_S, None):
        try:
            return _said(task, end, client.run(end))
        except StoreError as error:
            log.warning("end of %s.%s: %s", task.task_id, task.attempt, error)
            if pause_s is None:
                raise
            time.sleep(pause_s)
        except InvalidInput as error:
            # A result that was fit to be stored when it was looked at, and is not any more.
            end = _failed(task, error)
        except FairlaneError as refused:
            log.warning("end of %s.%s is refused: %s", task.task_id, task.attempt, refused)
            break
    return "not current"


def _said(task: Task, end: Verb[Any], reply: Any) -> str:
    if not isinstance(reply, Outcome):
        return "done"
    said = end.reason if isinstance(end, DeferVerb) else getattr(end, "error", "")
    level = logging.ERROR if reply.state == "dead" else logging.WARNING
    log.log(level, "task %s of %s is %s after attempt %d: %s", task.task_id, task.mac, reply.state,
            task.attempt, said.rstrip()[-_MOST_LOGGED:])  # fmt: skip
    return str(reply.state)


#: What is called by the same name however it ended.
_CAUSES: Final[Mapping[type[BaseException], str]] = {
    SoftTimeLimitExceeded: "time_limit",
    WorkerLostError: "worker_lost",
}


class AttemptRequest(Request):  # type: ignore[misc]
    """A message in the worker's main process: it sees what the child can no longer report."""

    def on_timeout(self, soft: bool, timeout: float) -> None:
        """Record a hard time limit, whose child was killed."""
        super().on_timeout(soft, timeout)
        if not soft:
            self._report("time_limit", f"still running after {timeout:g} s; its process was ended")

    def on_failure(
        self, exc_info: ExceptionInfo, send_failed_event: bool = True, return_ok: bool = False
    ) -> Any:
        """Record an attempt that did not record its own end.

        Its child died in the middle (a signal, out of memory), or something came between: the store
        was away for too long, the soft limit struck before the start was answered. An attempt whose
        end is recorded refuses this one.
        """
        answer = super().on_failure(exc_info, send_failed_event, return_ok)
        # Billiard wraps what was raised together with its traceback.
        error = getattr(exc_info.exception, "exc", exc_info.exception)
        cause = _CAUSES.get(type(error), type(error).__name__)
        # A hard limit is told by `on_timeout`; a store that is away can be told nothing.
        if not isinstance(error, StoreError | TimeLimitExceeded):
            self._report(cause, str(error) if cause == "worker_lost" else str(exc_info.traceback))
        return answer

    def _report(self, cause: str, detail: str) -> None:
        attempt = attempt_of(self.id)
        if attempt is None:
            return
        client: Client = self.app.fairlane.client
        try:
            outcome = client.run(FailVerb(*attempt, cause, detail))
            log.warning("attempt %s.%s ended by %s: %s", *attempt, cause, outcome.state)
        except StaleAttempt:
            self._send_again(client, *attempt)
        except TaskEnded as ended:
            log.info("attempt %s.%s ended by %s, and before: %s", *attempt, cause, ended)
        except FairlaneError as error:
            # Without a heartbeat the lease is lost, and the sweep does the same a little later.
            log.warning("attempt %s.%s ended by %s: %s", *attempt, cause, error)

    def _send_again(self, client: Client, task_id: str, attempt: int) -> None:
        """Publish an attempt whose message went down with a child before its start.

        A pool hands out messages to a child that is being killed: the next one after a hard limit.
        """
        try:
            task = client.task(task_id)
            if task.state is TaskState.LEASED and task.attempt == attempt:
                publisher(self.app)([Leased(task_id, attempt, task.task_type, task.mac)])
        except Exception as error:  # noqa: BLE001 - the lease ends, and it is published then
            log.warning("attempt %s.%s cannot be sent again yet: %s", task_id, attempt, error)


class AttemptTask(CeleryTask):  # type: ignore[misc]
    """The Celery task of every task type."""

    abstract = True
    # Whatever the application says of its own tasks.
    acks_late = True
    reject_on_worker_lost = False
    ignore_result = True
    Request = AttemptRequest
