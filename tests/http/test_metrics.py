"""The metrics of a store that another program wrote to: a bad value costs its own sample."""

from __future__ import annotations

import logging

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fairlane.http.metrics import log
from support.service import Service, is_problem

MAC = "02:00:00:00:00:01"


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Give what the metrics log."""
    caplog.set_level(logging.WARNING, log.name)
    return caplog


def read(service: Service) -> dict[str, float]:
    """Return every sample that has no label, or is of an outcome."""
    page = service.ask("GET", "/metrics")
    assert page.status_code == 200, page.text
    families = list(text_string_to_metric_families(page.text))
    return {
        sample.labels.get("outcome", "") + sample.name: sample.value
        for family in families
        for sample in family.samples
        if sample.labels.keys() <= {"outcome"}
    }


@pytest.mark.parametrize(
    ("name", "sample"),
    [
        ("accepted", "fairlane_tasks_accepted_total"),
        ("done", "donefairlane_tasks_ended_total"),
        ("lost_leases", "fairlane_leases_lost_total"),
    ],
)
def test_a_spoiled_count_costs_its_own_sample(
    service: Service, said: pytest.LogCaptureFixture, name: str, sample: str
) -> None:
    service.enqueue()
    whole = read(service)
    assert sample in whole
    with service.raw() as raw:
        raw.hset(service.store._session.keys.name("TOTALS"), name, "x")
    left = read(service)
    assert whole.keys() - left.keys() == {sample}
    assert f"'{name}'" in said.text


@pytest.mark.parametrize(
    ("key", "lost", "kept"),
    [
        ("TOTALS", "fairlane_tasks_accepted_total", "fairlane_oldest_wait_seconds"),
        ("WORKERS", "fairlane_workers", "fairlane_tasks_accepted_total"),
        ("META", "fairlane_oldest_wait_seconds", "fairlane_tasks_accepted_total"),
        ("MACS", "fairlane_oldest_wait_seconds", "fairlane_overloaded"),
    ],
)
def test_a_key_of_another_type_costs_what_is_read_of_it(
    service: Service, said: pytest.LogCaptureFixture, key: str, lost: str, kept: str
) -> None:
    service.enqueue(mac=MAC)
    assert "fairlane_oldest_wait_seconds" in read(service)
    name = service.store._session.keys.name(key) + (MAC if key == "META" else "")
    with service.raw() as raw:
        raw.delete(name)
        raw.set(name, "x")
    left = read(service)
    assert lost not in left
    assert kept in left
    assert name in said.text


def test_a_name_that_is_no_text_hides_nothing(service: Service) -> None:
    service.enqueue()
    with service.raw() as raw:
        raw.hset(service.store._session.keys.name("TOTALS"), b"refused_\xff", 3)
    assert read(service)["fairlane_tasks_accepted_total"] == 1


def test_a_store_that_tells_nothing_is_a_503(service: Service) -> None:
    service.enqueue()
    with service.raw() as raw:
        raw.flushdb()
        raw.set(service.store._session.keys.name("CONFIG"), "x")
    assert is_problem(service.ask("GET", "/metrics"), 503, "FOREIGN_KEY")


def test_a_device_that_is_none_costs_its_own_sample(service: Service) -> None:
    service.enqueue()
    with service.raw() as raw:
        raw.zadd(service.store.keys.name("MACS"), {"text": 1})
    answer = service.ask("GET", "/metrics")
    assert answer.status_code == 200
    assert 'fairlane_lane_pending{lane="text"} 1.0' in answer.text
