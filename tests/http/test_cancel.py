"""Many tasks cancelled over HTTP, chosen by the service."""

from __future__ import annotations

import pytest

from fairlane import verbs
from fairlane.http import cancel
from fairlane.model import TaskState
from support.issuer import SECRET, issued
from support.service import Service, bearer, is_problem
from support.store import mac

PATH = "/v1/tasks:cancel"


def test_all_that_waits_of_a_device(service: Service) -> None:
    for at in range(6):
        service.store.enqueue(mac(at % 2), "text", {}, task_id=f"t{at}")
    (leased,) = service.store.run(verbs.Claim("text", 1)).leased
    service.store.run(verbs.Start(leased.task_id, leased.attempt, "worker", "run"))
    assert leased.mac == mac(0)
    body = {"filter": {"mac": "0200.0000.0000"}}
    dry = service.ask("POST", PATH, json={**body, "dry_run": True}).json()
    assert dry == {"matched": 2, "done": 0, "dry_run": True, "next_cursor": None}
    told = service.ask("POST", PATH, json=body).json()
    assert told == {"matched": 2, "done": 2, "dry_run": False, "next_cursor": None}
    assert service.store.task(leased.task_id).state is TaskState.RUNNING
    assert [service.store.device(mac(at)).pending for at in (0, 1)] == [0, 3]
    again = service.ask("POST", PATH, json=body).json()
    assert (again["matched"], again["done"]) == (0, 0)


def test_it_goes_on_call_by_call(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancel, "SCAN", 4)
    for at in range(11):
        service.store.enqueue(mac(at % 3), "text", {}, task_id=f"{'ab'[at % 2]}{at}")
    matched, cursor = 0, ""
    for _ in range(9):
        answer = service.ask("POST", PATH, json={"filter": {"q": "a"}, "cursor": cursor}).json()
        assert answer["matched"] == answer["done"]
        matched, cursor = matched + answer["matched"], answer["next_cursor"]
        if cursor is None:
            break
    assert (matched, service.store.run(verbs.Overload()).global_pending) == (6, 5)


def test_by_ids_what_waits_and_what_is_handed_out_but_not_what_runs(service: Service) -> None:
    for name in "abc":
        service.store.enqueue(mac(1), "text", {}, task_id=name)
    running, _ = service.store.run(verbs.Claim("text", 2)).leased
    service.store.run(verbs.Start(running.task_id, running.attempt, "worker", "run"))
    told = service.ask("POST", PATH, json={"task_ids": ["a", "b", "c", "c", "unknown"]}).json()
    assert told == {"matched": 4, "done": 2, "dry_run": False, "next_cursor": None}
    assert service.store.task("a").state is TaskState.RUNNING
    forced = service.ask("POST", PATH, json={"filter": {"state": "running", "mac": mac(1)}}).json()
    assert forced["done"] == 1


def test_a_choice_that_is_none(service: Service) -> None:
    service.store.enqueue(mac(1), "text", {}, task_id="kept")
    bodies: tuple[dict[str, object], ...] = (
        {}, {"filter": {}}, {"filter": {}, "all": 1}, {"all": True}, {"task_ids": []},
        {"task_ids": ["kept"], "filter": {"mac": mac(1)}}, {"task_ids": ["kept"], "all": True},
        {"filter": {"mac": mac(1)}, "all": True}, {"filter": {"speed": 1}}, {"filter": {"q": ""}},
        {"filter": {"state": "done"}}, {"filter": {"created_after": 0}}, {"filter": {"lane": ""}},
        {"filter": {"mac": None}},
    )  # fmt: skip
    for body in bodies:
        assert is_problem(service.ask("POST", PATH, json=body), 422, "INVALID_REQUEST"), body
    assert is_problem(service.ask("POST", PATH, json={"filter": {"mac": "zz"}}), 422, "INVALID_MAC")
    forged = service.ask("POST", PATH, json={"filter": {"mac": mac(1)}, "cursor": "x"})
    assert is_problem(forged, 422, "INVALID_DATA")
    assert service.store.task("kept").state is TaskState.PENDING
    everything = service.ask("POST", PATH, json={"filter": {}, "all": True}).json()
    assert everything["done"] == 1


def test_each_role_cancels_what_it_may(store_url: str) -> None:
    service = Service(store_url, token_secret=SECRET)
    try:
        for at in (1, 2):
            service.store.enqueue(mac(at), "text", {}, task_id=f"t{at}", site=f"s{at}")

        def asked(token: str, body: dict[str, object]) -> int:
            answer = service.ask("POST", PATH, json=body, headers=bearer(token))
            if answer.status_code != 200:
                assert is_problem(answer, 403, "FORBIDDEN")
                return -1
            done: int = answer.json()["done"]
            return done

        device = issued(service, "device", mac(1))
        producer = issued(service, "producer", site="s2")
        every: dict[str, object] = {"filter": {}, "all": True}
        assert asked(issued(service, "viewer"), every) == -1
        assert asked(device, {"filter": {"mac": mac(2)}}) == -1
        assert asked(device, {"task_ids": ["t1"]}) == asked(producer, {"task_ids": ["t2"]}) == -1
        assert asked(producer, every) == asked(producer, {"filter": {"mac": mac(1)}}) == -1
        assert asked(producer, {"filter": {"mac": mac(2)}}) == 1
        assert asked(device, every) == 1
    finally:
        service.close()


@pytest.mark.parametrize("blank", [" ", "\t\n", "\u3000", "\x1f"])
def test_blanks_are_no_filter(service: Service, blank: str) -> None:
    task_id = service.enqueue().json()["task_id"]
    answer = service.ask("POST", "/v1/tasks:cancel", json={"filter": {"q": blank}})
    assert is_problem(answer, 422, "INVALID_REQUEST")
    assert service.store.task(task_id).state is TaskState.PENDING
