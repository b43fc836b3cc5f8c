"""The telemetry spans of a host. They have no effect without the operator's telemetry."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from frontdesk.concurrency.current import incoming_trace
from frontdesk.errors import PushError, RequestError
from frontdesk.interfaces.telemetry import Span, SpanKind, Telemetry
from frontdesk.loggers import host as log

MAX_CARRIED_LENGTH = 1024
"""The characters that a span may carry into stored rows."""
T = TypeVar("T")


class NoSpan:
    def carry(self) -> str | None:
        return None

    def end(self, outcome: str) -> None:
        return None


_NO_SPAN = NoSpan()


class Spans:
    """Begins spans with precomputed labels, so that none are created during a request."""

    def __init__(self, telemetry: Telemetry | None = None, channels: Iterable[str] = ()) -> None:
        """Use the operator's telemetry, if any. Its errors are logged and fail nothing."""
        self._telemetry = None if telemetry is None else _Guarded(telemetry)
        self.collects = telemetry is not None
        """Whether the spans do anything."""
        self._labels: Mapping[str, Mapping[str, str]] = {name: {"channel": name} for name in channels}

    def begin(self, kind: SpanKind, channel: str, parent: str | None) -> Span:
        if self._telemetry is None:
            return _NO_SPAN
        if parent is None and kind == "request":
            parent = incoming_trace.get()
        return self._telemetry.begin(kind, parent, self._labels.get(channel) or {"channel": channel})


NO_SPANS = Spans()
"""Spans that do nothing."""


def telemetry_findings(given: Any) -> list[str]:
    if given is None or callable(getattr(given, "begin", None)):
        return []
    return [f"telemetry must have begin(kind, parent, labels), and {type(given).__name__} has none"]


def classify_outcome(error: BaseException) -> str:
    if isinstance(error, (RequestError, PushError)):
        return error.code
    return "cancelled" if isinstance(error, (asyncio.CancelledError, GeneratorExit)) else "error"


async def end_with(span: Span, work: Awaitable[T]) -> T:
    """Await the work of a span and end it as `ok`, or with the class of the error."""
    try:
        result = await work
    except BaseException as error:
        span.end(classify_outcome(error))
        raise
    span.end("ok")
    return result


class _Guarded:
    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry

    def begin(self, kind: SpanKind, parent: str | None, labels: Mapping[str, str]) -> Span:
        span = _call(lambda: self._telemetry.begin(kind, parent, labels))
        return _NO_SPAN if span is None else _GuardedSpan(span, parent)


class _GuardedSpan:
    def __init__(self, span: Span, parent: str | None) -> None:
        self._span = span
        self._parent = parent

    def carry(self) -> str | None:
        carried: Any = _call(self._span.carry)
        if carried is None or (isinstance(carried, str) and len(carried) <= MAX_CARRIED_LENGTH):
            return carried
        log.warning("a span may carry a text of %d characters, and nothing else", MAX_CARRIED_LENGTH)
        return self._parent

    def end(self, outcome: str) -> None:
        _call(lambda: self._span.end(outcome))


def _call(work: Callable[[], T]) -> T | None:
    try:
        return work()
    except Exception as error:  # It is the operator's code, and a request must not fail by it.
        log.error("telemetry failed", exc_info=error)
        return None
