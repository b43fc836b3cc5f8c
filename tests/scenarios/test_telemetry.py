"""Spans: a request and what follows from it are one trace."""

from collections.abc import Mapping
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost, ChannelConfigurationError, NativeIdAllowlist
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk_testing import EchoAgent, RecordingTelemetry, serving
from tests.scenarios.cast import call
from tests.scenarios.desk import until
from tests.scenarios.messages.chat import open_chat
from tests.scenarios.messages.test_buttons import Bank
from tests.scenarios.stores import new_store


def tree(telemetry: RecordingTelemetry) -> list[tuple[str, str | None, str | None]]:
    """Return the spans with the kind of their parents and their outcomes."""
    parents = [telemetry.find_parent(span) for span in telemetry.spans]
    return [
        (span.kind, None if parent is None else parent.kind, span.outcome)
        for span, parent in zip(telemetry.spans, parents, strict=True)
    ]


async def test_a_request_over_http() -> None:
    telemetry = RecordingTelemetry()
    host = AgentFrameworkHost(EchoAgent(), channels=[InvocationsChannel()], store=new_store(), telemetry=telemetry)
    async with serving(host) as client:
        (await client.http.post("/invocations", json={"message": "hi"})).raise_for_status()
        whole = [("request", None, "ok"), ("authorize", "request", "ok"), ("run", "request", "completed")]
        assert tree(telemetry) == whole
        async with client.http.stream("POST", "/invocations", json={"message": "hi", "stream": True}) as response:
            await response.aread()
        assert tree(telemetry) == [*whole, *whole]
    assert len({span.trace_id for span in telemetry.spans}) == 2
    assert {tuple(span.labels.items()) for span in telemetry.spans} == {(("channel", "invocations"),)}


async def test_a_refused_request() -> None:
    telemetry = RecordingTelemetry()
    channel = InvocationsChannel(allowlist=NativeIdAllowlist(["somebody"]))
    host = AgentFrameworkHost(EchoAgent(), channels=[channel], store=new_store(), telemetry=telemetry)
    async with serving(host) as client:
        assert (await client.http.post("/invocations", json={"message": "hi"})).status_code == 403
    assert tree(telemetry) == [("request", None, "denied"), ("authorize", "request", "denied")]


async def test_a_run_that_fails() -> None:
    async def fail(_: str) -> str:
        raise RuntimeError("broken")

    telemetry = RecordingTelemetry()
    host = AgentFrameworkHost(fail, channels=[InvocationsChannel()], store=new_store(), telemetry=telemetry)
    async with serving(host) as client:
        await client.http.post("/invocations", json={"message": "hi"})
        body = {"message": "hi", "stream": True}
        async with client.http.stream("POST", "/invocations", json=body) as response:
            await response.aread()
    assert [span.outcome for span in telemetry.of("run")] == ["target_failed", "error"]


async def test_a_question_in_a_chat_and_its_answer_are_one_trace() -> None:
    telemetry, bank = RecordingTelemetry(), Bank()
    async with open_chat(bank.agent([call("pay", amount=5)], ["done"]), telemetry=telemetry) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "pay 5")
        question = await chat.last(ada.chat_id, 1)
        trace_id = telemetry.of("accept")[0].trace_id
        await chat.platform.click(ada, question, "Approve")
        assert (await chat.wait_for_answers(ada.chat_id, 2))[-1] == "done"

        async def is_settled() -> bool:
            return len(telemetry.of("delivery")) >= 3 and all(span.outcome for span in telemetry.spans)

        await until(is_settled)
    (decided,) = telemetry.of("approval")
    assert (decided.trace_id, decided.outcome, decided.labels) == (trace_id, "approved", {"channel": "messages"})
    asked_by = telemetry.find_parent(decided)
    assert asked_by is telemetry.of("run")[0]


class Broken:
    """Telemetry that fails at each call."""

    def begin(self, kind: Any, parent: str | None, labels: Mapping[str, str]) -> Any:
        if kind == "request":
            raise RuntimeError("no exporter")
        return self

    def carry(self) -> str:
        raise RuntimeError("no exporter")

    def end(self, outcome: str) -> None:
        raise RuntimeError("no exporter")


async def test_telemetry_that_fails_fails_nothing() -> None:
    host = AgentFrameworkHost(EchoAgent(), channels=[InvocationsChannel()], store=new_store(), telemetry=Broken())
    async with serving(host) as client:
        answer = (await client.http.post("/invocations", json={"message": "hi"})).raise_for_status()
    assert "hi" in answer.text


def test_what_is_no_telemetry_is_found_when_the_host_is_built() -> None:
    wrong: Any = object()
    with pytest.raises(ChannelConfigurationError, match="telemetry must have begin"):
        AgentFrameworkHost(EchoAgent(), channels=[], telemetry=wrong)
