"""Abnormal data over HTTP: bounded, short-lived, and not for devices to send."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fairlane import verbs
from support.issuer import SECRET, issued
from support.service import Service, bearer, is_problem

MAC = "02:00:00:00:00:01"


@pytest.fixture
def service(store_url: str) -> Iterator[Service]:
    """Give the application with a key, and room for four records."""
    service = Service(store_url, token_secret=SECRET, abnormal_cap=4)
    yield service
    service.close()


def send(service: Service, role: str, raw: bytes | None = None, **options: Any) -> Any:
    mac = MAC if role == "device" else ""
    headers = bearer(issued(service, role, mac)) | options.pop("headers", {})
    if raw is not None:
        headers = {"content-type": "application/json"} | headers
        return service.ask("POST", "/decter", content=raw, headers=headers, **options)
    return service.ask("POST", "/decter", headers=headers, **options)


def test_a_record_or_a_list_of_them_is_stored_as_it_came(service: Service) -> None:
    first = send(service, "producer", json={"mac": "x", "文": ["\u0000", 1.0, 130775545883395173]})
    assert (first.status_code, first.json()) == (202, {"kept": 1, "dropped": 0})
    second = send(service, "operator", json=[{"n": 1}, {"n": 2}])
    assert (second.status_code, second.json()) == (202, {"kept": 3, "dropped": 0})
    assert service.store.run(verbs.ReadAbnormal()) == (
        {"mac": "x", "文": ["\u0000", 1.0, 130775545883395173]},
        {"n": 1},
        {"n": 2},
    )


def test_the_oldest_makes_room_and_is_counted(service: Service) -> None:
    send(service, "producer", json=[{"n": n} for n in range(3)])
    answer = send(service, "producer", json=[{"n": n} for n in range(3, 6)])
    assert answer.json() == {"kept": 4, "dropped": 2}
    assert [record["n"] for record in service.store.run(verbs.ReadAbnormal())] == [2, 3, 4, 5]
    assert service.store.run(verbs.InspectTotals()).counts["abnormal_dropped"] == 2


def test_each_push_lets_it_live_another_20_s(service: Service, server: Any) -> None:
    name = service.store.keys.name("ABNORMAL")
    send(service, "producer", json={})
    server.client.pexpire(name, 5_000)
    send(service, "producer", json={})
    assert 15_000 < server.client.pttl(name) <= 20_000


def test_who_may_not(service: Service) -> None:
    for role in ("device", "viewer"):
        assert is_problem(send(service, role, json={"n": 1}), 403, "FORBIDDEN")
    assert is_problem(service.ask("POST", "/decter", json={}), 401, "UNAUTHORIZED")
    assert service.store.run(verbs.ReadAbnormal()) == ()


@pytest.mark.parametrize(
    ("raw", "status", "code"),
    [
        (b"", 422, "MALFORMED_JSON"),
        (b"[]", 422, "INVALID_REQUEST"),
        (b"7", 422, "INVALID_DATA"),
        (b"null", 422, "INVALID_DATA"),
        (b'"text"', 422, "INVALID_DATA"),
        (b"[{}, 7]", 422, "INVALID_DATA"),
        (b"[" + b",".join([b"{}"] * 1_001) + b"]", 422, "INVALID_REQUEST"),
        (b'{"a": NaN}', 422, "MALFORMED_JSON"),
        (b'{"a": 1e999}', 422, "MALFORMED_JSON"),
        (b'{"a": 1, "a": 2}', 422, "MALFORMED_JSON"),
        (b'{"a": "\\ud800"}', 422, "MALFORMED_JSON"),
        (b'{"a": ' + b"[" * 40 + b"]" * 40 + b"}", 422, "INVALID_DATA"),
        (b'{"a": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", 422, "MALFORMED_JSON"),
        (b'{"a": "' + b"x" * 300_000 + b'"}', 413, "BODY_TOO_LARGE"),
    ],
)
def test_what_cannot_be_stored(service: Service, raw: bytes, status: int, code: str) -> None:
    assert is_problem(send(service, "producer", raw), status, code)
    assert service.store.run(verbs.ReadAbnormal()) == ()


def test_another_content_type(service: Service) -> None:
    answer = send(service, "producer", b"{}", headers={"content-type": "text/plain"})
    assert is_problem(answer, 415, "UNSUPPORTED_MEDIA_TYPE")


def test_any_other_method(service: Service) -> None:
    answer = service.ask("GET", "/decter", headers=bearer(issued(service, "operator")))
    assert is_problem(answer, 405, "METHOD_NOT_ALLOWED")
