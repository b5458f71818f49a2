"""The application of a worker that traces: its spans go to memory, and each task tells them.

The rule: the provider is the program's own, as it is where fairlane is part of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from fairlane import Task, handler, tracing
from fairlane.celery import make_app

EXPORTER = InMemorySpanExporter()
PROVIDER = TracerProvider()
PROVIDER.add_span_processor(SimpleSpanProcessor(EXPORTER))
trace.set_tracer_provider(PROVIDER)


@handler("text")
def told(task: Task) -> Mapping[str, Any]:
    """Return the trace context that the handler runs in, and the spans that ended before."""
    with trace.get_tracer("handler").start_as_current_span("inside"):
        return {
            "within": tracing.current(),
            "ended": [
                {
                    "name": span.name,
                    "trace": f"{span.context.trace_id:032x}",
                    "parent": f"{span.parent.span_id:016x}" if span.parent else "",
                    "attributes": dict(span.attributes or {}),
                }
                for span in EXPORTER.get_finished_spans()
                if span.context is not None
            ],
        }


app = make_app()
