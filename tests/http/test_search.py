"""Tasks searched for over HTTP."""

from __future__ import annotations

from fairlane import verbs
from fairlane.verbs.search import FEW_LOOKED
from support.issuer import SECRET, issued
from support.service import Service, bearer, is_problem
from support.store import mac

PATH = "/v1/tasks"


def test_a_search_says_what_it_found_and_where_to_go_on(service: Service) -> None:
    for number in range(5):
        service.store.enqueue(mac(number), "text", {"secret": number}, task_id=f"t{number}")
    seen, cursor = [], ""
    for _ in range(4):
        page = service.ask("GET", PATH, params={"limit": 2, "cursor": cursor}).json()
        seen += [task["task_id"] for task in page["tasks"]]
        assert page["finished"] is (page["next_cursor"] is None)
        cursor = page["next_cursor"]
        if page["finished"]:
            break
    assert seen == ["t4", "t3", "t2", "t1", "t0"]
    assert "data" not in page["tasks"][0] if page["tasks"] else True
    assert page["ended_since"] is not None


def test_every_filter_over_http(service: Service) -> None:
    service.store.enqueue(mac(1), "text", {}, task_id="one")
    service.store.enqueue(mac(2), "ocr", {}, task_id="two")
    (leased,) = service.store.run(verbs.Claim("text", 1)).leased
    service.store.run(verbs.Start("one", leased.attempt, "worker", "run"))
    service.store.run(verbs.Fail("one", leased.attempt, "handler", "<script>", final=True))
    for query, expected in (
        ({"state": "failed"}, ["one"]),
        ({"state": "pending"}, ["two"]),
        ({"mac": "0200.0000.0001"}, ["one"]),
        ({"task_type": "ocr"}, ["two"]),
        ({"cause": "handler"}, ["one"]),
        ({"q": "<SCRIPT"}, ["one"]),
        ({"q": "tw"}, ["two"]),
        ({"created_before": "2020-01-01T00:00:00Z"}, []),
        ({"created_after": "2020-01-01T00:00:00Z", "q": "one"}, ["one"]),
    ):
        page = service.ask("GET", PATH, params=query).json()
        assert [task["task_id"] for task in page["tasks"]] == expected, query
        assert page["finished"]


def test_a_search_that_is_none(service: Service) -> None:
    for query in ("state=lost", "limit=0", "created_after=1", "colour=red"):
        assert is_problem(service.ask("GET", f"{PATH}?{query}"), 422, "INVALID_REQUEST")
    for mac_ in ("zz", ""):
        assert is_problem(service.ask("GET", f"{PATH}?mac={mac_}"), 422, "INVALID_MAC")
    for forged in ("x", "0~abc~foo", "0~nan~foo", "0~-~foo", "0~(5~a", "0~0x10~a", "3~0-0"):
        answer = service.ask("GET", PATH, params={"cursor": forged})
        assert is_problem(answer, 422, "INVALID_DATA"), forged


def test_each_role_finds_what_it_may_see(store_url: str) -> None:
    service = Service(store_url, token_secret=SECRET)
    try:
        service.store.enqueue(mac(1), "text", {}, task_id="one", site="lab")
        service.store.enqueue(mac(2), "text", {}, task_id="two")

        def found(token: str, **query: str) -> list[str]:
            page = service.ask("GET", PATH, params=query, headers=bearer(token))
            assert page.status_code == 200, page.text
            return [task["task_id"] for task in page.json()["tasks"]]

        def refused(token: str, **query: str) -> bool:
            answer = service.ask("GET", PATH, params=query, headers=bearer(token))
            return is_problem(answer, 403, "FORBIDDEN")

        for role in ("viewer", "operator", "producer"):
            assert found(issued(service, role)) == ["two", "one"]
        device = issued(service, "device", mac(1))
        assert found(device) == found(device, mac=mac(1)) == found(device, q="on") == ["one"]
        # A device that searches for another one's address, or for its task by its id.
        assert found(device, q="two") == []
        assert refused(device, mac=mac(2))
        lab = issued(service, "producer", site="lab")
        assert found(lab, mac=mac(1)) == ["one"]
        assert refused(lab)
        assert refused(lab, mac=mac(2))
    finally:
        service.close()


def test_who_is_one_of_many_looks_at_few_entries_a_call(store_url: str) -> None:
    service = Service(store_url, token_secret=SECRET)
    try:
        for number in range(FEW_LOOKED + 100):
            service.store.enqueue(mac(number), "text", {})
        viewer, producer = issued(service, "viewer"), issued(service, "producer")
        device = issued(service, "device", mac(0))
        for token, looked in ((viewer, 0), (producer, FEW_LOOKED), (device, FEW_LOOKED)):
            for query in ({"q": "zzz"}, {"state": "done", "q": "zzz"}):
                page = service.ask("GET", PATH, params=query, headers=bearer(token)).json()
                if looked:
                    assert page["looked"] <= looked, query
                    assert page["finished"] or page["next_cursor"]
                else:
                    assert page["looked"] > FEW_LOOKED
        # The bound is what ends the producer's first call.
        page = service.ask("GET", PATH, params={"q": "zzz"}, headers=bearer(producer)).json()
        assert (page["looked"], page["finished"]) == (FEW_LOOKED, False)
    finally:
        service.close()


def test_a_task_tells_its_timeline(service: Service) -> None:
    service.store.enqueue(mac(1), "text", {}, task_id="one")
    (leased,) = service.store.run(verbs.Claim("text", 1)).leased
    service.store.run(verbs.Start("one", leased.attempt, "host:1:a", "run"))
    service.store.run(verbs.Finish("one", leased.attempt, {"found": 1}))
    told = service.ask("GET", f"{PATH}/one").json()
    assert [each["event"] for each in told["timeline"]] == [
        "accepted",
        "claimed",
        "started",
        "done",
    ]
    assert (told["timeline"][2]["worker"], told["result"]) == ("host:1:a", {"found": 1})
    assert told["timeline"][3]["at"] == told["ended_at"]


def test_a_task_explains_why_it_waits(service: Service) -> None:
    service.store.enqueue(mac(1), "text", {}, task_id="one")
    service.store.enqueue(mac(1), "text", {}, task_id="two")
    told = service.ask("GET", f"{PATH}/two/explain").json()
    assert (told["reason"], told["place"], told["ahead"]) == ("no_worker", 1, 1)
    assert (told["start_p50_seconds"], told["until"]) == (None, None)
    service.store.run(verbs.Heartbeat("host:1:a", ["text"], 1))
    told = service.ask("GET", f"{PATH}/two/explain").json()
    assert (told["reason"], told["slots"]) == ("behind", 1)
    assert told["start_p50_seconds"] <= told["start_p90_seconds"]
    assert told["start_p90_at"].endswith("Z")
    assert is_problem(service.ask("GET", f"{PATH}/none/explain"), 404, "TASK_NOT_FOUND")
