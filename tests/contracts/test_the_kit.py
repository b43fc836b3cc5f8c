"""The testing kit itself does what it says."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import httpx
import pytest
from agent_framework import Agent, Content, SupportsAgentRun, tool

import frontdesk_testing
from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import (
    EchoAgent,
    FailingAgent,
    FakeClock,
    FakeIds,
    GatedAgent,
    ServerSentEvent,
    parse_sse,
    serving,
)
from frontdesk_testing.sse import read_sse


def host(target: Any, **settings: Any) -> AgentFrameworkHost:
    return AgentFrameworkHost(target, channels=[InvocationsChannel()], **settings)


async def fail() -> None:
    raise RuntimeError("broken")


def test_every_public_name_is_there() -> None:
    assert sorted(frontdesk_testing.__all__) == frontdesk_testing.__all__ == dir(frontdesk_testing)
    for name in frontdesk_testing.__all__:
        assert getattr(frontdesk_testing, name)
    with pytest.raises(AttributeError, match="nothing"):
        frontdesk_testing.nothing  # noqa: B018


def test_pytest_is_needed_by_the_contracts_only() -> None:
    names = [name for name in frontdesk_testing.__all__ if not name.endswith(("Contract", "Driver"))]
    script = f"import sys; from frontdesk_testing import {', '.join(names)}; assert 'pytest' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_clock_goes_when_it_is_told() -> None:
    clock = FakeClock(10.0)
    assert (clock.now(), clock.now()) == (10.0, 10.0)
    assert clock.advance(2.5) == clock.now() == 12.5
    assert clock.steady() == 2.5
    clock.set(1.0)
    assert clock.jump(-0.5) == clock.now() == 0.5
    assert clock.steady() == 2.5


def test_ids_are_counted_for_each_prefix() -> None:
    ids = FakeIds()
    assert [ids.new("run"), ids.new("ses"), ids.new("run")] == ["run_1", "ses_1", "run_2"]
    assert ids.made == {"run": 2, "ses": 1}


class TestEvents:
    def test_events_are_read(self) -> None:
        body = b': hello\n\nevent: a\nid: 7\ndata: {"x":\ndata: 1}\n\ndata:no space\r\n\r\ndata: \xc3\xa9\r\r'
        assert parse_sse(body) == [
            ServerSentEvent(event="a", data='{"x":\n1}', id="7"),
            ServerSentEvent(data="no space"),
            ServerSentEvent(data="\u00e9"),
        ]
        assert parse_sse(body)[0].json() == {"x": 1}
        assert parse_sse(b"") == []

    def test_what_only_looks_like_the_end_of_a_line_is_not_one(self) -> None:
        (event,) = parse_sse("data: a\u2028b\u0085c\x0bd\n\n".encode())
        assert event.data == "a\u2028b\u0085c\x0bd"

    @pytest.mark.parametrize("body", [b"data: x", b"data: x\n", b"datum: x\n\n", b"<html>\n\n", b"\xff\n\n"])
    def test_what_is_no_event_is_an_error(self, body: bytes) -> None:
        with pytest.raises(ValueError, match=r".+"):
            parse_sse(body)

    @pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
    async def test_events_come_in_pieces_of_any_size(self, size: int) -> None:
        body = b"event: a\ndata: 1\n\n: comment\n\ndata: \xf0\x9f\x99\x82\r\n\r\nid: 3\ndata: 2\n\n"

        async def chunks() -> AsyncIterator[bytes]:
            for start in range(0, len(body), size):
                yield body[start : start + size]

        assert [event async for event in read_sse(chunks())] == parse_sse(body)


class TestAgents:
    @pytest.mark.parametrize("agent", [EchoAgent(), GatedAgent(), FailingAgent()], ids=["echo", "gated", "failing"])
    def test_they_have_the_shape(self, agent: Any) -> None:
        assert isinstance(agent, SupportsAgentRun)

    @pytest.mark.parametrize("text", ["", "one", "one two  three ", " "])
    async def test_an_echo_says_what_it_heard(self, text: str) -> None:
        agent = EchoAgent()
        assert (await agent.run(text)).text == text  # type: ignore[misc]
        pieces = [update.text async for update in agent.run(text, stream=True)]  # type: ignore[union-attr]
        assert "".join(pieces) == text
        assert [[message.text for message in seen] for seen in agent.seen] == [[text], [text]]

    async def test_a_script_is_played_to_its_end(self) -> None:
        @tool(approval_mode="never_require")
        def add(a: int, b: int) -> int:
            """Adds."""
            return a + b

        call = Content.from_function_call("call_1", "add", arguments='{"a": 1, "b": 2}')
        client = ScriptedChatClient([[call], "it is 3", "more"])
        agent = Agent(client, name="clerk", tools=[add])
        assert (await agent.run("1 + 2?")).text == "it is 3"
        assert [content.type for content in client.seen[1][-1].contents] == ["function_result"]
        stream = agent.run("and?", stream=True)
        assert "".join([update.text async for update in stream]) == "more"
        with pytest.raises(AssertionError, match="no more replies"):
            await agent.run("still there?")

    async def test_a_function_can_answer_instead_of_a_script(self) -> None:
        client = ScriptedChatClient(lambda messages: f"you said {messages[-1].text}")
        agent = Agent(client, name="clerk")
        assert (await agent.run("hello")).text == "you said hello"

    async def test_a_gate_holds_a_run_until_it_is_released(self) -> None:
        agent = GatedAgent()
        running = asyncio.ensure_future(agent.run("one two"))  # type: ignore[arg-type]
        await agent.started.wait()
        assert (agent.running, running.done()) == (1, False)
        agent.release.set()
        assert (await running).text == "one two"
        assert (agent.running, agent.most_at_once, agent.cancelled.is_set()) == (0, 1, False)

    async def test_a_failure_can_come_late(self) -> None:
        stream = aiter(FailingAgent(OSError("late"), after=1).run("one two", stream=True))  # type: ignore[arg-type]
        assert (await anext(stream)).text == "one "
        with pytest.raises(OSError, match="late"):
            await anext(stream)


class TestServing:
    async def test_a_host_is_called_over_http(self) -> None:
        async with serving(host(EchoAgent())) as client:
            answer = await client.invoke("hello", session_id="mine")
            assert (answer["text"], answer["session_id"]) == ("hello", "mine")
            assert (await client.http.get(f"{client.base_url}/healthz")).status_code == 200

    async def test_events_come_as_they_are_sent(self) -> None:
        agent = GatedAgent()
        async with serving(host(agent)) as client, aclosing(client.stream("one two")) as events:
            seen = [(await anext(events)).event, (await anext(events)).json()["text"]]
            agent.release.set()
            seen += [event.event async for event in events]
        assert seen == ["started", "one ", "update", "completed"]

    async def test_an_error_says_what_the_host_said(self) -> None:
        async with serving(host(EchoAgent())) as client:
            with pytest.raises(httpx.HTTPStatusError, match="session_id"):
                await client.invoke("hello", session_id="../x")
            with pytest.raises(httpx.HTTPStatusError, match="session_id"):
                await anext(client.stream("hello", session_id="../x"))

    async def test_a_start_that_fails_is_raised_at_once(self) -> None:
        entered = False
        with pytest.raises(RuntimeError, match="broken"):
            async with serving(host(EchoAgent(), on_startup=[fail])):
                entered = True
        assert not entered

    async def test_a_stop_that_fails_is_raised_at_the_end(self) -> None:
        with pytest.raises(RuntimeError, match="broken"):
            async with serving(host(EchoAgent(), on_shutdown=[fail])) as client:
                assert (await client.invoke("hello"))["text"] == "hello"
        async with serving(host(EchoAgent(), on_shutdown=[fail]), raise_errors=False):
            pass

    async def test_an_error_of_the_test_is_not_hidden_by_the_hosts(self) -> None:
        async def test() -> None:
            async with serving(host(EchoAgent(), on_shutdown=[fail])):
                raise ValueError("of the test")

        with pytest.raises(ValueError, match="of the test"):
            await test()

    async def test_two_hosts_can_be_served_at_once(self) -> None:
        async with serving(host(EchoAgent())) as one, serving(host(EchoAgent())) as two:
            assert one.base_url != two.base_url
            assert (await one.invoke("1"))["text"] + (await two.invoke("2"))["text"] == "12"

    async def test_when_it_is_over_nobody_answers(self) -> None:
        async with serving(host(EchoAgent())) as client:
            base_url = client.base_url
        async with httpx.AsyncClient(trust_env=False) as http:
            with pytest.raises(httpx.ConnectError):
                await http.get(base_url)

    async def test_a_run_that_hangs_is_ended_with_the_test(self) -> None:
        agent = GatedAgent()
        async with serving(host(agent)) as client:
            asking = asyncio.create_task(client.invoke("one two"))
            await agent.started.wait()
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        assert agent.cancelled.is_set()
