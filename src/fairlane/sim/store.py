"""The real scheduler in a simulation: the scripts, on an embedded store with the virtual clock.

The rule: a store of its own in a private folder, kept in memory only and gone afterwards; it is
driven by the same verbs, in pipelines, through the same client as a real one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from fairlane.client import Client
from fairlane.client.wire import Wire
from fairlane.embedded import Embedded
from fairlane.settings import Settings
from fairlane.sim.clock import VirtualClock
from fairlane.sim.policies import Step
from fairlane.verbs import EnqueueMany, Verb


class SimulatedStore:
    """The store's scripts, each verb at its own virtual time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clock = VirtualClock()
        self._stack = ExitStack()
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        """The client, for a look at the store at the time of the last step."""
        assert self._client is not None, "not entered"
        return self._client

    def run(self, steps: Sequence[Step]) -> list[Any]:
        """Return what each call comes to, in one round trip."""
        self._clock.plan(at_ms for at_ms, _ in steps)
        verbs: list[Verb[Any]] = [
            EnqueueMany(call) if isinstance(call, tuple) else call for _, call in steps
        ]
        return self.client.run_many(verbs)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            folder = stack.enter_context(TemporaryDirectory(prefix="fairlane-sim-"))
            store = stack.enter_context(Embedded(Path(folder), extra={"appendonly": "no"}))
            settings = replace(self._settings, store_url=store.url)
            self._client = stack.enter_context(Client(settings, clock=self._clock))
            # No verb sets the mark: a store in use must never be given one.
            wire = Wire(store.url)
            stack.callback(wire.close)
            wire.send(("SET", self._client.keys.clock, 1))
            self._client.ping()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
