"""Telemetry that records the spans of a host, for tests."""

from collections.abc import Mapping

from frontdesk.ids import RandomIds
from frontdesk.interfaces.telemetry import SpanKind


class RecordedSpan:
    """One span, with its trace and its parent. `outcome` is `None` until it has ended."""

    def __init__(self, kind: SpanKind, parent: str | None, labels: Mapping[str, str]) -> None:
        ids = RandomIds()
        self.kind, self.labels = kind, dict(labels)
        self.span_id = ids.new("spn")
        self.trace_id, _, self.parent_id = (parent or ids.new("trc")).partition("/")
        self.outcome: str | None = None

    def carry(self) -> str:
        """Return the trace and the span."""
        return f"{self.trace_id}/{self.span_id}"

    def end(self, outcome: str) -> None:
        """Record the outcome. A second call is an error of the host."""
        if self.outcome is not None:
            raise AssertionError(f"the span of a {self.kind} has ended twice: {self.outcome}, {outcome}")
        self.outcome = outcome


class RecordingTelemetry:
    """Keeps every span in the order in which they began."""

    def __init__(self) -> None:
        self.spans: list[RecordedSpan] = []

    def begin(self, kind: SpanKind, parent: str | None, labels: Mapping[str, str]) -> RecordedSpan:
        """Begin a span and keep it."""
        span = RecordedSpan(kind, parent, labels)
        self.spans.append(span)
        return span

    def of(self, kind: SpanKind) -> list[RecordedSpan]:
        """Return the spans of a kind."""
        return [span for span in self.spans if span.kind == kind]

    def find_parent(self, span: RecordedSpan) -> RecordedSpan | None:
        """Return the parent of a span. None if it has none here."""
        return next((other for other in self.spans if other.span_id == span.parent_id), None)
