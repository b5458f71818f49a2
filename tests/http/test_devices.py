"""Devices over HTTP: listed, read, configured."""

from __future__ import annotations

import pytest

from fairlane import verbs
from fairlane.model import DeviceLimits
from support.service import Service, is_problem
from support.store import mac

PATH = f"/v1/devices/{mac(1)}"
DEFAULT = {"weight": 1.0, "paused": False, "min_running": 0, "max_running": 0, "rate_per_s": 0.0,
           "site": ""}  # fmt: skip


def test_devices_come_page_by_page_the_longest_backlogged_first(service: Service) -> None:
    for number in range(1, 6):
        service.store.enqueue(mac(number), "text", {})
    seen, cursor = [], ""
    for expected in (2, 2, 1):
        page = service.ask("GET", "/v1/devices", params={"limit": 2, "cursor": cursor}).json()
        assert len(page["devices"]) == expected
        seen += [device["mac"] for device in page["devices"]]
        cursor = page["next_cursor"]
    assert cursor is None
    assert seen == [mac(number) for number in range(1, 6)]


@pytest.mark.parametrize("query", ["limit=0", "limit=201", "limit=x", "cursor=zz", "page=2"])
def test_a_page_that_is_none(service: Service, query: str) -> None:
    assert is_problem(service.ask("GET", f"/v1/devices?{query}"), 422, "INVALID_REQUEST")


def test_a_device_tells_its_load_place_and_score_in_any_notation(service: Service) -> None:
    service.store.enqueue(mac(1), "text", {})
    told = service.ask("GET", "/v1/devices/0200.0000.0001").json()
    assert (told["mac"], told["pending"], told["site"]) == (mac(1), 1, "default")
    assert told["score"] == pytest.approx(told["waited_seconds"])
    (lane,) = (lane for lane in told["lanes"] if lane["lane"] == "text")
    assert (lane["rank"], lane["held_by"], lane["pending"]) == (0, "", 1)
    (idle,) = (lane for lane in told["lanes"] if lane["lane"] == "ocr")
    assert (idle["rank"], idle["held_by"]) == (None, "nothing queued")


def test_what_is_not_named_stays_and_null_is_the_default(service: Service) -> None:
    limits = {"weight": 2.5, "max_running": 3, "rate_per_s": 10, "site": "lab"}
    assert service.ask("PATCH", PATH, json=limits).json() == {**DEFAULT, **limits}
    assert service.ask("PATCH", PATH, json={"paused": True}).json()["weight"] == 2.5
    cleared = dict.fromkeys((*limits, "paused"))
    assert service.ask("PATCH", PATH, json=cleared).json() == DEFAULT
    assert service.ask("PATCH", PATH, json={}).json() == DEFAULT
    assert service.store.device(mac(1)).limits == DeviceLimits()


@pytest.mark.parametrize(
    "limits",
    [{"weight": "2"}, {"weight": 0}, {"weight": True}, {"paused": 1}, {"max_running": -1},
     {"max_running": 1.5}, {"rate_per_s": 1e-9}, {"site": "A B"}, {"speed": 1}, [], "x"],
)  # fmt: skip
def test_limits_that_are_none(service: Service, limits: object) -> None:
    answer = service.ask("PATCH", PATH, json=limits)
    assert answer.status_code == 422
    assert service.store.device(mac(1)).limits == DeviceLimits()


def test_only_what_was_seen_is_changed(service: Service) -> None:
    seen = service.ask("GET", PATH).headers["etag"]
    first = service.ask("PATCH", PATH, json={"weight": 2}, headers={"If-Match": seen})
    assert first.status_code == 200
    assert first.headers["etag"] == service.ask("GET", PATH).headers["etag"] != seen
    late = service.ask("PATCH", PATH, json={"weight": 3}, headers={"If-Match": seen})
    assert is_problem(late, 412, "LIMITS_CHANGED")
    weak = service.ask("PATCH", PATH, json={"weight": 3}, headers={"If-Match": f"W/{seen}"})
    assert is_problem(weak, 412, "LIMITS_CHANGED")
    # Sent again because its answer was lost, it is done already.
    again = service.ask("PATCH", PATH, json={"weight": 2}, headers={"If-Match": seen})
    assert again.json()["weight"] == 2
    several = f'"0000000000000000", {first.headers["etag"]}'
    last = service.ask("PATCH", PATH, json={"weight": 3}, headers={"If-Match": several})
    assert last.json()["weight"] == 3
    assert service.ask("PATCH", PATH, json={}, headers={"If-Match": "*"}).status_code == 200


def test_lanes_workers_and_the_watermark_are_those_of_the_store(service: Service) -> None:
    service.store.enqueue(mac(1), "text", {})
    service.store.run(verbs.Heartbeat("host:1:a", ["text"], 3, report={"reason": "busy"}))
    lanes = {lane["name"]: lane for lane in service.ask("GET", "/v1/lanes").json()["lanes"]}
    assert (lanes["text"]["pending"], lanes["text"]["slots"]) == (1, 3)
    assert (lanes["text"]["next_mac"], lanes["ocr"]["pending"]) == (mac(1), 0)
    (worker,) = service.ask("GET", "/v1/workers").json()["workers"]
    assert (worker["worker_id"], worker["slots"], worker["reason"]) == ("host:1:a", 3, "busy")
    assert worker["last_heartbeat"].endswith("Z")

    assert is_problem(service.ask("GET", "/v1/watermark"), 404, "WATERMARK_NOT_FOUND")
    service.store.run(verbs.Watermark())
    assert service.ask("GET", "/v1/watermark").json()["total_pending"] == 1


def test_devices_are_found_by_the_beginning_of_their_address_in_any_notation(
    service: Service,
) -> None:
    for address in ("02:00:00:00:ab:01", "02:00:00:00:ab:02", "04:00:00:00:ab:01"):
        service.store.enqueue(address, "text", {})
    for begin in ("02:00", "0200", "02-00-00", "0200.0000.AB"):
        page = service.ask("GET", "/v1/devices", params={"q": begin}).json()
        assert [device["mac"][-2:] for device in page["devices"]] == ["01", "02"], begin
        assert page["next_cursor"] is None
    first = service.ask("GET", "/v1/devices", params={"q": "02", "limit": 1}).json()
    assert first["next_cursor"] == "o1"
    rest = {"q": "02", "limit": 1, "cursor": first["next_cursor"]}
    assert service.ask("GET", "/v1/devices", params=rest).json()["devices"][0]["mac"][-2:] == "02"
    whole = service.ask("GET", "/v1/devices", params={"q": "06-00-00-00-AB-01"}).json()
    assert [(device["mac"], device["pending"]) for device in whole["devices"]] == [
        ("06:00:00:00:ab:01", 0)
    ], "a whole address also finds a device that has nothing pending"
    assert service.ask("GET", "/v1/devices", params={"q": "zz"}).json()["devices"] == []


def test_devices_are_found_by_what_holds_them(service: Service) -> None:
    for number in range(1, 8):
        service.store.enqueue(mac(number), "text", {})
        service.store.run(verbs.Configure(mac(number), paused=number % 3 == 0))

    def found(state: str) -> list[str]:
        seen, cursor = [], ""
        while cursor is not None:
            query = {"state": state, "limit": 2, "cursor": cursor}
            page = service.ask("GET", "/v1/devices", params=query).json()
            assert len(page["devices"]) <= 2
            seen += [device["mac"] for device in page["devices"]]
            cursor = page["next_cursor"]
        return seen

    assert found("paused") == [mac(3), mac(6)]
    assert found("going") == [mac(number) for number in (1, 2, 4, 5, 7)]
    assert found("backoff") == []
    assert is_problem(
        service.ask("GET", "/v1/devices", params={"state": "x"}), 422, "INVALID_REQUEST"
    )
