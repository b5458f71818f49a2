"""Connections that say nothing, too much or too slowly: they are cut, and shut nobody out."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest

from fairlane.http.connections import HEAD_BYTES, HEAD_FIELDS, HEAD_S
from support.eventually import eventually
from support.service import served
from support.store import mac

#: So few files let the service have 64 connections.
FEW_FILES = ("sh", "-c", 'ulimit -n 320 && exec "$@"', "sh")
FEW = 64


@pytest.fixture
def http(store_url: str, tmp_path: Path) -> Iterator[httpx.Client]:
    """Give a client of a service with room for a few connections."""
    with served(store_url, tmp_path, under=FEW_FILES) as http:
        yield http


def dial(http: httpx.Client, sent: bytes = b"") -> socket.socket:
    """Return a connection on which bytes were sent."""
    assert http.base_url.port is not None
    line = socket.create_connection((http.base_url.host, http.base_url.port), 30.0)
    line.sendall(sent)
    return line


def rest_of(line: socket.socket) -> bytes:
    """Return what comes until the other side closes."""
    parts = []
    with suppress(ConnectionResetError):
        while part := line.recv(65_536):
            parts.append(part)
    return b"".join(parts)


def is_told(raw: bytes, status: int, code: str) -> bool:
    """Prove that an answer is this problem, and the last of its connection."""
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    assert lines[0].startswith(f"http/1.1 {status} "), raw[:200]
    assert "content-type: application/problem+json" in lines
    assert "connection: close" in lines
    assert json.loads(body)["code"] == code
    return True


def sends(http: httpx.Client, number: int) -> bool:
    """Send a task on a new connection."""
    task = {"mac": mac(number), "task_type": "text", "data": {}}
    with httpx.Client(base_url=http.base_url, headers=http.headers, timeout=30.0) as other:
        return other.post("/v1/tasks", json=task).status_code == 202


def test_half_open_connections_shut_nobody_out(http: httpx.Client) -> None:
    """Ten times as many as there is room for, each with a head that does not end."""
    with ExitStack() as open_lines:
        for number in range(10 * FEW):
            head = b"GET /livez HTTP/1.1\r\nX-A: " if number % 2 else b""
            open_lines.enter_context(dial(http, head))
            if number % FEW == 0:
                assert sends(http, number)
        assert sends(http, 1)


def test_idle_connections_make_room(http: httpx.Client) -> None:
    with ExitStack() as open_lines:
        for _ in range(2 * FEW):
            line = open_lines.enter_context(dial(http, b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"))
            assert line.recv(4_096).startswith(b"HTTP/1.1 200")
        assert sends(http, 1)


def test_when_all_have_a_request_in_work_one_more_is_told_to_wait(http: httpx.Client) -> None:
    """It is a 503 with Retry-After, and who is in work goes on."""
    slow = (
        b"POST /v1/tasks HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        b"Authorization: %b\r\nContent-Length: 65\r\n\r\n"
    ) % http.headers["authorization"].encode()
    http.close()
    with ExitStack() as open_lines:
        lines = [open_lines.enter_context(dial(http, slow)) for _ in range(FEW)]

        def is_refused() -> bool:
            with dial(http) as line:
                line.settimeout(1.0)
                try:
                    raw = rest_of(line)
                except TimeoutError:
                    return False
            return b"retry-after: 2" in raw and is_told(raw, 503, "TOO_MANY_CONNECTIONS")

        eventually(is_refused, 20.0)
        body = b'{"mac":"02:00:00:00:00:01","task_type":"text","data":{}}'
        lines[-1].sendall(body.ljust(65))
        assert lines[-1].recv(4_096).startswith(b"HTTP/1.1 202")


def test_a_head_that_is_too_large_is_a_431(http: httpx.Client) -> None:
    line = b"GET /livez HTTP/1.1\r\nHost: a\r\n"
    for head in (
        line + b"X-A: " + b"a" * HEAD_BYTES,  # one that does not end
        line + b"X-A: " + b"a" * HEAD_BYTES + b"\r\n\r\n",
        b"GET /" + b"a" * HEAD_BYTES,
        line + b"X-A: a\r\n" * HEAD_FIELDS + b"\r\n",
    ):
        with dial(http, head) as sent:
            assert is_told(rest_of(sent), 431, "HEAD_TOO_LARGE")
    fields = b"X-A: a\r\n" * (HEAD_FIELDS - 2) + b"X-B: " + b"b" * 20_000 + b"\r\n"
    with dial(http, line + fields + b"\r\n") as sent:
        assert sent.recv(4_096).startswith(b"HTTP/1.1 200")


def test_what_follows_a_body_is_bounded_too(http: httpx.Client) -> None:
    """The trailer of a chunked body, and what a chunk says beside its size."""
    head = (
        b"POST /v1/tasks HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        b"Authorization: %b\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"
    ) % http.headers["authorization"].encode()
    for more in (b"0\r\nX-A: " + b"a" * 4_000_000, b"2;" + b"a" * 4_000_000):
        with dial(http, head) as line:
            with suppress(BrokenPipeError, ConnectionResetError):
                line.sendall(more)
            assert b" 202 " not in rest_of(line)
    assert sends(http, 1)


@pytest.mark.parametrize("field", ["authorization", "sec-fetch-site"])
def test_a_trailer_is_no_part_of_the_head(http: httpx.Client, field: str) -> None:
    """What says who sends a request counts in its head only, and a trailer's fields are counted."""
    token = b"Authorization: %b\r\n" % http.headers["authorization"].encode()
    name, secret = f"fairlane_session_{http.base_url.port}", http.headers["authorization"][7:]
    cookie = f"Cookie: {name}={secret}\r\n".encode()
    trailer = token if field == "authorization" else b"Sec-Fetch-Site: same-origin\r\n"
    body = b'{"mac":"02:00:00:00:00:01","task_type":"text","data":{}}'
    request = (
        b"POST /v1/tasks HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n%b"
        b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n%b\r\n"
    )
    head = b"" if field == "authorization" else cookie
    status = b"401" if field == "authorization" else b"403"
    with dial(http, request % (head, len(body), body, trailer)) as line:
        assert line.recv(4_096).split()[1] == status
        # The next head of the connection is one again.
        line.sendall(b"GET /v1/tasks HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%b\r\n" % token)
        assert b"HTTP/1.1 200" in rest_of(line)
    many = request % (token, len(body), body, b"X-A: a\r\n" * HEAD_FIELDS)
    with dial(http, many) as line:
        assert b" 202 " not in rest_of(line)


def test_a_large_body_is_no_large_head(http: httpx.Client) -> None:
    """Also in pieces, and with the next head in the same piece as its end."""
    body = b'{"mac":"02:00:00:00:00:01","task_type":"text","data":{"t":"%b"}}' % (b"x" * 100_000)
    head = (
        b"POST /v1/tasks HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        b"Authorization: %b\r\nContent-Length: %d\r\n\r\n"
    ) % (http.headers["authorization"].encode(), len(body))
    both = (head + body) * 2
    with dial(http) as line:
        for at in range(0, len(both), 30_000):
            line.sendall(both[at : at + 30_000])
        raw = b""
        while raw.count(b"HTTP/1.1 202") < 2:
            part = line.recv(65_536)
            assert part, raw
            raw += part


def test_what_is_no_http_is_a_problem_too(http: httpx.Client) -> None:
    with dial(http, b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n") as line:
        assert is_told(rest_of(line), 400, "INVALID_HTTP")


@pytest.mark.parametrize(
    ("line", "fields", "status", "code"),
    [
        (b"1.1", b"", 400, "INVALID_HTTP"),
        (b"1.1", b"Host: a\r\nHost: a\r\n", 400, "INVALID_HTTP"),
        (b"1.0", b"Host: a\r\nhost: b\r\n", 400, "INVALID_HTTP"),
        (
            b"1.1",
            b"Host: a\r\nTransfer-Encoding: gzip, chunked\r\n",
            501,
            "UNKNOWN_TRANSFER_CODING",
        ),
    ],
)
def test_a_head_that_could_mean_two_things_is_refused(
    http: httpx.Client, line: bytes, fields: bytes, status: int, code: str
) -> None:
    head = b"GET /livez HTTP/%b\r\n%b\r\n" % (line, fields)
    with dial(http, head) as sent:
        assert is_told(rest_of(sent), status, code)


def test_a_caller_of_the_old_protocol_names_no_host(http: httpx.Client) -> None:
    with dial(http, b"GET /livez HTTP/1.0\r\n\r\n") as line:
        assert rest_of(line).startswith(b"HTTP/1.1 200")


def test_a_head_that_does_not_end_is_cut_in_time(http: httpx.Client) -> None:
    """Also one that goes on byte by byte, and who says nothing at all; `HEAD_S` is a promise."""
    began = time.monotonic()
    head = b"GET /livez HTTP/1.1\r\nX-A: "
    with dial(http) as silent, dial(http, head) as half, dial(http, head) as drip:
        for _ in range(int(HEAD_S)):
            drip.sendall(b"a")
            time.sleep(0.5)  # quicker than any rule about silence
        assert rest_of(silent) == b""
        assert is_told(rest_of(half), 408, "HEAD_TOO_SLOW")
        assert is_told(rest_of(drip), 408, "HEAD_TOO_SLOW")
    assert time.monotonic() - began > HEAD_S - 1


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("offer", ["h2c", "websocket"])
def test_an_offer_of_another_protocol_is_declined(
    http: httpx.Client, offer: str, parts: int
) -> None:
    """As the HTTP client of Java and `curl --http2` offer HTTP/2: it loses nothing of a request."""
    body = json.dumps({"mac": mac(1), "task_type": "text", "data": {}})
    raw = (
        "POST /v1/tasks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Authorization: {http.headers['authorization']}\r\n"
        "Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n"
        f"Upgrade: {offer}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}"
    ).encode()
    last = b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close, upgrade\r\nUpgrade: x\r\n\r\n"
    every = raw * 2 + last
    with dial(http) as line:
        for at in range(parts):
            line.sendall(every[at * len(every) // parts : (at + 1) * len(every) // parts])
            time.sleep(0.05)  # else the next part would come with it
        told = rest_of(line)
    assert told.count(b"HTTP/1.1 202 Accepted") == 2, told
    assert told.endswith(b'{"status":"ok"}')
