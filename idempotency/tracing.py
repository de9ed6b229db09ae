"""OpenTelemetry, where it is installed: attributes on the span under way, and spans that link back to the request.

No convention for idempotency keys exists in OpenTelemetry; the names here all begin with `idempotency.`. Without the
library, or without a tracer provider, everything here does nothing. Exporting is the host's business.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

try:
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError:
    _installed = False
else:
    _installed = True

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext

Value = str | int | float | bool

_HEADER = "traceparent"
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


@contextmanager
def span(name: str, *, of: str, **attributes: Value) -> Iterator[None]:
    """Do the work inside as a span of its own, linked to the trace in which its key was claimed.

    Args:
        of: that trace's `traceparent`, or "".
    """
    if not _installed:
        yield
        return
    origin = _context(of)
    with trace.get_tracer("idempotency").start_as_current_span(
        f"idempotency.{name}",
        links=[trace.Link(origin)] if origin else None,
        attributes=_named(attributes),
    ):
        yield


def link(of: str) -> None:
    """Link the span under way to the trace in which a key was claimed."""
    if _installed and (origin := _context(of)):
        trace.get_current_span().add_link(origin)


def mark(**attributes: Value) -> None:
    """Set attributes on the span under way."""
    if _installed and (span := trace.get_current_span()).is_recording():
        span.set_attributes(_named(attributes))


def note(name: str, **attributes: Value) -> None:
    """Write something that happened into the span under way."""
    if _installed and (span := trace.get_current_span()).is_recording():
        span.add_event(f"idempotency.{name}", _named(attributes))


def current(otherwise: str = "") -> str:
    """Return the `traceparent` of the span under way, or what the caller sent.

    Source: W3C Trace Context §3.2.
    """
    carrier: dict[str, str] = {}
    if _installed:
        TraceContextTextMapPropagator().inject(carrier)
    return carrier.get(_HEADER, otherwise)


def trace_id(traceparent: str) -> str:
    """Return the id of the trace in a `traceparent`, or "" where it is not one."""
    found = _TRACEPARENT.match(traceparent)
    return found[1] if found else ""


def _context(traceparent: str) -> "SpanContext | None":
    if not traceparent:
        return None
    found = trace.get_current_span(
        TraceContextTextMapPropagator().extract({_HEADER: traceparent})
    ).get_span_context()
    return found if found.is_valid else None


def _named(attributes: dict[str, Value]) -> dict[str, Value]:
    return {f"idempotency.{name}": value for name, value in attributes.items()}
