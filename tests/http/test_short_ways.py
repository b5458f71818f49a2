"""The short ways of POST /v1/tasks: they answer what the ordinary way does, and let nobody past."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlane import verbs
from fairlane.http import door, enqueue, express, revocations, whole
from support.issuer import SECRET, claims, forged, issued, now_s
from support.service import Service, bearer, is_problem, served

TASK = {"mac": "02:00:00:00:00:01", "task_type": "text", "data": {}}


@pytest.fixture
def service(store_url: str) -> Iterator[Service]:
    """Give the application with a key."""
    service = Service(store_url, token_secret=SECRET)
    yield service
    service.close()


@pytest.fixture
def shortest(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the ids of the requests that went the shortest way."""
    seen: list[str] = []
    store = express.Shortest._store

    def seeing(self: Any, sender: Any, headers: Any, *rest: Any) -> Any:
        seen.append(headers.get(b"x-request-id", b"").decode())
        return store(self, sender, headers, *rest)

    monkeypatch.setattr(express.Shortest, "_store", seeing)
    return seen


def send(service: Service, token: str, name: str = "", **headers: str) -> httpx.Response:
    """Send a task, with a request's id."""
    given = {**bearer(token), **({"x-request-id": name} if name else {}), **headers}
    return service.ask("POST", "/v1/tasks", json=TASK, headers=given)


def test_a_token_that_was_seen_goes_the_shortest_way(service: Service, shortest: list[str]) -> None:
    token = issued(service, "producer")
    first, second = send(service, token, "first"), send(service, token, "second")
    assert shortest == ["second"]
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.headers.keys() == second.headers.keys()
    same = [{**answer.headers, "x-request-id": "", "location": ""} for answer in (first, second)]
    assert same[0] == same[1]
    assert second.headers["location"] == f"/v1/tasks/{second.json()['task_id']}"
    assert second.headers["x-request-id"] == "second"
    assert send(service, token, idempotency_key="k").status_code == 202


@pytest.mark.parametrize(
    ("headers", "way"),
    [
        ({"cookie": "a=b"}, "shortest"),
        ({"x-request-id": "a b"}, "shortest"),
        ({"Authorization": "bearer {}"}, "ordinary"),
        ({"Authorization": "Bearer  {}"}, "ordinary"),
    ],
    ids=["a cookie beside it", "an id that is none", "another case", "two spaces"],
)
def test_a_head_that_is_not_as_usual(
    service: Service, shortest: list[str], headers: dict[str, str], way: str
) -> None:
    token = issued(service, "producer")
    send(service, token)
    given = {name: value.format(token) for name, value in headers.items()}
    answer = service.ask("POST", "/v1/tasks", json=TASK, headers={**bearer(token), **given})
    assert answer.status_code == 202
    assert bool(shortest) == (way == "shortest")


def test_no_way_leads_past_the_door(service: Service, shortest: list[str]) -> None:
    gone = issued(service, "operator", token_id="gone")
    ends = forged(claims(now_s(service.store), exp=now_s(service.store) + 600))
    viewer = issued(service, "viewer")
    device = issued(service, "device", "02:00:00:00:00:02")
    for token, status in ((gone, 202), (ends, 202), (viewer, 403), (device, 403)):
        for _ in range(2):
            assert send(service, token, "x").status_code == status
    assert len(shortest) == 4
    service.store.run(verbs.RevokeToken("gone"))
    service.age(seconds=11)
    assert is_problem(send(service, gone), 401, "INVALID_TOKEN")
    assert is_problem(send(service, gone), 401, "INVALID_TOKEN")


def test_a_token_ends_on_the_shortest_way_too(
    service: Service, shortest: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revocations, "FRESH_S", 3_600)
    token = forged(claims(now_s(service.store), exp=now_s(service.store) + 600))
    assert [send(service, token, "a").status_code, send(service, token, "b").status_code] == [
        202, 202
    ]  # fmt: skip
    service.age(seconds=640)
    assert is_problem(send(service, token, "c"), 401, "INVALID_TOKEN")
    assert shortest == ["b"]


def test_without_a_key_the_shortest_way_is_for_this_machine(
    store_url: str, shortest: list[str]
) -> None:
    service = Service(store_url)
    try:
        assert [send(service, service.token).status_code for _ in range(2)] == [202, 202]
        assert len(shortest) == 1
        token = service.token
        service.call_from("192.0.2.1")
        assert is_problem(send(service, token), 401, "UNAUTHORIZED")
    finally:
        service.close()


def test_requests_are_counted_on_the_shortest_way(store_url: str, shortest: list[str]) -> None:
    service = Service(store_url, token_secret=SECRET, requests_per_s=2)
    try:
        token = issued(service, "producer")
        answers = [send(service, token) for _ in range(20)]
        assert is_problem(next(one for one in answers if one.status_code != 202), 429,
                          "TOO_MANY_REQUESTS")  # fmt: skip
        assert len(shortest) == 19
    finally:
        service.close()


def test_known_tokens_are_bounded_and_the_oldest_goes(
    service: Service, shortest: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "_MOST_KNOWN", 2)
    one, two, three = (issued(service, "producer") for _ in range(3))
    for token in (one, two, one, three):
        send(service, token, "ordinary")
    assert send(service, one, "one").status_code == 202
    assert send(service, two, "two").status_code == 202
    assert send(service, two, "two again").status_code == 202
    assert [name for name in shortest if name != "ordinary"] == ["one", "two again"]
    assert len(service.app.state.door._known) == 2


def test_a_fault_on_the_shortest_way_is_a_500(
    service: Service, shortest: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    token = issued(service, "producer")
    send(service, token)

    def fails(_: Any) -> Any:
        raise RuntimeError("a bug")

    monkeypatch.setattr(enqueue, "answer_of", fails)
    answer = send(service, token, "x")
    assert is_problem(answer, 500, "INTERNAL")
    assert shortest == ["x"]
    assert answer.headers["x-request-id"] == "x"


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b'{"mac":"%m","task_type":"text","data":{},"task_type":"text"}', 422),
        (b'{"mac":"%m","mac":"%m","task_type":"text","data":{}}', 422),
        (b'{"mac":"%m","task_type":"text","data":{"a":1,"a":2}}', 422),
        (b'{"mac":"%m","task_type":"text","data":{"a":[{"b":1,"b":2}]}}', 422),
        (b'{"mac":"%m","task_type":"text","data":{"a":"\\u003a","b":1,"b":2}}', 422),
        (b'{"mac":"%m","task_type":"text","data":{"a":"\\u003a\\u003a","a":"x"}}', 422),
        (b'{"mac":"%m","task_type":"text","data":{},"site":null,"site":null}', 422),
        (b'{"mac":"%m","task_type":"text","data":{},"ttl_seconds":9,"ttl_seconds":9}', 422),
        (b'{"mac":"%m","task_type":"text","data":{"a:b":"c:\\"d\\":","e" : "::"}}', 202),
        (b'{"mac":"%m","task_type":"text","data":{"\\u003a":"\\u003a"}}', 202),
        (b'{"mac":"%m","task_type":"text","data":{},"site":null,"task_id":null}', 202),
        (b'{"mac":"%m","task_type":"text","data":{},"ttl_seconds":9,"task_id":"a:b"}', 202),
    ],
)
def test_twins_are_told_from_colons(service: Service, raw: bytes, status: int) -> None:
    token = issued(service, "producer")
    raw = raw.replace(b"%m", b"02:00:00:00:00:01")
    given = {**bearer(token), "content-type": "application/json"}
    answers = [service.ask("POST", "/v1/tasks", content=raw, headers=given) for _ in range(2)]
    assert {answer.status_code for answer in answers} <= {status, 200 if status == 202 else 422}
    if status == 422:
        assert is_problem(answers[0], 422, "MALFORMED_JSON")


def test_what_goes_over_the_wire_is_the_same(store_url: str, tmp_path: Path) -> None:
    """One piece or two, pipelined, or the last of a connection."""
    assert whole.FITS, "this release of uvicorn keeps its answers otherwise: look at whole.py"
    with served(store_url, tmp_path) as http:
        ordinary = exchange(http, request(http, "Authorization: bearer"))
        for _ in range(2):
            (one,) = exchange(http, request(http))
        assert sorted(one[1]) == sorted(ordinary[0][1])
        assert one[0] == ordinary[0][0] == "HTTP/1.1 202 Accepted"
        both = exchange(http, request(http) + request(http))
        assert [told[0] for told in both] == ["HTTP/1.1 202 Accepted"] * 2
        ids = {told[2]["task_id"] for told in [*both, one, *ordinary]}
        assert len(ids) == 4
        (last,) = exchange(http, request(http, more="Connection: close\r\n"), is_last=True)
        assert "connection" in last[1]
        (old,) = exchange(http, request(http, version="1.0"), is_last=True)
        assert old[0].endswith("202 Accepted")
        raw = request(http, more="Expect: 100-continue\r\n")
        (waited,) = exchange(http, raw)
        assert waited[0] == "HTTP/1.1 202 Accepted"


def request(
    http: httpx.Client, scheme: str = "Authorization: Bearer", more: str = "", version: str = "1.1"
) -> bytes:
    """Return a task as bytes of HTTP."""
    token = http.headers["authorization"].partition(" ")[2]
    body = json.dumps(TASK)
    head = (
        f"POST /v1/tasks HTTP/{version}\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"{scheme} {token}\r\n{more}Content-Length: {len(body)}\r\n\r\n"
    )
    return f"{head}{body}".encode()


def exchange(
    http: httpx.Client, raw: bytes, *, is_last: bool = False
) -> list[tuple[str, list[str], Any]]:
    """Send bytes; return the status line, the names of the fields and the body of each answer."""
    assert http.base_url.port is not None
    line = socket.create_connection((http.base_url.host, http.base_url.port), 30.0)
    with closing(line):
        line.sendall(raw)
        told = line.makefile("rb")
        answers = [answer(told.readline, told.read) for _ in range(raw.count(b"HTTP/1."))]
        if is_last:
            assert told.read() == b""
    return answers


def answer(
    next_line: Callable[[], bytes], read: Callable[[int], bytes]
) -> tuple[str, list[str], Any]:
    """Return the next answer of a connection that is no 100."""
    status = next_line().decode().strip()
    fields = dict(line.decode().strip().lower().split(": ", 1) for line in iter(next_line, b"\r\n"))
    if " 100 " in status:
        return answer(next_line, read)
    body = read(int(fields["content-length"]))
    return status, list(fields), json.loads(body)
