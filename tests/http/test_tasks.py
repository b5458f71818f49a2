"""Tasks over HTTP: sent, known again, read, cancelled."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import httpx
import pytest

from fairlane import verbs
from fairlane.model import TaskState
from support.service import Service, is_problem

MAC = "02:00:00:00:00:01"


def test_a_task_is_accepted_and_can_be_read_where_the_answer_says(service: Service) -> None:
    sent = service.enqueue(data={"text": "x"}, ttl_seconds=60, cost_seconds=0.5, site="lab")
    assert sent.status_code == 202
    told = sent.json()
    assert told["state"] == "pending"
    assert (told["mac"], told["pending"], told["known"]) == (MAC, 1, False)
    assert sent.headers["location"] == f"/v1/tasks/{told['task_id']}"

    read = service.ask("GET", sent.headers["location"])
    assert read.status_code == 200
    task = read.json()
    assert task["data"] == {"text": "x"}
    assert (task["place"], task["attempt"], task["result"], task["ended_at"]) == (0, 0, None, None)
    assert task["created_at"] == told["created_at"]
    lives = datetime.fromisoformat(task["expires_at"]) - datetime.fromisoformat(task["created_at"])
    assert lives.total_seconds() == 60


def test_the_same_task_id_with_the_same_body_is_the_same_task(service: Service) -> None:
    first = service.enqueue(task_id="mine", data={"n": 1})
    again = service.enqueue(task_id="mine", data={"n": 1})
    assert (first.status_code, again.status_code) == (202, 200)
    assert again.json()["known"] is True
    assert again.headers["location"] == first.headers["location"]
    assert service.store.run(verbs.InspectTotals()).pending == 1


def test_the_same_task_id_with_another_body_is_a_conflict(service: Service) -> None:
    service.enqueue(task_id="mine", data={"n": 1})
    assert is_problem(service.enqueue(task_id="mine", data={"n": 2}), 409, "TASK_CONFLICT")


def test_a_result_is_told_when_the_task_is_done(service: Service) -> None:
    task_id = service.enqueue().json()["task_id"]
    (leased,) = service.store.run(verbs.Claim("text", 1)).leased
    service.store.run(verbs.Start(task_id, leased.attempt, "worker", "run"))
    service.store.run(verbs.Finish(task_id, leased.attempt, {"found": [1.0]}))
    task = service.ask("GET", f"/v1/tasks/{task_id}").json()
    assert (task["state"], task["result"], task["place"]) == ("done", {"found": [1.0]}, None)
    assert task["started_at"] <= task["ended_at"]


def test_a_cancelled_task_never_runs(service: Service) -> None:
    """A34: counters - 1 once; cancel twice, the same answer; unknown, 404."""
    task_id = service.enqueue().json()["task_id"]
    first = service.ask("DELETE", f"/v1/tasks/{task_id}")
    again = service.ask("DELETE", f"/v1/tasks/{task_id}")
    assert (first.status_code, first.json()) == (200, {"task_id": task_id, "state": "cancelled"})
    assert (again.status_code, again.json()) == (200, first.json())
    assert service.store.run(verbs.InspectTotals()).pending == 0
    assert service.store.run(verbs.Claim("text", 1)).leased == ()
    assert is_problem(service.ask("DELETE", "/v1/tasks/unknown"), 404, "TASK_NOT_FOUND")
    assert is_problem(service.ask("GET", "/v1/tasks/unknown"), 404, "TASK_NOT_FOUND")


def test_a_running_task_is_cancelled_by_force_only(service: Service) -> None:
    """A34: running, 409 unless `force`."""
    task_id = service.enqueue().json()["task_id"]
    (leased,) = service.store.run(verbs.Claim("text", 1)).leased
    service.store.run(verbs.Start(task_id, leased.attempt, "worker", "run"))
    assert is_problem(service.ask("DELETE", f"/v1/tasks/{task_id}"), 409, "TASK_RUNNING")
    forced = service.ask("DELETE", f"/v1/tasks/{task_id}?force=true")
    assert forced.json()["state"] == "cancelled"
    assert service.store.task(task_id).state is TaskState.CANCELLED


@pytest.mark.parametrize("created_at", ["2026-01-01T00:00:00", "9999-12-31T23:59:59Z", 1, None])
def test_a_client_has_no_say_in_a_tasks_age(service: Service, created_at: object) -> None:
    """A33: `created_at` of a client is refused, never stored as the task's age."""
    assert is_problem(service.enqueue(created_at=created_at), 422, "INVALID_REQUEST")
    assert service.store.run(verbs.InspectTotals()).pending == 0


def test_one_idempotency_key_is_one_task_however_many_race(service: Service) -> None:
    """A12: 50 parallel POSTs with one key, one task id; the same key with another body, 422."""
    task = {"mac": MAC, "task_type": "text", "data": {"n": 1}}
    options = {"json": task, "headers": {"Idempotency-Key": "k1"}}
    answers = service.ask_all(*[("POST", "/v1/tasks", options)] * 50)
    assert len({answer.json()["task_id"] for answer in answers}) == 1
    assert sorted(answer.status_code for answer in answers) == [200] * 49 + [202]
    assert service.store.run(verbs.InspectTotals()).pending == 1
    other = {"json": {**task, "data": {"n": 2}}, "headers": {"Idempotency-Key": "k1"}}
    answer = service.ask("POST", "/v1/tasks", **other)
    assert is_problem(answer, 422, "IDEMPOTENCY_CONFLICT")
    answer = service.ask("POST", "/v1/tasks", json=task, headers={"Idempotency-Key": "k2"})
    assert answer.status_code == 202
    for key in ("", "a" * 256):
        bad = service.ask("POST", "/v1/tasks", json=task, headers={"Idempotency-Key": key})
        assert is_problem(bad, 422, "INVALID_DATA")


def test_a_full_device_answers_429_and_a_full_store_503(store_url: str) -> None:
    limits = {"max_total_pending": 8, "max_per_mac_pending": 2, "low_mark_percent": 100}
    service = Service(store_url, **limits)
    try:
        answers = [service.enqueue() for _ in range(3)]
        assert [answer.status_code for answer in answers] == [202, 202, 429]
        assert is_problem(answers[-1], 429, "REFUSED")
        told = answers[-1].json()
        assert (told["reason"], told["pending"], told["limit"]) == ("device_full", 2, 2)
        assert int(answers[-1].headers["retry-after"]) == told["retry_after_seconds"] >= 1
        others = [service.enqueue(mac=f"02:00:00:00:01:{n:02x}") for n in range(8)]
        assert is_problem(others[-1], 503, "REFUSED")
        assert others[-1].json()["reason"] == "global_full"
        assert service.store.run(verbs.InspectTotals()).pending == 8
    finally:
        service.close()


def test_the_documents_admission_answers_503(store_url: str) -> None:
    service = Service(store_url, admission="system", max_per_mac_pending=1)
    try:
        codes = [service.enqueue().status_code for _ in range(3)]
        assert codes == [202, 202, 503], "everybody is refused while one device is over its limit"
    finally:
        service.close()


def batch(service: Service, items: object, kind: str = "application/json") -> httpx.Response:
    raw = items if isinstance(items, bytes) else json.dumps(items).encode()
    return service.ask("POST", "/v1/tasks:batch", content=raw, headers={"content-type": kind})


def test_a_batch_tells_a_verdict_for_each(service: Service) -> None:
    good = {"mac": MAC, "task_type": "text", "data": {}}
    items = [
        {**good, "task_id": "a"},
        {**good, "task_id": "a"},
        {**good, "task_id": "a", "data": {"other": 1}},
        {**good, "mac": "nobody"},
        {**good, "task_type": "no-such"},
        {**good, "data": {"t": "x" * 300_000}},
        {**good, "speed": 1},
        7,
        {**good, "idempotency_key": "k", "data": {"k": 1}},
        {**good, "idempotency_key": "k", "data": {"k": 2}},
    ]
    answer = batch(service, items)
    assert answer.status_code == 200
    verdicts = answer.json()["verdicts"]
    statuses = [verdict["status"] for verdict in verdicts]
    assert statuses == [202, 200, 409, 422, 422, 413, 422, 422, 202, 422]
    codes = [verdict.get("code") for verdict in verdicts[2:8]]
    assert codes == ["TASK_CONFLICT", "INVALID_MAC", "UNKNOWN_TASK_TYPE", "PAYLOAD_TOO_LARGE",
                     "INVALID_REQUEST", "INVALID_REQUEST"]  # fmt: skip
    assert service.store.run(verbs.InspectTotals()).pending == 2


def test_a_batch_may_be_lines(service: Service) -> None:
    task = json.dumps({"mac": MAC, "task_type": "text", "data": {"a": "\n"}}).encode()
    answer = batch(service, b"\n".join([task] * 300 + [b""]), "application/x-ndjson")
    assert [verdict["status"] for verdict in answer.json()["verdicts"]] == [202] * 200 + [429] * 100
    answer = batch(service, task + b"\n{", "application/x-ndjson")
    assert is_problem(answer, 422, "MALFORMED_JSON")


@pytest.mark.parametrize("items", [[], {}, 1, [{}] * 1_001])
def test_a_batch_that_is_none(service: Service, items: object) -> None:
    assert is_problem(batch(service, items), 422, "INVALID_REQUEST")


def test_where_the_service_is_mounted_its_locations_are_too(store_url: str) -> None:
    service = Service(store_url)
    try:
        service.mount("/fair")
        task = {"mac": MAC, "task_type": "text", "data": {}}
        sent = service.ask("POST", "/fair/v1/tasks", json=task)
        assert sent.headers["location"].startswith("/fair/v1/tasks/")
        assert service.ask("GET", sent.headers["location"]).status_code == 200
        assert service.ask("GET", "/fair/openapi.json").json()["servers"] == [{"url": "/fair"}]
    finally:
        service.close()


def test_a_caller_of_another_machine_is_not_let_in(service: Service) -> None:
    """A48: no credentials, 401 on everything but livez."""
    service.call_from("192.0.2.1")
    paths = ["/v1/tasks/x", "/v1/devices", f"/v1/devices/{MAC}", "/v1/dead-letters", "/v1/lanes",
             "/v1/workers", "/v1/watermark", "/v1/events", "/readyz", "/metrics", "/openapi.json",
             "/", "/nowhere"]  # fmt: skip
    for path in paths:
        answer = service.ask("GET", path)
        assert is_problem(answer, 401, "UNAUTHORIZED"), path
        assert answer.headers["www-authenticate"] == "Bearer"
    dead = ("/v1/dead-letters:redrive", "/v1/dead-letters:drop")
    for path in ("/v1/tasks", "/v1/tasks:batch", "/v1/tasks:cancel", *dead):
        assert is_problem(service.ask("POST", path, json={}), 401, "UNAUTHORIZED"), path
    assert is_problem(service.ask("PATCH", f"/v1/devices/{MAC}", json={}), 401, "UNAUTHORIZED")
    assert is_problem(service.ask("DELETE", "/v1/tasks/x"), 401, "UNAUTHORIZED")
    assert service.ask("GET", "/livez").json() == {"status": "ok"}


def test_what_is_hostile_is_told_as_text(service: Service) -> None:
    """A48: `<script>` in data, MAC and error text is shown as text."""
    answer = service.enqueue(mac="<script>alert(1)</script>")
    assert answer.headers["content-type"] == "application/problem+json"
    task_id = service.enqueue(data={"t": "<script>"}).json()["task_id"]
    told = service.ask("GET", f"/v1/tasks/{task_id}")
    assert told.headers["content-type"] == "application/json"


def test_a_method_that_a_path_lacks_is_told_those_it_has(service: Service) -> None:
    for path, methods in (("/v1/tasks/x", "DELETE, GET, HEAD"),
                          (f"/v1/devices/{MAC}", "GET, HEAD, PATCH")):  # fmt: skip
        answer = service.ask("PUT", path)
        assert is_problem(answer, 405, "METHOD_NOT_ALLOWED")
        assert answer.headers["allow"] == methods


def test_the_short_way_answers_what_the_long_one_does(service: Service) -> None:
    bodies: list[dict[str, Any]] = [
        {"task_id": "a"},
        {"task_id": "a", "data": {"n": 1}},
        {"mac": "x"},
        {"data": 1},
    ]
    service.enqueue(task_id="a")
    short = [service.enqueue(**fields) for fields in bodies]
    seen: list[str] = []

    class Seeing:
        """Middleware of somebody else's."""

        def __init__(self, app: Any) -> None:
            self.app = app

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            seen.append(scope["path"])
            await self.app(scope, receive, send)

    service.app.middleware_stack = None
    service.app.add_middleware(Seeing)
    long = [service.enqueue(**fields) for fields in bodies]
    assert seen == ["/v1/tasks"] * len(bodies), "it is not led past"
    assert [answer.status_code for answer in short] == [200, 409, 422, 422]
    for one, other in zip(short, long, strict=True):
        assert (one.status_code, one.json()) == (other.status_code, other.json())
        heads = [{**answer.headers, "x-request-id": ""} for answer in (one, other)]
        assert heads[0] == heads[1]
