"""Tasks over HTTP: sent, known again, read, cancelled."""

from __future__ import annotations

from datetime import datetime

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
