"""A producer that goes on sending while a fault is injected, as a careful caller does.

The rule: a task has its id before it is sent, and one that was not accepted is sent again under the
same id until it is. What was told to the caller is kept: receipts and errors.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from types import TracebackType
from typing import Final, Self

from fairlane import Client, Refused
from fairlane.errors import FairlaneError, StoreError
from fairlane.ids import new_task_id
from support.eventually import eventually
from support.stage import Stage
from support.store import mac


class Producer:
    """Sends tasks that do a deed, one after the other, from a thread of its own."""

    def __init__(
        self,
        stage: Stage,
        *,
        every_s: float = 0.02,
        store_url: str = "",
        deed: str = "note",
        min_replicas: int = 0,
    ) -> None:
        settings = stage.system.settings
        self._client = Client(
            replace(settings, store_url=store_url or settings.store_url, min_replicas=min_replicas)
        )
        self._data = {"do": deed, "notes": str(stage.system.notes)}
        self._every_s = every_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        #: The ids of what was accepted.
        self.receipts: Final[list[str]] = []
        #: The errors that were told, by code, and whatever else was raised.
        self.errors: Final[Counter[str]] = Counter()
        self.raised: Final[list[BaseException]] = []

    def goes_on(self, count: int = 5, timeout_s: float = 60.0) -> None:
        """Wait until some more tasks were accepted."""
        before = len(self.receipts)
        eventually(lambda: self.raised or len(self.receipts) >= before + count, timeout_s)
        assert not self.raised, self.raised

    def is_told(self, code: str, timeout_s: float = 60.0) -> None:
        """Wait until a call was answered with an error."""
        before = self.errors[code]
        eventually(lambda: self.errors[code] > before, timeout_s)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._thread.join(30.0)
        self._client.close()
        if error is None:
            assert not self._thread.is_alive(), "a call hangs"
            assert not self.raised, self.raised

    def _run(self) -> None:
        try:
            at = 0
            while not self._stopped.wait(self._every_s):
                self._send(new_task_id(), at)
                at += 1
        except BaseException as error:  # noqa: BLE001 - the test tells it
            self.raised.append(error)

    def _send(self, task_id: str, at: int) -> None:
        while True:
            try:
                self._client.enqueue(mac(at % 7), "text", self._data, task_id=task_id)
            except (StoreError, Refused) as error:
                # The janitor's refusal and the server's own error are one answer to a caller.
                is_full = isinstance(error, Refused) and error.refusal.reason == "store_full"
                self.errors["STORE_FULL" if is_full else error.code] += 1
                if self._stopped.wait(0.1):
                    return
            except FairlaneError:
                raise
            else:
                self.receipts.append(task_id)
                return
