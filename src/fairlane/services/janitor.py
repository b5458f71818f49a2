"""The janitor: takes back what ended on its own, and keeps the system's level published.

The rule: nothing it does is needed twice and nothing is missed if it comes late; any number of
janitors may run at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from fairlane.client import Client
from fairlane.errors import FairlaneError, StoreUnavailable
from fairlane.model import Swept
from fairlane.model import Watermark as Level
from fairlane.services.filekeeper import delete_files
from fairlane.verbs import Purge, RecordMinute, Sweep, Watermark

log = logging.getLogger("fairlane.janitor")

#: What a script may take at a time: some milliseconds, with a million devices too.
_SWEPT = 50
#: A store is taken for full no longer than this after the last look at it.
_MEASURE_LASTS_MS = 30_000
#: More than this in one go is left to the next step, so that a step ends.
_MAX_ROUNDS = 400


class Janitor:
    """Sweeps at every step; purges and publishes the level when their time has come."""

    def __init__(self, client: Client) -> None:
        settings = client.settings
        self._client = client
        self.every_s = settings.sweep_every_ms / 1000
        self._purge_every = max(1, settings.purge_every_ms // settings.sweep_every_ms)
        self._publish_every = max(1, settings.watermark_every_ms // settings.sweep_every_ms)
        self._steps = 0

    def step(self) -> None:
        """Take back what is due, and every so often purge and publish.

        What fails keeps nothing else from being done; the first that failed is raised at the end.
        """
        due: list[Callable[[Client], object]] = [sweep]
        if self._steps % self._purge_every == 0:
            due += [purge, delete_files]
        if self._steps % self._publish_every == 0:
            due.append(publish)
        self._steps += 1
        failed: FairlaneError | None = None
        for chore in due:
            try:
                chore(self._client)
            except StoreUnavailable:
                raise
            except FairlaneError as error:
                failed = failed or error
        if failed is not None:
            raise failed


def publish(client: Client) -> Level:
    """Publish the watermark and return it; record the minute for the history, once."""
    level = client.run(Watermark())
    client.run(RecordMinute())
    return level


def sweep(client: Client) -> int:
    """Take back lost leases, ended backoffs and delays, dead turns and silent workers; log them.

    First of all, notice a store that came back empty or older, and how full it is.
    """
    client.check_epoch(is_sweep=True)
    client.measure(max(_MEASURE_LASTS_MS, 3 * client.settings.sweep_every_ms))
    taken = 0
    for _ in range(_MAX_ROUNDS):
        swept = client.run(Sweep(_SWEPT))
        _log(swept)
        count = len(swept.lost) + swept.backoffs + swept.delays + swept.turns + len(swept.workers)
        taken += count
        if count + swept.receipts < _SWEPT:
            break
    return taken


def purge(client: Client) -> int:
    """End every task that is past its TTL, and log their ids."""
    ended = 0
    for _ in range(_MAX_ROUNDS):
        expired = client.run(Purge())
        for task_id in expired:
            log.warning("task %s expired after its TTL", task_id)
        ended += len(expired)
        if not expired:
            break
    return ended


def _log(swept: Swept) -> None:
    for attempt in swept.lost:
        log.warning("lease of %s was lost; its task waits again", attempt)
    for task_id in swept.dead:
        log.error("task %s is dead: too many of its starts were lost", task_id)
    for worker in swept.workers:
        log.warning("worker %s is gone: no report for its TTL", worker)
