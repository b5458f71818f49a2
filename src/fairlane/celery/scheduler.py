"""Beat's scheduler: what nobody takes is not sent again and again.

A broker that is away is told once, and not with a stack for each entry that falls due.

The rule: the dispatch queue never holds more than a few of Beat's messages. They expire, but a
broker keeps an expired message until a worker looks at it, and without a worker none does.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from celery.beat import Scheduler, SchedulingError
from kombu.exceptions import ChannelError

from fairlane.celery.beat import DISPATCH_QUEUE

log = logging.getLogger("fairlane.beat")

#: Enough for a worker that is away for a moment; each is a step that needs to be done once.
MOST_WAITING: Final = 16


class BoundedScheduler(Scheduler):  # type: ignore[misc]
    """Celery's scheduler in memory, which holds back while messages wait."""

    _holds_back = False
    #: What kept the last message from the broker.
    _trouble = ""

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        """Send a due entry, unless as many messages wait as may."""
        waiting = self._waiting()
        holds_back = waiting >= MOST_WAITING
        if holds_back != self._holds_back:
            self._holds_back = holds_back
            if holds_back:
                log.warning(
                    "beat: %d messages wait in %s and no worker takes them; start one on that "
                    "queue (`fairlane worker --queues %s`); nothing is sent meanwhile",
                    waiting, DISPATCH_QUEUE, DISPATCH_QUEUE,
                )  # fmt: skip
            else:
                log.warning("beat: %s is taken from again; sending goes on", DISPATCH_QUEUE)
        if not holds_back:
            self._send(entry, producer)

    def _send(self, entry: Any, producer: Any) -> None:
        trouble = ""
        log.info("Scheduler: Sending due task %s (%s)", entry.name, entry.task)
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except SchedulingError as error:
            trouble = type(error.__context__ or error).__name__
            if trouble != self._trouble:
                log.warning("beat: %s; it is tried again with each entry that is due", error)
        if self._trouble and not trouble:
            log.warning("beat: the broker takes messages again")
        self._trouble = trouble

    def _waiting(self) -> int:
        """Return how many messages wait for a worker, 0 when the broker does not say."""
        queue = self.app.amqp.queues[DISPATCH_QUEUE]
        channel = self.producer.channel
        if channel is None or channel.connection is None:
            # The last message failed and took its channel along; the next one opens another.
            return 0
        try:
            told = channel.queue_declare(
                queue=queue.name,
                durable=queue.durable,
                exclusive=queue.exclusive,
                auto_delete=queue.auto_delete,
                arguments=queue.queue_arguments,
            )
        except (OSError, ChannelError, *self.connection.connection_errors) as error:
            # Sending it will fail likewise, and tell.
            log.info("beat: the broker does not say what waits: %s", error)
            return 0
        return int(told.message_count or 0)
