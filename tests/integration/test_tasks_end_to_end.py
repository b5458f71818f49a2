"""The default preset: what devices send is done by real workers, and all of it is accounted for."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from fairlane import samples
from fairlane.detect.text import text
from fairlane.model import Task, TaskState
from fairlane.payload import decode
from support.servers import KINDS
from support.store import mac
from support.system import DISPATCH, FAIRLANE, OCR, TEXT, System, running

DEVICES = 5
EACH = 20


@pytest.fixture(scope="module", params=list(KINDS))
def system(request: pytest.FixtureRequest) -> Iterator[System]:
    with running(request.param) as system:
        yield system


def test_every_text_is_checked_once_and_the_books_balance(system: System) -> None:
    worker = system.worker("worker", TEXT, OCR, DISPATCH, app=FAIRLANE)
    assert {lane.name: lane.slots for lane in map(system.lane, ("text", "ocr"))} == {
        "text": 2,
        "ocr": 2,
    }
    (row,) = system.workers()
    assert (row.lanes, row.slots, row.reason) == (("ocr", "text"), 2, "")
    assert int(row.report["pid"]) == worker.pid

    texts = samples.texts()
    sent = {}
    for number in range(DEVICES * EACH):
        said = texts[number % len(texts)]
        device = mac(number % DEVICES)
        sent[system.client.enqueue(device, "text", {"text": said}).task_id] = (device, said)

    for record in system.ended(list(sent)):
        device, said = sent[record.task_id]
        assert (record.state, record.mac, record.failures) == (TaskState.DONE, device, 0)
        expected = text(Task(record.task_id, "text", device, 0, 1, {"text": said}))
        assert decode(record.result) == expected
        assert record.worker == row.worker_id
    system.at_rest()
    for kind in ("accepted", "claimed", "started", "done"):
        told = [name for event in system.events(kind) for name in event.tasks]
        assert sorted(name.partition(".")[0] for name in told) == sorted(sent), kind
    assert all(not device for device in system.client.devices())

    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert not system.workers(), "a worker that stops takes its row along"
    assert system.lane().slots == 0
