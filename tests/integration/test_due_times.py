"""The dispatcher sleeps until the next due time: on a virtual clock, to the millisecond."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from fairlane import Client
from fairlane.model import Leased
from fairlane.services.dispatcher import Dispatcher
from fairlane.verbs import Configure, Fail, Heartbeat
from support.store import LANE, START_MS, Clock, Store, mac


class Sleeper(Client):
    """A client whose sleep is the passing of the virtual clock; nobody rings."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.settings, clock=store.clock)
        self.time: Clock = store.clock
        self.slept: list[float] = []

    def wait(self, timeout_s: float) -> bool:
        """Let the time pass."""
        self.slept.append(timeout_s)
        self.time.advance(round(timeout_s * 1000))
        return False

    def published(self, rounds: int) -> list[tuple[int, str]]:
        """Dispatch so many rounds; return when each task was published, and which."""
        seen: list[tuple[int, str]] = []

        def publish(tasks: Sequence[Leased]) -> None:
            seen.extend((self.time.now_ms - START_MS, task.task_id) for task in tasks)

        dispatcher = Dispatcher(self, publish, "me")
        for _ in range(rounds):
            dispatcher.step()
        return seen


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    store = Store(store_url, retry_backoff_base_ms=250, defer_jitter_percent=0)
    yield store
    store.close()


@pytest.fixture
def sleeper(store: Store) -> Iterator[Sleeper]:
    with Sleeper(store) as sleeper:
        sleeper.run(Heartbeat("host:1:a", [LANE], 5))
        yield sleeper


def test_a_retried_task_is_published_when_it_is_due(store: Store, sleeper: Sleeper) -> None:
    (task_id,) = store.enqueue(1)
    (leased,) = store.claim()
    store.start(leased)
    store.run(Fail(task_id, leased.attempt, "boom"))
    assert sleeper.published(3) == [(250, task_id)]


def test_a_device_is_served_when_it_has_a_token(store: Store, sleeper: Sleeper) -> None:
    store.run(Configure(mac(1), rate_per_s=2.0))
    first, second, third, fourth = store.enqueue(1, 4)
    at_once, later = [(0, first), (0, second)], [(500, third), (1_000, fourth)]
    assert sleeper.published(6) == at_once + later


def test_without_a_due_time_it_sleeps_a_second(sleeper: Sleeper) -> None:
    assert sleeper.published(3) == []
    assert sleeper.slept == [1.0, 1.0]
