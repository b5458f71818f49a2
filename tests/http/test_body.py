"""Bodies, strictly: what is no JSON, what is too large, what must come through unchanged."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairlane import verbs
from support.service import Service, is_problem
from support.store import mac

HEAD = b'{"mac":"02:00:00:00:00:01","task_type":"text","data":'


def handler_sees(service: Service, answer: Any) -> Any:
    """Return the data as the handler of an accepted task gets it."""
    assert answer.status_code == 202, answer.text
    task_id = answer.json()["task_id"]
    (leased,) = service.store.run(verbs.Claim("text", 1)).leased
    return service.store.run(verbs.Start(task_id, leased.attempt, "worker", "run")).task.data


@pytest.mark.parametrize(
    "data",
    [b'{"a":NaN}', b'{"a":Infinity}', b'{"a":-Infinity}', b'{"a":1e999}', b'{"a":-1e999}',
     b'{"a":nan}', b'{"a":01}', b'{"a":+1}', b'{"a":.5}', b'{"a":1,}', b"{'a':1}", b'{"a":0x1}',
     b'{"a":"\x01"}', b'{"a":1}}', b'{"a":"\xff"}', b'{"a":"\xed\xa0\x80"}', b'{"a":' + b"9" * 5000,
     b"\xef\xbb\xbf{}"],
)  # fmt: skip
def test_what_is_not_strictly_json_is_refused(service: Service, data: bytes) -> None:
    """A37: NaN, Infinity and 1e999 answer 4xx."""
    answer = service.send(HEAD + data + b"}")
    assert is_problem(answer, 422, "MALFORMED_JSON")


def test_a_lone_surrogate_is_refused_and_a_pair_is_not(service: Service) -> None:
    """A38: a lone surrogate answers 422."""
    for lone in (rb'{"a":"\ud800"}', rb'{"a":"\udc00x"}', rb'{"\ud800":1}', rb'{"a":"\ud800A"}'):
        assert is_problem(service.send(HEAD + lone + b"}"), 422, "MALFORMED_JSON")
    assert handler_sees(service, service.send(HEAD + rb'{"a":"\ud83d\ude00"}}')) == {"a": "😀"}


@pytest.mark.parametrize(
    "text", ["中文", "🙂👩‍👩‍👧", "שלום مرحبا", "\u0000", "a\u2028b", "\\u0000", "<script>"]
)
def test_texts_come_through_byte_for_byte(service: Service, text: str) -> None:
    """A38: 中文, emoji, RTL and NUL round trip byte for byte."""
    for escaped in (True, False):
        raw = json.dumps({"text": text}, ensure_ascii=escaped).encode()
        answer = service.send(HEAD + raw + b"}")
        assert handler_sees(service, answer) == {"text": text}
        told = service.ask("GET", answer.headers["location"])
        assert told.json()["data"] == {"text": text}
        assert told.headers["content-type"] == "application/json"


def test_numbers_reach_the_handler_as_they_were_sent(service: Service) -> None:
    """A39: the same values at the handler."""
    raw = b'{"id":130775545883395173,"a":[],"o":{},"f":1.0,"big":%d,"e":1e-7,"z":-0.0}' % 10**30
    seen = handler_sees(service, service.send(HEAD + raw + b"}"))
    assert seen == json.loads(raw)
    assert repr(seen) == repr(json.loads(raw))


def test_keys_that_are_ours_stay_inside_data(service: Service) -> None:
    """A41: keys named `mac`, `task_id`, `created_at`, `__proto__` stay inside data."""
    data = {"mac": mac(2), "task_id": "x", "created_at": 1, "__proto__": {"a": 1}, "state": "done"}
    answer = service.enqueue(data=data)
    assert answer.json()["mac"] == mac(1)
    assert handler_sees(service, answer) == data


@pytest.mark.parametrize(
    "raw",
    [HEAD + b'{"a":1,"a":2}}', HEAD + b'{"x":{"a":1,"\\u0061":2}}}', HEAD + b'{},"data":{}}',
     HEAD + b'{"t":"a:b\\":","l":[{"k":1,"k":1}]}}'],
)  # fmt: skip
def test_a_key_that_stands_twice_is_refused(service: Service, raw: bytes) -> None:
    answer = service.send(raw)
    assert is_problem(answer, 422, "MALFORMED_JSON")
    assert "stands twice" in answer.json()["detail"]


def test_a_twin_among_many_keys_keeps_nobody_waiting(service: Service) -> None:
    # Compared each with each, these would hold the service for minutes.
    keys = b",".join(b'"k%d":0' % n for n in range(60_000))
    answer = service.send(b'{"mac":"02:00:00:00:00:01","x":{' + keys + b',"k59999":0}}')
    assert answer.status_code in {413, 422}
    assert is_problem(service.send(HEAD + b'{"a":1,"a":2}}'), 422, "MALFORMED_JSON")


def test_colons_in_texts_are_no_keys(service: Service) -> None:
    data = {"a:b": '":"', "c": ["x:", {'"': ":\\"}], "d": {}}
    assert handler_sees(service, service.enqueue(data=data)) == data


def test_depth_is_bounded(service: Service) -> None:
    def nested(depth: int) -> bytes:
        return HEAD + b'{"a":' * depth + b"1" + b"}" * depth + b"}"

    assert handler_sees(service, service.send(nested(32)))
    assert is_problem(service.send(nested(33)), 422, "INVALID_DATA")
    for depth in (1_000, 30_000):
        assert service.send(nested(depth)).status_code == 422
        deep_list = HEAD + b'{"a":' + b"[" * depth + b"]" * depth + b"}}"
        assert service.send(deep_list).status_code == 422


@pytest.mark.parametrize(
    "text",
    ["02:00:00:00:00:01", "02-00-00-00-00-01", "0200.0000.0001", "020000000001"],
)
@pytest.mark.parametrize("case", [str.lower, str.upper])
def test_one_address_is_one_device(service: Service, text: str, case: Any) -> None:
    """A40: every notation of one EUI-48 is one device."""
    assert service.enqueue(mac=case(text)).json()["mac"] == mac(1)


@pytest.mark.parametrize(
    "bad",
    ["2:0:0:0:0:1", "02:00-00:00:00:01", "03:00:00:00:00:01", "ff:ff:ff:ff:ff:ff", "", "0" * 12,
     "00:00:00:00:00:00", "02:00:00:00:00:01\n", " 02:00:00:00:00:01", "02:00:00:00:00:01:02",
     "０2:00:00:00:00:01", "<script>", None, 1, ["02:00:00:00:00:01"]],
)  # fmt: skip
def test_what_is_no_address_is_refused(service: Service, bad: object) -> None:
    """A40: missing zeros, mixed separators, multicast, broadcast, zero and the like: 422."""
    answer = service.enqueue(mac=bad)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"


def test_an_eui_64_is_a_device_of_its_own(service: Service) -> None:
    """A40: EUI-64 accepted as its own device."""
    assert service.enqueue(mac="02-00-00-FF-FE-00-00-01").json()["mac"] == "02:00:00:ff:fe:00:00:01"


@pytest.mark.parametrize("kind", ["", "text/plain", "application/json; charset=latin-1", "json"])
def test_another_content_type_is_refused(service: Service, kind: str) -> None:
    headers = {"content-type": kind} if kind else {}
    answer = service.ask("POST", "/v1/tasks", content=HEAD + b"{}}", headers=headers)
    assert is_problem(answer, 415, "UNSUPPORTED_MEDIA_TYPE")
    answer = service.ask("PATCH", f"/v1/devices/{mac(1)}", content=b"{}", headers=headers)
    assert is_problem(answer, 415, "UNSUPPORTED_MEDIA_TYPE")


def test_a_payload_up_to_the_limit_arrives_whole(service: Service) -> None:
    """A36: 1 B, 256 kB and the limit - 1 arrive equal; over it, 413."""
    limit = service.settings.max_payload_bytes
    frame = len(b'{"t":""}')
    for size in (1, 256_000, limit - 1 - frame, limit - frame):
        data = {"t": "x" * size}
        assert handler_sees(service, service.enqueue(data=data)) == data
    assert is_problem(
        service.enqueue(data={"t": "x" * (limit - frame + 1)}), 413, "PAYLOAD_TOO_LARGE"
    )


@pytest.mark.parametrize("path", ["/v1/tasks", "/v1/tasks:batch"])
def test_a_body_that_is_too_large_is_not_read_to_its_end(service: Service, path: str) -> None:
    """A36: over the limit, 413 before the whole body is read, chunked too."""
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 65_536
            assert sent < 64 * 1024 * 1024, "it reads on and on"
            yield b" " * 65_536

    headers = {"content-type": "application/json"}
    answer = service.ask("POST", path, content=endless(), headers=headers)
    assert is_problem(answer, 413, "BODY_TOO_LARGE")
    declared = {**headers, "content-length": str(10**12)}
    answer = service.ask("POST", path, content=b"{}", headers=declared)
    assert is_problem(answer, 413, "BODY_TOO_LARGE")
