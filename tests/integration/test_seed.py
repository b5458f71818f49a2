"""The document's own flow: dispatch claims a device, process submits its batch, execute runs it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

import pytest

from fairlane.celery.app import make_app
from fairlane.celery.beat import DISPATCH as DISPATCH_TASK
from fairlane.celery.beat import WATERMARK
from fairlane.model import TaskState
from fairlane.verbs import ReadWatermark
from support.eventually import eventually
from support.servers import KINDS
from support.store import mac
from support.system import DISPATCH, TEXT, System, running

STARVED_AFTER_MS = 1_500


@pytest.fixture(scope="module", params=list(KINDS))
def system(request: pytest.FixtureRequest) -> Iterator[System]:
    with running(
        request.param, preset="seed", starvation_after_ms=STARVED_AFTER_MS, lease_ms=5_000,
        heartbeat_every_ms=1_000,
    ) as system:  # fmt: skip
        system.worker("worker", TEXT, DISPATCH, slots=3)
        yield system


@pytest.fixture(scope="module")
def send(system: System) -> Iterator[Callable[[str], None]]:
    """Give `send(name)`, which sends a task to the dispatch queue as Beat does."""
    app = make_app(system.settings)
    yield lambda name: app.send_task(name, queue=DISPATCH)
    app.pool.force_close_all()
    app.fairlane.client.close()


@pytest.fixture
def turns(system: System) -> Callable[[], list[tuple[str, str]]]:
    """Give `turns()`: what happened to turns since the test began, as (event, mac)."""
    before = len(system.events("turn_opened", "turn_ended"))
    return lambda: [
        (event.event, event.mac) for event in system.events("turn_opened", "turn_ended")[before:]
    ]


def test_one_dispatch_serves_one_device(
    system: System, send: Callable[[str], None], turns: Callable[[], list[tuple[str, str]]]
) -> None:
    mine = [system.do(mac(1)) for _ in range(3)]
    others = [system.do(mac(2)) for _ in range(3)]
    send(DISPATCH_TASK)
    assert {record.state for record in system.ended(mine)} == {TaskState.DONE}
    # The queue is in order: once a later message was run, no dispatch waits in it.
    send(WATERMARK)
    eventually(lambda: system.client.run(ReadWatermark()))
    assert turns() == [("turn_opened", mac(1)), ("turn_ended", mac(1))]
    assert {record.state for record in system.records(others)} == {TaskState.PENDING}
    send(DISPATCH_TASK)
    assert {record.state for record in system.ended(others)} == {TaskState.DONE}
    system.at_rest()


def test_dispatch_goes_on_while_another_device_is_starved(
    system: System, send: Callable[[str], None], turns: Callable[[], list[tuple[str, str]]]
) -> None:
    tasks = [system.do(mac(number)) for number in (1, 2, 3)]
    eventually(lambda: system.client.device(mac(3)).waited_ms > STARVED_AFTER_MS)
    send(DISPATCH_TASK)
    assert {record.state for record in system.ended(tasks)} == {TaskState.DONE}
    system.at_rest()
    assert len(turns()) == 6


def test_dispatches_at_once_never_meet_on_a_device(
    system: System, send: Callable[[str], None], turns: Callable[[], list[tuple[str, str]]]
) -> None:
    tasks = [system.do(mac(number % 4)) for number in range(60)]

    def all_done_after_another_burst() -> bool:
        for _ in range(4):
            send(DISPATCH_TASK)
        return {record.state for record in system.records(tasks)} == {TaskState.DONE}

    eventually(all_done_after_another_burst, every_s=0.1)
    system.at_rest()
    by_device = defaultdict(list)
    for event, device in turns():
        by_device[device].append(event)
    assert set(by_device) == {mac(number) for number in range(4)}
    for told in by_device.values():
        assert told == ["turn_opened", "turn_ended"] * (len(told) // 2)


def test_a_task_that_needs_a_gpu_lets_its_device_back_off(
    system: System, send: Callable[[str], None]
) -> None:
    text, image = system.do(mac(1)), system.do(mac(1), task_type="ocr")
    send(DISPATCH_TASK)
    eventually(lambda: system.client.task(image).defers == 1)
    (deferred,) = system.events("deferred")
    (lane,) = system.client.device(mac(1)).lanes
    assert lane.held_by == "backoff"
    assert lane.until_ms - deferred.at_ms == pytest.approx(30_000, abs=50)
    assert {record.state for record in system.records([text, image])} == {TaskState.PENDING}
    eventually(lambda: not system.redis.exists(system.client.keys.device("ACTIVE", mac(1), "main")))
    system.check()
