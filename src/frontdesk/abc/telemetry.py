"""Spans: what the host does for a request or an event, from its door to the delivery of its answer."""

from collections.abc import Mapping
from typing import Literal, Protocol

SpanKind = Literal["accept", "event", "request", "authorize", "run", "approval", "delivery"]
"""`accept` stores an event, and `event` works on it, once for each try. `request` takes a request through the gate,
with `authorize` in it. `run` runs the target, `approval` decides about a tool call, and `delivery` tries to send a
part."""


class Span(Protocol):
    """One thing that the host does. It is never made current for a thread or a task."""

    def carry(self) -> str | None:
        """Return a text for the stored rows that follow from it, by which another process continues the trace.

        Spans that follow get it as their parent. `None` if nothing is to be continued.
        """
        ...

    def end(self, outcome: str) -> None:
        """End it: `ok`, `accepted`, the status of a run or an approval, or the code of an error."""
        ...


class Telemetry(Protocol):
    """Receives the spans of a host. Its methods are called in the event loop, and must not wait for anything."""

    def begin(self, kind: SpanKind, parent: str | None, labels: Mapping[str, str]) -> Span:
        """Begin a span; `parent` is what another one carried, and `labels` has the name of the channel."""
        ...
