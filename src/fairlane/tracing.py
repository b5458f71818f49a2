"""OpenTelemetry: a request's W3C trace context goes with its task to the handler.

The rule: what is not there costs nothing. A task keeps a `traceparent` only if one came; spans are
made only where somebody set a tracer provider (`trace_export`, or the program that fairlane is part
of). The library is looked for when a trace comes, and never before.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final

from fairlane.settings import Settings

#: W3C Trace Context, version 00; ids of nothing but zeros are none.
_TRACEPARENT: Final = re.compile(
    r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII
)
_NAME: Final = "fairlane"
_NOTHING: Final = nullcontext()


def checked_traceparent(text: str | None) -> str:
    """Return a `traceparent`, or nothing for what is none: the standard says to begin anew then."""
    return text if text is not None and _TRACEPARENT.fullmatch(text) else ""


def is_on() -> bool:
    """Whether spans made here go anywhere."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return False
    # What `get_tracer_provider` returns, which looks into the environment first, each time.
    provider = trace._TRACER_PROVIDER
    return provider is not None and not isinstance(provider, trace.NoOpTracerProvider)


def current() -> str:
    """Return the `traceparent` of the span that is open here, or nothing."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return ""
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return ""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def span(
    name: str, traceparent: str = "", kind: str = "INTERNAL", **attributes: Any
) -> AbstractContextManager[Any]:
    """Return a block that runs within a span, under `traceparent` if there is one; gives the span.

    It gives None, and does nothing, where nothing is traced. Attributes are called `fairlane.…`.
    """
    if not traceparent and not is_on():
        return _NOTHING
    try:
        from opentelemetry import trace  # noqa: F401
    except ImportError:
        return _NOTHING
    return _span(name, traceparent, kind, attributes)


@contextmanager
def _span(name: str, traceparent: str, kind: str, attributes: dict[str, Any]) -> Iterator[Any]:
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    context = None
    if traceparent:
        context = TraceContextTextMapPropagator().extract({"traceparent": traceparent})
    named = {f"{_NAME}.{key}": value for key, value in attributes.items()}
    with trace.get_tracer(__name__).start_as_current_span(
        name, context, kind=trace.SpanKind[kind], attributes=named
    ) as opened:
        yield opened


def tell(opened: Any, *, failed: str = "", **attributes: Any) -> None:
    """Add to a span that `span` gave what became known, and that it failed and why."""
    if opened is None:
        return
    for name, value in attributes.items():
        opened.set_attribute(f"{_NAME}.{name}", value)
    if failed:
        from opentelemetry.trace import Status, StatusCode

        opened.set_status(Status(StatusCode.ERROR, failed))


def configure(settings: Settings, role: str) -> None:
    """Send spans where OTEL_* variables say, if `trace_export` is `otlp`; twice is once.

    Raises ModuleNotFoundError without the extra `otel`.
    """
    if settings.trace_export != "otlp" or is_on():
        return
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    # What OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME say counts more.
    own = Resource.create({"service.name": f"{_NAME}-{role}"})
    resource = own.merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
