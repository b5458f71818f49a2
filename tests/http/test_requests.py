"""Requests that say a thing twice, or packed, and those that ask for the head only."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from support.issuer import SECRET, issued
from support.service import Service, bearer, is_problem, served
from support.store import mac

TASK: dict[str, Any] = {"mac": mac(1), "task_type": "text", "data": {}}
JSON = ("content-type", "application/json")


@pytest.mark.parametrize("name", ["Idempotency-Key", "Content-Type", "Content-Encoding"])
def test_a_header_that_stands_twice_is_a_400(service: Service, name: str) -> None:
    """The first of two idempotency keys was taken, the second one never seen."""
    value = {"Content-Type": "application/json", "Content-Encoding": "identity"}.get(name, "a")
    headers = [JSON, (name, value)] if name == "Content-Type" else [JSON, (name, "a"), (name, "b")]
    answer = service.ask("POST", "/v1/tasks", content=json.dumps(TASK), headers=headers)
    assert is_problem(answer, 400, "HEADER_TWICE")
    assert service.store.devices() == ()


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/tasks", TASK),
        ("POST", "/v1/tasks:batch", [TASK]),
        ("POST", "/decter", {"a": 1}),
        ("PATCH", f"/v1/devices/{mac(1)}", {"weight": 2}),
        ("POST", "/v1/dead-letters:redrive", {"task_ids": ["a"]}),
    ],
)
def test_a_packed_body_is_a_415(service: Service, method: str, path: str, body: Any) -> None:
    """It was told as JSON that is none."""
    raw = json.dumps(body).encode()
    for coding, content in (("gzip", gzip.compress(raw)), ("br", raw), ("", raw), ("x, gzip", raw)):
        headers = {"content-type": "application/json", "content-encoding": coding}
        answer = service.ask(method, path, content=content, headers=headers)
        assert is_problem(answer, 415, "UNSUPPORTED_MEDIA_TYPE")
        assert answer.headers["accept-encoding"] == "identity"
    headers = {"content-type": "application/json", "content-encoding": "Identity"}
    assert service.ask(method, path, content=raw, headers=headers).status_code < 300


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/dead-letters?cause=a&cause=b"),
        ("GET", "/v1/dead-letters?limit=1&cursor=&limit=1"),
        ("GET", "/v1/devices?limit=1&%6cimit=2"),
        ("DELETE", "/v1/tasks/x?force=false&force=true"),
    ],
)
def test_a_parameter_that_stands_twice_is_a_422(service: Service, method: str, path: str) -> None:
    """The last one counted, and nobody was told."""
    answer = service.ask(method, path)
    assert is_problem(answer, 422, "INVALID_REQUEST")
    assert "stands 2 times" in answer.json()["detail"]


def test_a_head_is_a_get_without_its_body(service: Service) -> None:
    """Load balancers look at /livez by HEAD; it was a 405."""
    task_id = service.enqueue().json()["task_id"]
    paths = [path for path, methods in service.app.openapi()["paths"].items() if "get" in methods]
    assert len(paths) > 10
    for path in paths:
        if path == "/v1/events":
            continue
        path = path.replace("{mac}", mac(1)).replace("{task_id}", task_id)
        got, head = service.ask("GET", path), service.ask("HEAD", path)
        assert head.status_code == got.status_code, path
        assert head.content == b""
        assert head.headers["content-type"] == got.headers["content-type"]
        assert "content-length" in head.headers
    assert service.ask("HEAD", "/nowhere").status_code == 404
    only_post = service.ask("HEAD", "/v1/tasks:batch")
    assert (only_post.status_code, only_post.headers["allow"]) == (405, "POST")


def test_a_head_of_the_feed_ends(store_url: str, tmp_path: Path) -> None:
    with served(store_url, tmp_path) as http:
        answer = http.head("/v1/events")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert http.head("/livez").status_code == 200


def test_the_keys_of_two_tokens_without_a_name_are_two(store_url: str) -> None:
    """Those of one name are the same, whatever token it has."""
    service = Service(store_url, token_secret=SECRET)

    def send(token: str) -> str:
        headers = {**bearer(token), "Idempotency-Key": "1"}
        answer = service.ask("POST", "/v1/tasks", json=TASK, headers=headers)
        assert answer.status_code in (200, 202), answer.text
        task_id: str = answer.json()["task_id"]
        return task_id

    try:
        one, other = issued(service, "producer"), issued(service, "producer")
        assert send(one) == send(one) != send(other)
        named, renewed = (issued(service, "producer", name="erp") for _ in range(2))
        assert send(named) == send(renewed)
        # A name is no device, however it is spelt.
        as_device = issued(service, "device", mac(1))
        alike = issued(service, "producer", name=mac(1))
        assert send(as_device) != send(alike)
    finally:
        service.close()
