"""Traces: from the request through the task to the handler, and nothing where nobody traces."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from fairlane import Settings, handlers, tracing, verbs
from fairlane.celery.attempt import run_attempt
from fairlane.model import Task
from fairlane.payload import decode
from fairlane.services.dispatcher import Dispatcher
from fairlane.tracing import checked_traceparent
from support.service import Service
from support.store import mac
from support.system import DISPATCH, TEXT, running

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
GIVEN = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.fixture
def service(store_url: str) -> Iterator[Service]:
    service = Service(store_url)
    yield service
    service.close()


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Let this process trace into memory."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return exporter


def started(service: Service) -> str:
    """Claim and start the one task; return the trace context that came with it."""
    (leased,) = service.store.run(verbs.Claim("text", 1)).leased
    return service.store.run(verbs.Start(leased.task_id, 1, "worker", "run")).traceparent


@pytest.mark.parametrize(
    "given",
    ["", "00-1-2-3", GIVEN.upper(), f"01{GIVEN[2:]}", f"{GIVEN}x", GIVEN.replace(TRACE, "0" * 32)],
)
def test_what_is_no_trace_context_is_none(given: str) -> None:
    assert checked_traceparent(given) == ""
    assert checked_traceparent(GIVEN) == GIVEN


def test_a_task_keeps_the_context_that_came_with_its_request(service: Service) -> None:
    task = {"mac": mac(1), "task_type": "text", "data": {}}
    service.ask("POST", "/v1/tasks", json=task, headers={"traceparent": GIVEN})
    assert started(service) == GIVEN
    service.ask("POST", "/v1/tasks:batch", json=[task], headers={"traceparent": GIVEN})
    assert started(service) == GIVEN


def test_a_task_without_one_keeps_nothing(service: Service) -> None:
    service.enqueue()
    service.ask(
        "POST",
        "/v1/tasks",
        json={"mac": mac(2), "task_type": "text", "data": {}},
        headers={"traceparent": "garbage"},
    )
    assert started(service) == ""
    assert started(service) == ""


def test_a_request_is_a_span_and_the_tasks_parent(
    service: Service, spans: InMemorySpanExporter
) -> None:
    task = {"mac": mac(1), "task_type": "text", "data": {}}
    service.ask("POST", "/v1/tasks", json=task, headers={"traceparent": GIVEN})
    service.ask("GET", "/v1/tasks/unknown")
    service.ask("GET", "/v1/lanes", headers={"Authorization": "Bearer x"})
    asked = [span for span in spans.get_finished_spans() if span.kind is trace.SpanKind.SERVER]
    one, two, three = asked
    assert [one.name, two.name] == ["POST /v1/tasks", "GET /v1/tasks/{task_id}"]
    assert one.parent is not None
    assert f"{one.parent.span_id:016x}" == GIVEN.split("-")[2]
    assert f"{one.context.trace_id:032x}" == TRACE
    assert two.parent is None
    told = [dict(span.attributes or {}) for span in (one, two, three)]
    assert [each["http.response.status_code"] for each in told] == [202, 404, 401]
    assert started(service) == f"00-{TRACE}-{one.context.span_id:016x}-01"


def test_the_sync_client_hands_on_the_span_that_is_open(
    service: Service, spans: InMemorySpanExporter
) -> None:
    with tracing.span("outside"):
        service.store.enqueue(mac(1), "text", {})
        open_here = tracing.current()
    assert started(service) == open_here
    service.store.enqueue(mac(1), "text", {})
    assert started(service) == ""


def test_an_attempt_and_a_publication_are_spans(
    service: Service, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def note(task: Task) -> None:
        seen.append(tracing.current())
        if task.data:
            raise ValueError("boom")

    monkeypatch.setattr(handlers, "find", lambda _: note)
    store = service.store
    store.run(verbs.Heartbeat("host:1:a", ["text"], 2))
    for data in ({}, {"fail": 1}):
        task_id = store.run(verbs.Enqueue(mac(1), "text", data, traceparent=GIVEN)).task_id
        spans.clear()
        assert Dispatcher(store, lambda _: None, "me").dispatch() == 1
        run_attempt(store, "worker", task_id, 1)
        published, attempt = spans.get_finished_spans()
        assert (published.name, dict(published.attributes or {})) == (
            "publish",
            {"fairlane.tasks": 1},
        )
        assert attempt.name == "run text"
        assert f"{attempt.context.trace_id:032x}" == TRACE
        assert seen[-1].split("-")[2] == f"{attempt.context.span_id:016x}"
        told = dict(attempt.attributes or {})
        assert (told["fairlane.task_id"], told["fairlane.attempt"]) == (task_id, 1)
        assert told["fairlane.end"] == ("fail" if data else "finish")
        assert attempt.status.is_ok != bool(data)
        assert mac(1) not in str(told)


def test_from_the_request_to_a_real_worker() -> None:
    with running() as system:
        system.worker("worker", TEXT, DISPATCH, app="support.traced", slots=1)
        service = Service(system.settings.store_url, broker_url=system.settings.broker_url)
        try:
            results: list[Any] = []
            for _ in range(2):
                answer = service.ask(
                    "POST",
                    "/v1/tasks",
                    json={"mac": mac(1), "task_type": "text", "data": {}},
                    headers={"traceparent": GIVEN},
                )
                (record,) = system.ended([answer.json()["task_id"]])
                assert record.state == "done", record.error
                results.append(decode(record.result))
        finally:
            service.close()
    first, second = results
    assert first["within"].split("-")[1] == TRACE
    run = next(span for span in second["ended"] if span["name"] == "run text")
    assert (run["trace"], run["parent"]) == (TRACE, GIVEN.split("-")[2])
    assert run["attributes"]["fairlane.end"] == "finish"


def test_without_the_library_a_task_keeps_its_context_and_nothing_is_traced(
    store_url: str,
) -> None:
    program = (
        "import sys\n"
        "sys.modules['opentelemetry'] = None\n"
        "from fairlane import Client, tracing\n"
        "from fairlane.verbs import Claim, Enqueue, Start\n"
        f"with Client.from_url({store_url!r}) as client:\n"
        f"    client.run(Enqueue('02:00:00:00:00:01', 'text', {{}}, traceparent={GIVEN!r}))\n"
        "    (leased,) = client.run(Claim('text', 1)).leased\n"
        "    started = client.run(Start(leased.task_id, 1, 'worker', 'run'))\n"
        f"assert started.traceparent == {GIVEN!r}\n"
        "with tracing.span('run', started.traceparent) as opened:\n"
        "    assert opened is None and tracing.current() == ''\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_where_nobody_traces_a_span_is_nothing() -> None:
    assert not tracing.is_on()
    assert tracing.span("nothing") is tracing.span("nothing too")


def test_spans_are_sent_as_the_setting_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setattr(trace._TRACER_PROVIDER_SET_ONCE, "_done", False)
    tracing.configure(Settings(), "api")
    assert not tracing.is_on()
    tracing.configure(Settings(trace_export="otlp"), "api")
    try:
        assert tracing.is_on()
        provider: Any = trace.get_tracer_provider()
        assert provider.resource.attributes["service.name"] == "fairlane-api"
        tracing.configure(Settings(trace_export="otlp"), "api")
        assert trace.get_tracer_provider() is provider
    finally:
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        trace.get_tracer_provider().shutdown()  # type: ignore[attr-defined]
