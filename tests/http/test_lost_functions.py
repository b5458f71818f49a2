"""A14: functions and scripts that vanish from the server between any two calls."""

from __future__ import annotations

from typing import Any

from support.service import Service
from support.store import mac


def test_no_call_meets_a_server_without_its_functions(service: Service) -> None:
    def ask(method: str, path: str, **options: Any) -> Any:
        with service.raw() as redis:
            redis.function_flush()
            redis.script_flush()
        return service.ask(method, path, **options)

    task = {"mac": mac(1), "task_type": "text", "data": {}}
    accepted = ask("POST", "/v1/tasks", json=task)
    assert accepted.status_code == 202
    task_id = accepted.json()["task_id"]
    batch = ask("POST", "/v1/tasks:batch", json=[task, task])
    assert [verdict["status"] for verdict in batch.json()["verdicts"]] == [202, 202]
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", f"/v1/tasks/{task_id}", {}),
        ("GET", f"/v1/tasks/{task_id}/explain", {}),
        ("GET", "/v1/tasks", {}),
        ("GET", "/v1/devices", {}),
        ("GET", f"/v1/devices/{mac(1)}", {}),
        ("PATCH", f"/v1/devices/{mac(1)}", {"json": {"weight": 2}}),
        ("GET", "/v1/lanes", {}),
        ("GET", "/v1/workers", {}),
        ("GET", "/v1/history", {}),
        ("GET", "/v1/dead-letters", {}),
        ("POST", "/v1/dead-letters:drop", {"json": {"filter": {}, "all": True}}),
        ("GET", "/metrics", {}),
        ("DELETE", f"/v1/tasks/{task_id}", {}),
    ]
    for method, path, options in calls:
        answer = ask(method, path, **options)
        assert answer.status_code == 200, (method, path, answer.text)
    assert ask("GET", "/readyz").json()["checks"]
