"""The loop around every service."""

from __future__ import annotations

import logging
import os
import signal
from threading import Event
from typing import Protocol

from fairlane.errors import ConfigMismatch, StoreError, UnknownLane

log = logging.getLogger("fairlane.service")


class Service(Protocol):
    """Does what is due now; `every_s` is how long to wait before the next step."""

    every_s: float

    def step(self) -> None:
        """Do what is due now. Raises StoreError when the store cannot do it."""


def run_forever(service: Service, stopped: Event) -> None:
    """Step until `stopped`; a store that is away is waited for, and said once.

    When a lane is gone, which a migration can do in the middle of a step, the next one follows. A
    process that insists on settings that were migrated is told to end (SIGTERM).
    """
    name, away = type(service).__name__.lower(), False
    while not stopped.is_set():
        try:
            service.step()
        except StoreError as error:
            if not away:
                log.warning("%s: %s; trying again every second", name, error)
            away = True
            stopped.wait(1.0)
            continue
        except ConfigMismatch as error:
            # It would take tasks and could do nothing with them: let it end as if it was told to.
            log.error("%s: %s; this process ends", name, error)
            os.kill(os.getpid(), signal.SIGTERM)
            return
        except UnknownLane as error:
            # What was asked went by the lanes before a migration; the next step has the new ones.
            log.warning("%s: %s; going on with the lanes that the store has now", name, error)
            continue
        except Exception:
            # A thread that ends of a bug would stop the whole system without a word.
            log.exception("%s: a step failed; the next one follows", name)
            stopped.wait(1.0)
            continue
        if away:
            log.warning("%s: the store is back", name)
            away = False
        stopped.wait(service.every_s)
