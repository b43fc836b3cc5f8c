"""The interface for telemetry spans, from the arrival of a request or event to its delivery."""

from collections.abc import Mapping
from typing import Literal, Protocol

SpanKind = Literal["accept", "event", "request", "authorize", "run", "approval", "delivery"]
"""`accept` stores an event, and `event` works on it, once for each try. `request` takes a request through the gate,
with `authorize` in it. `run` runs the target, `approval` decides about a tool call, and `delivery` tries to send a
part."""


class Span(Protocol):
    """One operation of the host. It is never made current for a thread or a task."""

    def carry(self) -> str | None:
        """Return a string for the stored rows that follow from the span. Another process continues the trace with it.

        Spans that follow receive it as their parent. `None` if there is nothing to continue.
        """
        ...

    def end(self, outcome: str) -> None:
        """End the span with `ok`, `accepted`, the status of a run or an approval, or an error code."""
        ...


class Telemetry(Protocol):
    """Receives the spans of a host. Its methods are called in the event loop and must not block."""

    def begin(self, kind: SpanKind, parent: str | None, labels: Mapping[str, str]) -> Span:
        """Begin a span. `parent` is the result of another span's `carry`. `labels` has the channel's name."""
        ...
