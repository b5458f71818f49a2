"""The live feed and the metrics: what is told is what the store has."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fairlane import AsyncClient, Client, Settings, verbs
from fairlane.http.events import EventStream
from fairlane.http.feed import BEHIND, MOST_MISSED, Feed, Watcher
from fairlane.http.gate import Gate
from support.eventually import eventually
from support.service import Service, is_problem, served
from support.store import mac


def parsed(message: bytes) -> tuple[str, str, Any]:
    """Return id, event and data of a message."""
    fields = dict(line.split(": ", 1) for line in message.decode().strip().splitlines())
    return fields.get("id", ""), fields["event"], json.loads(fields["data"])


async def told(watcher: Watcher) -> tuple[str, str, Any]:
    """Return the next message, which must be there."""
    message = await watcher.next(0.5)
    assert message is not None
    return parsed(message)


class Watched:
    """A feed that looks when it is told to, over a store that a client changes."""

    def __init__(self, url: str) -> None:
        self.client = Client(Settings(store_url=url))
        self._async = AsyncClient(Settings(store_url=url))
        self.feed = Feed(Gate(self._async), every_s=3_600)

    async def close(self) -> None:
        await self.feed.close()
        await self._async.close()
        self.client.close()


@pytest.fixture
def watched(store_url: str) -> Any:
    """Run a coroutine function over a feed."""

    def run(scenario: Any) -> None:
        async def all_of_it() -> None:
            feed = Watched(store_url)
            try:
                await scenario(feed)
            finally:
                await feed.close()

        asyncio.run(all_of_it())

    return run


def test_a_snapshot_comes_first_then_what_changes(watched: Any) -> None:
    async def scenario(on: Watched) -> None:
        on.client.enqueue(mac(1), "text", {})
        watcher = await on.feed.watch("")
        first, kind, data = await told(watcher)
        assert kind == "snapshot"
        assert data["totals"]["pending"] == 1
        assert {lane["name"]: lane["pending"] for lane in data["lanes"]} == {"ocr": 0, "text": 1}

        task_id = on.client.enqueue(mac(2), "text", {}).task_id
        await on.feed.look()
        second, kind, data = await told(watcher)
        assert kind == "delta"
        (event,) = data["events"]
        assert (event["event"], event["mac"], event["tasks"]) == ("accepted", mac(2), [task_id])
        assert second == event["id"] > first
        assert data["totals"]["pending"] == 2
        assert "workers" not in data, "they did not change"

        await on.feed.look()
        with pytest.raises(TimeoutError):
            await watcher.next(0.05)

    watched(scenario)


def test_who_comes_back_gets_what_he_missed_and_nothing_twice(watched: Any) -> None:
    async def scenario(on: Watched) -> None:
        first = await on.feed.watch("")
        on.client.enqueue(mac(1), "text", {})
        await on.feed.look()
        await told(first)
        last, _, _ = await told(first)
        on.feed.leave(first)

        missed = [on.client.enqueue(mac(2), "text", {}).task_id for _ in range(3)]
        again = await on.feed.watch(last)
        _, kind, data = await told(again)
        assert kind == "delta"
        assert [event["tasks"] for event in data["events"]] == [[task_id] for task_id in missed]
        new = on.client.enqueue(mac(3), "text", {}).task_id
        await on.feed.look()
        _, _, data = await told(again)
        assert [event["tasks"] for event in data["events"]] == [[new]]

    watched(scenario)


def test_an_id_that_the_stream_does_not_reach_is_answered_by_a_snapshot(watched: Any) -> None:
    async def scenario(on: Watched) -> None:
        on.client.enqueue(mac(1), "text", {})
        watcher = await on.feed.watch("1-0")
        assert (await told(watcher))[1] == "snapshot"

    watched(scenario)


def test_who_missed_too_much_gets_a_snapshot_and_goes_on(watched: Any) -> None:
    """He is not told to come back by the same id, for ever."""

    async def scenario(on: Watched) -> None:
        on.client.enqueue(mac(1), "text", {})
        first = await on.feed.watch("")
        last, _, _ = await told(first)
        on.feed.leave(first)
        ids = [f"t{number}" for number in range(MOST_MISSED // 2 + 1)]
        for at in range(0, len(ids), 100):
            part = ids[at : at + 100]
            on.client.run_many(
                [verbs.Enqueue(mac(2), "text", {}, task_id=task_id) for task_id in part]
                + [verbs.Cancel(task_id) for task_id in part]
            )
        again = await on.feed.watch(last)
        newest, kind, data = await told(again)
        assert kind == "snapshot"
        assert data["lanes"]
        on.client.enqueue(mac(1), "text", {})
        await on.feed.look()
        _, kind, data = await told(again)
        assert (kind, len(data["events"])) == ("delta", 1)
        on.feed.leave(again)

        third = await on.feed.watch(newest)
        assert (await told(third))[1] == "delta"

    watched(scenario)


def test_each_who_comes_is_told_the_levels(watched: Any) -> None:
    """Also when nobody has watched for a while, and whatever was read meanwhile."""

    async def scenario(on: Watched) -> None:
        for looks in (0, 1, 2):
            for _ in range(looks):
                await on.feed.look()
            on.client.enqueue(mac(1), "text", {})
            watcher = await on.feed.watch("")
            _, kind, data = await told(watcher)
            assert (kind, data["totals"]["pending"]) == ("snapshot", looks + 1)
            on.feed.leave(watcher)

    watched(scenario)


def test_what_happens_while_one_reads_what_he_missed_is_told_too(watched: Any) -> None:
    async def scenario(on: Watched) -> None:
        on.client.enqueue(mac(3), "text", {})
        first = await on.feed.watch("")
        last, _, _ = await told(first)
        read = on.feed._missed

        async def slowly(after: str) -> Any:
            missed = await read(after)
            task_ids.append(on.client.enqueue(mac(2), "text", {}).task_id)
            looking = asyncio.create_task(on.feed.look())
            await asyncio.wait([looking], timeout=0.5)
            running.append(looking)
            return missed

        task_ids = [on.client.enqueue(mac(1), "text", {}).task_id]
        running: list[asyncio.Task[None]] = []
        on.feed._missed = slowly  # type: ignore[method-assign]
        again = await on.feed.watch(last)
        await running[0]
        seen = [event["tasks"] for _ in range(2) for event in (await told(again))[2]["events"]]
        assert seen == [[task_id] for task_id in task_ids]

    watched(scenario)


def test_who_does_not_keep_up_is_dropped(watched: Any) -> None:
    async def scenario(on: Watched) -> None:
        slow, quick = await on.feed.watch(""), await on.feed.watch("")
        for _ in range(BEHIND + 1):
            on.client.enqueue(mac(1), "text", {})
            await on.feed.look()
            await told(quick)
        assert await slow.next(0.5) is None
        on.client.enqueue(mac(1), "text", {})
        await on.feed.look()
        await told(quick)
        with pytest.raises(TimeoutError):
            await slow.next(0.01)

    watched(scenario)


def test_a_silent_stream_pings_and_a_blocked_one_is_cut(
    watched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlane.http.events.SLOW_S", 0.2)

    async def scenario(on: Watched) -> None:
        sent: list[bytes] = []

        async def receive() -> Any:
            await asyncio.Event().wait()

        async def send(message: Any) -> None:
            sent.append(message.get("body", b""))
            if sent[-1] == b": ping\n\n":
                await asyncio.Event().wait()  # the reader's socket is full

        scope = {"type": "http", "asgi": {"spec_version": "2.4"}}
        stream = EventStream(on.feed, await on.feed.watch(""), ping_s=0.05)
        async with asyncio.timeout(20):
            await stream(scope, receive, send)
        assert sent[-1] == b": ping\n\n"
        assert not on.feed._watchers

    watched(scenario)


def test_trouble_is_told_and_its_end_is_a_snapshot(watched: Any) -> None:
    async def scenario(on: Watched) -> None:
        watcher = await on.feed.watch("")
        await told(watcher)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(on.feed._gate, "_at_once", 0)
            await on.feed.look()
            await on.feed.look()
        assert (await told(watcher))[1:] == ("trouble", {"code": "STORE_UNAVAILABLE"})
        await on.feed.look()
        assert (await told(watcher))[1] == "snapshot"

    watched(scenario)


def test_events_over_a_socket(store_url: str, tmp_path: Path) -> None:
    lines: list[str] = []
    with served(store_url, tmp_path) as http:
        assert is_problem(
            http.get("/v1/events", headers={"Last-Event-ID": "x"}), 422, "INVALID_REQUEST"
        )

        def read() -> None:
            with http.stream("GET", "/v1/events") as answer:
                assert answer.headers["content-type"].startswith("text/event-stream")
                for line in answer.iter_lines():
                    lines.append(line)
                    if line.startswith("event: delta"):
                        return

        reader = threading.Thread(target=read)
        reader.start()
        eventually(lambda: "event: snapshot" in lines, 30.0)
        with Client(Settings(store_url=store_url)) as client:
            client.enqueue(mac(1), "text", {})
        reader.join(30.0)
        assert not reader.is_alive()


def test_a_stream_ends_when_its_caller_said(service: Service) -> None:
    service.enqueue()
    told = service.ask("GET", "/v1/events", params={"timeout_s": 0})
    _, kind, data = parsed(told.text.removeprefix("retry: 2000\n\n").encode())
    assert (told.status_code, kind, data["totals"]["pending"]) == (200, "snapshot", 1)
    assert service.ask("GET", "/v1/events?timeout_s=1").text == told.text
    for timeout_s in ("-1", "86401", "soon"):
        bad = service.ask("GET", "/v1/events", params={"timeout_s": timeout_s})
        assert is_problem(bad, 422, "INVALID_REQUEST")


def test_a_stream_that_ends_pings_until_then(watched: Any) -> None:
    async def scenario(on: Watched) -> None:
        stream = EventStream(on.feed, await on.feed.watch(""), ping_s=0.02, timeout_s=0.1)
        told = [part async for part in stream.body_iterator]
        assert told[:1] == [b"retry: 2000\n\n"]
        assert set(told[2:]) == {b": ping\n\n"}

    watched(scenario)


def metrics(service: Service) -> dict[tuple[str, ...], float]:
    """Return every sample by its name and label values."""
    page = service.ask("GET", "/metrics")
    assert page.status_code == 200
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(page.text)
        for sample in family.samples
    }


def test_metrics_are_the_stores(service: Service) -> None:
    done, waiting = (service.enqueue(mac=mac(n)).json()["task_id"] for n in (1, 2))
    service.store.run(verbs.Heartbeat("host:1:a", ["text"], 2))
    (leased,) = service.store.run(verbs.Claim("text", 1)).leased
    assert leased.task_id == done
    service.store.run(verbs.Start(done, 1, "worker", "run"))
    service.store.run(verbs.Finish(done, 1))
    service.store.cancel(waiting)
    service.enqueue()
    seen = metrics(service)
    assert seen["fairlane_tasks_accepted_total",] == 3
    assert seen["fairlane_tasks_ended_total", "done"] == 1
    assert seen["fairlane_tasks_ended_total", "cancelled"] == 1
    assert seen["fairlane_tasks_ended_total", "dead"] == 0
    assert seen["fairlane_attempts_ended_total", "text"] == 1
    assert (seen["fairlane_lane_pending", "text"], seen["fairlane_lane_slots", "text"]) == (1, 2)
    assert seen["fairlane_workers", "offering"] == 1
    assert seen["fairlane_oldest_wait_seconds",] > 0
    assert seen["fairlane_lane_wait_seconds", "text"] > 0
    assert seen["fairlane_lane_starved", "text"] == 0
    for name in ("queue_wait", "dispatch", "run", "end_to_end"):
        assert seen[f"fairlane_{name}_seconds_count", "text"] == 1
        assert seen[f"fairlane_{name}_seconds_bucket", "text", "+Inf"] == 1
        assert seen[f"fairlane_{name}_seconds_bucket", "text", "1800.0"] == 1
    assert not any(mac(1) in key for key in seen)
    other = Service(service.settings.store_url)
    try:
        told = metrics(other)
        assert told["fairlane_tasks_accepted_total",] == 3, "right from any process"
        counted = [key for key in seen if "_seconds_" in key[0]]
        assert [told[key] for key in counted] == [seen[key] for key in counted]
    finally:
        other.close()
