"""The history and the settings over HTTP."""

from __future__ import annotations

from dataclasses import fields

import pytest

from fairlane import Settings, verbs
from fairlane.http.levels import History
from support.issuer import SECRET, issued
from support.service import Service, bearer, is_problem
from support.store import mac


def test_the_history_is_told_a_row_a_minute(service: Service) -> None:
    assert service.ask("GET", "/v1/history").json() == {"minutes": []}
    service.store.run(verbs.RecordMinute())
    service.store.enqueue(mac(1), "text", {})
    # As if the minute were over.
    keys, now_ms = service.store.keys, service.store.run(verbs.ReadRevocations()).now_ms
    with service.raw() as redis:
        slot, row = next(iter(redis.hgetall(keys.name("HISTORY")).items()))
        minute = now_ms // 60_000 - 1
        redis.hdel(keys.name("HISTORY"), slot)
        redis.hset(keys.name("HISTORY"), minute % 1440, f"{minute} {row.partition(' ')[2]}")
    service.store.run(verbs.RecordMinute())
    (told,) = service.ask("GET", "/v1/history", params={"minutes": 5}).json()["minutes"]
    assert (told["enqueued"], told["finished"], told["pending"], told["jain"]) == (1, 0, 1, None)
    assert told["at"].endswith("Z")
    assert History.model_validate({"minutes": [told]}).model_dump() == {"minutes": [told]}
    assert {lane["name"]: lane["pending"] for lane in told["lanes"]} == {"text": 1, "ocr": 0}
    for query in ("minutes=0", "minutes=1440", "hours=1"):
        assert is_problem(service.ask("GET", f"/v1/history?{query}"), 422, "INVALID_REQUEST")


def test_every_setting_is_told_with_its_source_and_no_secret(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLANE_BATCH_SIZE", "7")
    service = Service(store_url, token_secret=SECRET, batch_size=7)
    try:
        for role in ("viewer", "operator"):
            answer = service.ask("GET", "/v1/settings", headers=bearer(issued(service, role)))
            told = {each["setting"]: each for each in answer.json()["settings"]}
            assert {*told} == {item.name for item in fields(Settings)}
            assert SECRET not in answer.text
            assert told["token_secret"]["value"] == "***"
            assert (told["batch_size"]["value"], told["batch_size"]["source"]) == (
                "7",
                "FAIRLANE_BATCH_SIZE",
            )
            assert (told["policy"]["source"], told["policy"]["shared"]) == ("default", True)
            assert told["store_url"]["source"] == "the program"
        for role in ("producer", "device"):
            token = issued(service, role, mac(1) if role == "device" else "")
            for path in ("/v1/settings", "/v1/history"):
                answer = service.ask("GET", path, headers=bearer(token))
                assert is_problem(answer, 403, "FORBIDDEN")
    finally:
        service.close()


def test_what_the_store_decides_is_told_as_its(store_url: str) -> None:
    first = Service(store_url, batch_size=7)
    first.store.ping()
    second = Service(store_url)
    try:
        told = second.ask("GET", "/v1/settings").json()["settings"]
        assert (
            next(each for each in told if each["setting"] == "batch_size")["source"] == "the store"
        )
    finally:
        first.close()
        second.close()
