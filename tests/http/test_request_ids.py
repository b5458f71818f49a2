"""The id of a request: accepted if it is sane, else made; returned, and in every line logged."""

from __future__ import annotations

import json
import logging

import pytest

from fairlane.http.guard import log
from fairlane.logs import formatter
from support.service import Service


def test_a_sane_id_is_returned_on_every_way(service: Service) -> None:
    given = {"X-Request-Id": "Root=1-67891233:abc/def+0@x"}
    for path in ("/livez", "/v1/lanes", "/v1/tasks/unknown", "/nowhere"):
        answer = service.ask("GET", path, headers=given)
        assert answer.headers.get_list("x-request-id") == [given["X-Request-Id"]]
    answer = service.ask("POST", "/v1/tasks", headers=given, content=b"{")
    assert answer.headers["x-request-id"] == given["X-Request-Id"]
    nobody = service.ask("GET", "/v1/lanes", headers={"Authorization": "Bearer x", **given})
    assert nobody.headers["x-request-id"] == given["X-Request-Id"]


@pytest.mark.parametrize("given", [None, "", "a b", "x" * 129, "-a", "é".encode(), 'a"b', "a;b"])
def test_another_is_made_for_what_is_none(service: Service, given: str | bytes | None) -> None:
    headers = {} if given is None else {"X-Request-Id": given}
    first = service.ask("GET", "/livez", headers=headers).headers["x-request-id"]
    second = service.ask("GET", "/livez", headers=headers).headers["x-request-id"]
    assert first != second
    assert given not in (first, second)


def test_a_request_is_told_with_its_id_and_its_task(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.enqueue()
    written: list[str] = []
    shape = formatter(service.settings.__class__(log_format="json"), "api")

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            written.append(shape.format(record))

    handler = Kept()
    log.addHandler(handler)
    monkeypatch.setattr(log, "level", logging.INFO)
    log.manager._clear_cache()  # type: ignore[attr-defined]
    try:
        answer = service.ask(
            "POST",
            "/v1/tasks",
            headers={"X-Request-Id": "r1"},
            json={"mac": "02:00:00:00:00:01", "task_type": "text", "data": {}},
        )
        service.ask("GET", "/v1/lanes")
    finally:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)
    first, second = map(json.loads, written)
    assert first["event"] == "POST /v1/tasks 202"
    assert first["request_id"] == "r1"
    assert first["task_id"] == answer.json()["task_id"]
    assert first["took_ms"] > 0
    assert first["caller"] == "operator"
    assert second["event"] == "GET /v1/lanes 200"
    assert second["request_id"] != "r1"
    assert "task_id" not in second
