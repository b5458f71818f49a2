"""The dispatcher: hands out just what workers can take, whoever is owed most first.

The rule: late binding. Whatever waits in a broker's queue is beyond fairness, so a task is leased
only when a lane has a credit for it, and published at once, all of a round in one batch.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from fairlane.client import Client
from fairlane.errors import FairlaneError, StoreUnavailable
from fairlane.faults import fault
from fairlane.model import Claimed, Leased
from fairlane.services.janitor import Janitor
from fairlane.tracing import span
from fairlane.verbs import Claim, Defer, InspectLanes, Lead

Publish = Callable[[Sequence[Leased]], None]

log = logging.getLogger("fairlane.dispatcher")

_IDLE_S = 1.0
#: A due time that has come, and brought nothing, must not make the loop spin.
_SOON_S = 0.001
#: Between two rounds: each has a price beside that of its tasks, and the headroom bridges it. A
#: sleep costs a tenth of an event's wait.
_ROUND_S = 0.005
_LEAD_S = 9.0
_FOREVER_S = 1e9


class Dispatcher:
    """Claims for every lane, publishes, and sleeps until the doorbell or the next due time."""

    every_s = 0.0

    def __init__(self, client: Client, publish: Publish, holder: str) -> None:
        self._client = client
        self._publish = publish
        self._holder = holder
        self._rounds = 0
        self._is_idle = False
        self._idle_s = _IDLE_S

    def step(self) -> None:
        """Hand out one round, after a pause.

        After an empty one, first sleep until the doorbell or the next due time, a second at most.
        """
        if self._is_idle:
            self._client.wait(self._idle_s)
        else:
            time.sleep(_ROUND_S)
        self._is_idle = self.dispatch() == 0

    def dispatch(self) -> int:
        """Lease what every lane has credits for and publish it; return how many tasks that were.

        A task whose publication fails keeps its lease and is published again when that has passed.
        """
        lanes = self._client.settings.lanes
        self._rounds += 1
        first = self._rounds % len(lanes)
        claims = [Claim(lane, holder=self._holder) for lane in lanes[first:] + lanes[:first]]
        leased: list[Leased] = []
        self._idle_s = _IDLE_S
        failed: FairlaneError | None = None
        fault("dispatcher.before_claim")
        for claimed in self._client.run_many(claims):
            if isinstance(claimed, FairlaneError):
                failed = claimed
                continue
            log_expired(claimed)
            leased += claimed.leased
            if claimed.next_due_ms:
                due_s = (claimed.next_due_ms - claimed.now_ms) / 1000
                self._idle_s = min(self._idle_s, max(_SOON_S, due_s))
        if leased:
            fault("dispatcher.after_claim")
            with span("publish", kind="PRODUCER", tasks=len(leased)):
                self._publish(leased)
            fault("dispatcher.after_publish")
        if failed is not None:
            # Only now: what the other lanes leased must not wait for a lease to pass.
            raise failed
        if not leased and self._client.settings.on_no_capacity == "defer":
            self._defer_without_workers()
        return len(leased)

    def _defer_without_workers(self) -> None:
        """Let a lane without any worker back its devices off, one task at a time (spec 3.4)."""
        for lane in self._client.run(InspectLanes()):
            if lane.slots == 0 and lane.scheduled > 0:
                for task in self._client.run(Claim(lane.name, 1, self._holder)).leased:
                    defer_device(self._client, task, "no worker in the lane")


def defer_device(client: Client, task: Leased, reason: str) -> None:
    """Put a leased task back and let its device back off, and say so."""
    outcome = client.run(Defer(task.task_id, task.attempt, reason, "device"))
    if outcome.state == "dead":
        log.error("task %s of %s is dead after %d defers: %s", task.task_id, task.mac,
                  outcome.defers, reason)  # fmt: skip
    else:
        log.info(
            "task %s of %s is deferred (%d): %s", task.task_id, task.mac, outcome.defers, reason
        )


def log_expired(claimed: Claimed) -> None:
    """Say which tasks a claim found to be past their TTL."""
    for task_id in claimed.expired:
        log.warning("task %s expired before its turn", task_id)


class LedDispatcher:
    """A dispatcher and a janitor that work while they lead, and else stand by.

    Any number may run, in workers or on their own: one leads, and when it dies the next one takes
    over after the lease. Two at once would be safe, only wasteful.
    """

    def __init__(
        self, client: Client, dispatcher: Dispatcher, janitor: Janitor, holder: str
    ) -> None:
        self.every_s = 0.0
        self._client = client
        self._dispatcher = dispatcher
        self._janitor = janitor
        self._holder = holder
        self._asked_at = self._swept_at = -_FOREVER_S
        self._leads = False

    def step(self) -> None:
        """Dispatch one round, and sweep when it is time; stand by while another one leads."""
        now = time.monotonic()
        if now - self._asked_at >= _LEAD_S / 3:
            leads = self._client.run(Lead(self._holder, int(_LEAD_S * 1000)))
            if leads != self._leads:
                log.info("%s %s", self._holder, "leads" if leads else "stands by")
            self._asked_at, self._leads = now, leads
        # Standing by is the loop's wait, which a stop ends at once; leading waits at the doorbell.
        self.every_s = 0.0 if self._leads else _IDLE_S
        if not self._leads:
            return
        if now - self._swept_at >= self._janitor.every_s:
            self._swept_at = now
            self._tidy()
        self._dispatcher.step()

    def _tidy(self) -> None:
        """Let the janitor work; what it cannot do keeps no task from being handed out."""
        try:
            self._janitor.step()
        except StoreUnavailable:
            raise
        except FairlaneError as error:
            log.error("the janitor: %s; `fairlane doctor` looks for what is wrong", error)

    @property
    def leads(self) -> bool:
        """Whether it leads now, as far as it knows."""
        return self._leads

    def leave(self) -> None:
        """Give up the lead, so that the next one need not wait for the lease."""
        if self._leads:
            # A lease of 1 ms: the store has no other way to give one back.
            self._client.run(Lead(self._holder, lease_ms=1))
            self._leads = False
