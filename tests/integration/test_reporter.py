"""What a worker's report says, whatever else stands in the store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fairlane import Client, Settings
from fairlane.services.load import gpus
from fairlane.services.reporter import Reporter
from fairlane.verbs import Heartbeat, InspectWorkers

OCR, TEXT = "sensitive.ocr", "sensitive.text"


@pytest.fixture
def client(store_url: str) -> Iterator[Client]:
    settings = Settings(store_url=store_url, preset="seed", pause_percent=100, resume_percent=100)
    with Client(settings) as client:
        client.ping()
        yield client


def reporter(client: Client, *queues: str) -> Reporter:
    return Reporter(client, "here:7:nonce", queues=queues, slots=2, active=lambda: [("a", 1)])


def test_a_lane_that_only_a_gpu_keeps_away_is_told(client: Client) -> None:
    reporter(client, OCR, TEXT).step()
    (worker,) = client.run(InspectWorkers())
    assert (worker.lanes, worker.reason) == ((("main",), "") if gpus() else ((), "main: no GPU"))


def test_a_worker_of_half_a_lane_says_nothing_of_it(client: Client) -> None:
    reporter(client, TEXT).step()
    (worker,) = client.run(InspectWorkers())
    assert (worker.lanes, worker.reason) == ((), "")


def test_a_row_of_another_program_does_not_stop_the_reports(client: Client) -> None:
    client.run(Heartbeat("foreign", [], 0))
    reporter(client, TEXT).step()
    assert {worker.worker_id for worker in client.run(InspectWorkers())} == {
        "foreign", "here:7:nonce",
    }  # fmt: skip
