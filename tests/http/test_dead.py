"""Dead letters over HTTP: listed by filter, brought back, dropped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from fairlane import verbs
from fairlane.http import dead
from fairlane.model import TaskState
from support.eventually import eventually
from support.service import Service, is_problem
from support.store import mac

LIST, REDRIVE, DROP = "/v1/dead-letters", "/v1/dead-letters:redrive", "/v1/dead-letters:drop"


@pytest.fixture
def service(store_url: str) -> Iterator[Service]:
    service = Service(store_url, max_attempts=1)
    yield service
    service.close()


def bury(service: Service, device: int, cause: str = "boom") -> str:
    """Let a task of a device die; return its id."""
    task_id = service.store.enqueue(mac(device), "text", {"of": device}).task_id
    (leased,) = service.store.run(verbs.Claim("text", 1)).leased
    service.store.run(verbs.Start(task_id, leased.attempt, "worker", "run"))
    service.store.run(verbs.Fail(task_id, leased.attempt, cause, "Traceback: <script>"))
    assert service.store.task(task_id).state is TaskState.DEAD
    return task_id


def listed(service: Service, **query: str) -> list[str]:
    letters = service.ask("GET", LIST, params=query).json()["dead_letters"]
    return [letter["task_id"] for letter in letters]


def test_dead_letters_are_told_whole_newest_first(service: Service) -> None:
    first, second = bury(service, 1), bury(service, 2)
    answer = service.ask("GET", LIST).json()
    assert [letter["task_id"] for letter in answer["dead_letters"]] == [second, first]
    assert answer["next_cursor"] is None
    letter = answer["dead_letters"][1]
    assert (letter["state"], letter["cause"], letter["data"]) == ("dead", "boom", {"of": 1})
    assert letter["error"] == "Traceback: <script>"


def test_a_filter_tells_which(service: Service) -> None:
    one = bury(service, 1, "boom")
    # A limit of time cannot tell two of the same millisecond.
    ended_ms = service.store.task(one).ended_at_ms
    with redis.Redis.from_url(service.settings.store_url) as raw:
        eventually(lambda: raw.time()[0] * 1000 + raw.time()[1] // 1000 > ended_ms + 1)
    other = bury(service, 2, "crash")
    assert listed(service, mac="0200.0000.0001") == [one]
    assert listed(service, cause="crash") == [other]
    assert listed(service, task_type="ocr") == []
    ended = service.ask("GET", f"/v1/tasks/{other}").json()["ended_at"]
    assert listed(service, before=ended) == [one]
    assert listed(service, after=ended, mac=mac(1)) == []
    assert is_problem(service.ask("GET", f"{LIST}?mac=zz"), 422, "INVALID_MAC")
    assert is_problem(service.ask("GET", f"{LIST}?after=now"), 422, "INVALID_REQUEST")


def test_pages_hold_each_letter_once(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    # Pages that end in the middle of what is read at once, and looks that find too little.
    monkeypatch.setattr(dead, "_AT_ONCE", 3)
    monkeypatch.setattr(dead, "SCAN", 3)
    buried = [bury(service, number % 2) for number in range(2, 12)]
    seen, cursor = [], ""
    while cursor is not None:
        page = service.ask("GET", LIST, params={"limit": 2, "cursor": cursor}).json()
        seen += [letter["task_id"] for letter in page["dead_letters"]]
        cursor = page["next_cursor"]
    assert seen == buried[::-1]


def test_a_dead_letter_that_is_redriven_runs_anew(service: Service) -> None:
    """A10: attempts and defers start anew, payload intact."""
    task_id, other = bury(service, 1), bury(service, 2)
    answer = service.ask("POST", REDRIVE, json={"task_ids": [task_id, task_id, "unknown"]})
    assert answer.json() == {"matched": 2, "done": 1, "dry_run": False, "next_cursor": None}
    told = service.ask("GET", f"/v1/tasks/{task_id}").json()
    assert (told["state"], told["failures"], told["data"]) == ("pending", 0, {"of": 1})
    assert listed(service) == [other]
    again = service.ask("POST", REDRIVE, json={"task_ids": [task_id]})
    assert again.json()["done"] == 0


def test_a_dry_run_counts_and_changes_nothing(service: Service) -> None:
    bury(service, 1)
    for path in (REDRIVE, DROP):
        answer = service.ask("POST", path, json={"filter": {"mac": mac(1)}, "dry_run": True}).json()
        assert (answer["matched"], answer["done"], answer["dry_run"]) == (1, 0, True)
    assert len(listed(service)) == 1


def test_what_is_wrong_with_a_choice_is_told_by_its_names(service: Service) -> None:
    """No class of the server's is named, and who misspells a field is told those there are."""
    fields = "mac, task_type, cause, after, before"
    for path, body, told in (
        (DROP, {"filter": {"speed": 1}}, f"body.filter.speed: not known; known are {fields}"),
        (DROP, {"ids": ["x"]}, "known are task_ids, filter, all, cursor, dry_run"),
        (REDRIVE, {"dry_run": True}, "body: send `task_ids` or `filter`, one of the two"),
        (DROP, {"filter": {}}, 'add `"all": true`'),
    ):
        answer = service.ask("POST", path, json=body)
        assert is_problem(answer, 422, "INVALID_REQUEST")
        assert told in answer.json()["detail"]
        assert "ByIds" not in answer.text
    answer = service.ask("GET", f"{LIST}?colour=red")
    assert f"known are {fields}, limit, cursor" in answer.json()["detail"]
    answer = service.enqueue(type="text")
    assert "known are mac, task_type, data, task_id" in answer.json()["detail"]
    answer = service.ask("PATCH", f"/v1/devices/{mac(1)}", json={"wait": 1})
    assert "known are weight, paused" in answer.json()["detail"]


def test_everything_is_dropped_only_if_it_is_said(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead, "_AT_ONCE", 2)
    monkeypatch.setattr(dead, "SCAN", 4)
    buried = [bury(service, number) for number in range(1, 8)]
    unsaid: tuple[dict[str, object], ...] = (
        {}, {"dry_run": False}, {"filter": {}, "task_ids": ["x"]}, {"task_ids": []},
        {"filter": None}, {"filter": {"speed": 1}}, {"filter": {"after": 0}}, {"mac": mac(1)},
        {"filter": {"before": "2026-01-31"}}, {"filter": {}, "cursor": "x"}, {"filter": {}},
        {"filter": {"mac": None, "cause": None}},
        {"filter": {}, "all": 1}, {"all": True}, {"task_ids": ["x"], "all": True},
        {"filter": {"mac": mac(1)}, "all": True},
    )  # fmt: skip
    for body in unsaid:
        assert is_problem(service.ask("POST", DROP, json=body), 422, "INVALID_REQUEST")
    assert len(listed(service, limit="200")) == 4
    cursor, done = "", 0
    while cursor is not None:
        answer = service.ask(
            "POST", DROP, json={"filter": {}, "all": True, "cursor": cursor}
        ).json()
        done, cursor = done + answer["done"], answer["next_cursor"]
    assert done == len(buried)
    assert service.store.run(verbs.InspectTotals()).dead_letters == 0


def test_letters_are_counted_by_cause_call_by_call(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, cause in enumerate(("boom", "boom", "crash", "boom")):
        last = bury(service, number + 1, cause)
    told = service.ask("GET", f"{LIST}/causes").json()
    assert [(one["cause"], one["task_type"], one["count"]) for one in told["causes"]] == [
        ("boom", "text", 3),
        ("crash", "text", 1),
    ]
    assert told["next_cursor"] is None
    ended = service.ask("GET", f"/v1/tasks/{last}").json()["ended_at"]
    assert told["causes"][0]["newest_at"] == ended
    only = service.ask("GET", f"{LIST}/causes", params={"mac": mac(3)}).json()
    assert [one["cause"] for one in only["causes"]] == ["crash"]
    monkeypatch.setattr(dead, "SCAN", 2)
    monkeypatch.setattr(dead, "_AT_ONCE", 2)
    first = service.ask("GET", f"{LIST}/causes").json()
    rest = service.ask("GET", f"{LIST}/causes", params={"cursor": first["next_cursor"]}).json()
    assert sum(one["count"] for one in first["causes"] + rest["causes"]) == 4


@pytest.mark.parametrize("way", [REDRIVE, DROP])
def test_what_another_acted_on_meanwhile_hides_nothing(
    service: Service, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Where it goes on counts from the list's head, also after a reply that was lost."""
    monkeypatch.setattr(dead, "_AT_ONCE", 2)
    monkeypatch.setattr(dead, "SCAN", 4)
    for number in range(1, 10):
        bury(service, number)
    gate = service.app.state.gate
    run = gate.run

    async def twice(verb: Any) -> Any:
        if isinstance(verb, verbs.Redrive | verbs.Drop):
            await run(verb)
        return await run(verb)

    monkeypatch.setattr(gate, "run", twice)
    cursor: str | None = ""
    matched = pages = 0
    while cursor is not None and pages < 10:
        asked = {"filter": {"task_type": "text"}, "cursor": cursor}
        told = service.ask("POST", way, json=asked).json()
        matched, cursor, pages = matched + told["matched"], told["next_cursor"], pages + 1
    assert (matched, cursor, listed(service)) == (9, None, [])


def test_letters_that_nobody_can_redrive_are_passed(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead, "_AT_ONCE", 2)
    monkeypatch.setattr(dead, "SCAN", 4)
    buried = [bury(service, number) for number in range(1, 10)]
    with service.raw() as raw:
        for task_id in buried[3:]:
            raw.hset(service.store.keys.task(task_id), "mac", "")
    cursor: str | None = ""
    done = pages = 0
    while cursor is not None and pages < 10:
        asked = {"filter": {"task_type": "text"}, "cursor": cursor}
        told = service.ask("POST", REDRIVE, json=asked).json()
        done, cursor, pages = done + told["done"], told["next_cursor"], pages + 1
    assert (done, cursor) == (3, None)


def test_a_record_that_is_gone_hides_none_after_it(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead, "_AT_ONCE", 2)
    buried = [bury(service, number) for number in range(1, 6)]
    with service.raw() as raw:
        raw.delete(service.store.keys.task(buried[3]))
    assert listed(service) == [buried[4], *buried[2::-1]]
