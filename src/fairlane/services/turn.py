"""A device's turn in the document's flow (section 3.2): a batch, popped one by one under its lock.

The rule: whoever holds the turn's token works; whoever lost it stops without a trace. The turn is
released whatever happens.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from fairlane.client import Client
from fairlane.errors import TurnLost
from fairlane.model import Leased, Released
from fairlane.services.dispatcher import defer_device, log_expired
from fairlane.verbs import InspectWorkers, Pop, Release, Renew

log = logging.getLogger("fairlane.turn")

#: Each pop ends up to 64 expired tasks; what is left after these waits for the purge.
_MAX_POPS = 100


def take_turn(
    client: Client,
    mac: str,
    token: str,
    *,
    lane: str,
    holder: str,
    submit: Callable[[Leased], None],
    pressure: Callable[[], str],
) -> Released | None:
    """Submit up to a batch of the device's tasks, and end its turn.

    `pressure` says why this host should take no more now, or nothing (the document's worker-side
    backpressure). None when the turn was lost: another one serves the device.
    """
    try:
        batch = client.run(Renew(mac, lane, token)).batch
    except TurnLost as lost:
        log.info("%s", lost)
        return None
    try:
        for _ in range(batch):
            reason = pressure()
            if reason:
                log.info("turn of %s ends early: %s", mac, reason)
                break
            client.run(Renew(mac, lane, token))
            task = _pop(client, Pop(mac, lane, token, holder))
            if task is None or not _submit(client, task, submit):
                break
    except TurnLost as lost:
        log.warning("%s", lost)
        return None
    finally:
        released = _release(client, mac, lane, token)
    return released


def _pop(client: Client, pop: Pop) -> Leased | None:
    """Lease the next task; a pop may find nothing but expired ones, and is then repeated."""
    for _ in range(_MAX_POPS):
        claimed = client.run(pop)
        log_expired(claimed)
        if claimed.leased or not claimed.expired:
            return next(iter(claimed.leased), None)
    return None


def _submit(client: Client, task: Leased, submit: Callable[[Leased], None]) -> bool:
    """Hand a task to Celery, or defer its device when only a GPU could run it and there is none."""
    kind = client.settings.task_type(task.task_type)
    if kind is not None and kind.requires == "gpu" and not _has_gpu(client):
        defer_device(client, task, "no worker with a GPU")
        return False
    submit(task)
    return True


def _has_gpu(client: Client) -> bool:
    return any(worker.gpu and worker.slots > 0 for worker in client.run(InspectWorkers()))


def _release(client: Client, mac: str, lane: str, token: str) -> Released | None:
    try:
        return client.run(Release(mac, lane, token))
    except TurnLost:
        return None
