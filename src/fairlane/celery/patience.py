"""How a worker waits for its broker: by trying again every second or two, without end.

The rule: a broker that is back is found in seconds. Celery's own pauses grow to half a minute, and
none of its settings says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kombu
from celery.app.amqp import AMQP

_FIRST_S = 0.5
_STEP_S = 0.5
_LONGEST_S = 2.0


class PatientConnection(kombu.Connection):  # type: ignore[misc]
    """A connection to the broker that is made soon after the broker is back."""

    def ensure_connection(
        self,
        errback: Callable[..., Any] | None = None,
        max_retries: int | None = None,
        interval_start: float = _FIRST_S,
        interval_step: float = _STEP_S,
        interval_max: float = _LONGEST_S,
        **options: Any,
    ) -> PatientConnection:
        """Connect, as often as it takes, and return this connection."""
        self._ensure_connection(
            errback, max_retries, interval_start, interval_step, interval_max, **options
        )
        return self


class PatientAMQP(AMQP):  # type: ignore[misc]
    """What Celery makes its connections by."""

    Connection = BrokerConnection = PatientConnection
