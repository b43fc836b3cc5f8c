"""Spans that do nothing, and those of an operator."""

import asyncio
import tracemalloc
from collections.abc import Mapping
from typing import Any

import pytest

from frontdesk.errors import NotFoundError, PushLimitedError
from frontdesk.interfaces.telemetry import SpanKind
from frontdesk.telemetry.spans import MAX_CARRIED_LENGTH, NO_SPANS, Spans, classify_outcome
from frontdesk_testing import RecordingTelemetry


def test_without_telemetry_a_span_is_one_object_for_all() -> None:
    spans = Spans(None, ["a"])
    first = spans.begin("run", "a", None)
    assert spans.begin("delivery", "a", "x") is first
    assert NO_SPANS.begin("run", "a", "x").carry() is None
    assert first.carry() is None
    assert first.end("ok") is None


def test_without_telemetry_nothing_is_made() -> None:
    spans = Spans(None, ["a"])
    for _ in range(100):
        spans.begin("run", "a", None).end("ok")
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        for _ in range(1000):
            spans.begin("run", "a", None).end("ok")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # A frame or an iterator, and not something for each span.
    assert peak - before < 1000


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (NotFoundError(), "not_found"),
        (PushLimitedError(), "push_limited"),
        (asyncio.CancelledError(), "cancelled"),
        (GeneratorExit(), "cancelled"),
        (RuntimeError(), "error"),
    ],
)
def test_the_outcome_of_an_error(error: BaseException, outcome: str) -> None:
    assert classify_outcome(error) == outcome


def test_what_is_too_long_to_be_stored_is_not_carried() -> None:
    telemetry = RecordingTelemetry()
    spans = Spans(telemetry, ["a"])
    span = spans.begin("run", "a", "trace/parent")
    telemetry.spans[0].span_id = "x" * MAX_CARRIED_LENGTH
    assert span.carry() == "trace/parent"
    assert spans.begin("run", "a", "trace/parent").carry() == telemetry.spans[1].carry()


def test_what_is_no_text_is_not_carried() -> None:
    class Careless:
        def carry(self) -> Any:
            return b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

        def end(self, outcome: str) -> None: ...

    class Telemetry:
        def begin(self, kind: SpanKind, parent: str | None, labels: Mapping[str, str]) -> Careless:
            return Careless()

    assert Spans(Telemetry(), ["a"]).begin("run", "a", "trace/parent").carry() == "trace/parent"


def test_a_span_that_ends_twice_is_noticed() -> None:
    span = RecordingTelemetry().begin("run", None, {})
    span.end("ok")
    with pytest.raises(AssertionError, match="ended twice"):
        span.end("ok")
