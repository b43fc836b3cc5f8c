"""Calls of tools with the client of the SDK, in both eras: arguments, sessions, contents, progress, errors."""

import asyncio
import base64
from dataclasses import dataclass
from typing import Any

import pytest
from agent_framework import AgentResponse, Content, Executor, Message, WorkflowBuilder, WorkflowContext, handler
from mcp.shared.exceptions import MCPError

from frontdesk import AgentFrameworkHost, ChannelRequest
from frontdesk.channels.mcp import MCPChannel, MCPTool
from frontdesk_testing import serving
from tests.channels.mcp.clients import ERAS, LEGACY, MODERN, VERSION, connect
from tests.scenarios.cast import build_scripted, call, echo, parrot
from tests.scenarios.desk import until

WAYS = [(MODERN, False), (LEGACY, False), (LEGACY, True)]
NAMES = ["modern", "stateful", "stateless"]


def host_of(target: Any, channel: MCPChannel | None = None, **options: Any) -> AgentFrameworkHost:
    return AgentFrameworkHost(target, channels=[channel or MCPChannel()], **options)


@pytest.mark.parametrize(("era", "stateless"), WAYS, ids=NAMES)
async def test_a_call_returns_the_answer_and_a_session_that_continues(era: str, stateless: bool) -> None:
    agent = build_scripted(lambda messages: [f"{len(messages)}: {messages[-1].text}"])
    async with (
        serving(host_of(agent, MCPChannel(stateless=stateless))) as served,
        connect(served.base_url, era) as client,
    ):
        (tool,) = (await client.list_tools()).tools
        assert (tool.name, tool.description) == ("Concierge", "Helps.")
        assert tool.input_schema["required"] == ["message"]
        assert set(tool.input_schema["properties"]) == {"message", "session"}
        first = await client.call_tool("Concierge", {"message": "hi"})
        assert first.content[0].text == "1: hi"
        session = first.structured_content["session"]
        assert first.meta["frontdesk/session"] == session
        assert first.structured_content["status"] == "completed"
        second = await client.call_tool("Concierge", {"message": "again", "session": session})
        assert second.structured_content["text"] == "3: again"
        other = await client.call_tool("Concierge", {"message": "new"})
        assert other.structured_content["text"] == "1: new"
        assert other.structured_content["session"] != session


@pytest.mark.parametrize("era", ERAS)
async def test_every_kind_of_content_arrives(era: str) -> None:
    png, wav, pdf = (base64.b64encode(data).decode() for data in (b"png", b"wav", b"%PDF\xff"))
    contents = [
        Content.from_text("Look: "),
        Content.from_text("four files."),
        Content.from_uri(f"data:image/png;base64,{png}", media_type="image/png"),
        Content.from_uri(f"data:audio/wav;base64,{wav}", media_type="audio/wav"),
        Content.from_uri(f"data:application/pdf;base64,{pdf}", media_type="application/pdf"),
        Content.from_uri("data:text/csv;base64,YSxi", media_type="text/csv"),
        Content.from_uri("https://files.example/plan.pdf", media_type="application/pdf"),
        Content.from_text("Done."),
    ]

    async def show(text: str) -> Any:
        return AgentResponse(messages=[Message("assistant", contents)])

    async with serving(host_of(show)) as served, connect(served.base_url, era) as client:
        result = await client.call_tool("show", {"message": "hi"})
    shown: list[Any] = result.content
    assert [one.type for one in shown] == [
        "text", "image", "audio", "resource", "resource", "resource_link", "text",
    ]  # fmt: skip
    assert shown[0].text == "Look: four files."
    assert (shown[1].data, shown[1].mime_type) == (png, "image/png")
    assert shown[3].resource.blob == pdf
    assert shown[4].resource.text == "a,b"
    assert (shown[5].uri, shown[5].name) == ("https://files.example/plan.pdf", "plan.pdf")
    assert result.structured_content["text"] == "Look: four files.\n\nDone."


@pytest.mark.parametrize("era", ERAS)
async def test_progress_is_sent_while_the_run_works(era: str) -> None:
    def weather(city: str) -> str:
        return "sunny"

    agent = build_scripted([[call("weather", city="Rome")], ["It is ", "sunny."]], tools=[weather])
    seen: list[tuple[float, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, message))

    async with serving(host_of(agent)) as served, connect(served.base_url, era) as client:
        result = await client.call_tool("Concierge", {"message": "weather?"}, progress_callback=on_progress)
    assert result.structured_content["text"] == "It is sunny."
    assert [message for _, message in seen] == [
        "Started", "Calling weather", "Called weather", "Writing the answer", "Finishing",
    ]  # fmt: skip
    assert [number for number, _ in seen] == [1, 2, 3, 4, 5]


class Slow:
    """A target that never answers, and notes its begin and its end."""

    def __init__(self) -> None:
        self.started, self.ended = asyncio.Event(), asyncio.Event()

    async def work(self, text: str) -> str:
        self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()
        return text

    async def require_cancelled(self, host: AgentFrameworkHost) -> None:
        await asyncio.wait_for(self.ended.wait(), 30)
        context = host._get_context("mcp")

        async def is_cancelled() -> bool:
            page = await context.runs.list(host.channels[0].local_caller)  # type: ignore[attr-defined]
            return [run.status for run in page.runs] == ["cancelled"]

        await until(is_cancelled)


@pytest.mark.parametrize("era", ERAS)
async def test_a_cancelled_call_cancels_its_run(era: str) -> None:
    slow = Slow()
    host = host_of(slow.work, MCPChannel(tools=[MCPTool(name="slow", description="Slow.")]))
    async with serving(host) as served, connect(served.base_url, era) as client:
        task = asyncio.create_task(client.call_tool("slow", {"message": "hi"}))
        await slow.started.wait()
        task.cancel()
        await asyncio.wait([task])
        await slow.require_cancelled(host)


async def test_without_sessions_a_closed_request_of_the_older_era_cancels_its_run() -> None:
    slow = Slow()
    host = host_of(slow.work, MCPChannel(stateless=True, tools=[MCPTool(name="slow", description="Slow.")]))
    params = {"name": "slow", "arguments": {"message": "hi"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": VERSION}
    async with serving(host) as served:
        task = asyncio.create_task(served.http.post("/mcp", json=body, headers=headers))
        await slow.started.wait()
        task.cancel()
        await asyncio.wait([task])
        await slow.require_cancelled(host)


@pytest.mark.parametrize("era", ERAS)
async def test_a_failed_run_is_an_error_of_the_tool_without_the_text_of_the_exception(era: str) -> None:
    async def broken(text: str) -> str:
        raise RuntimeError("the password is swordfish")

    async with serving(host_of(broken)) as served, connect(served.base_url, era) as client:
        result = await client.call_tool("broken", {"message": "hi"})
        assert result.is_error
        assert "swordfish" not in result.model_dump_json()


@pytest.mark.parametrize("era", ERAS)
async def test_what_is_unforeseen_leaves_without_its_text(era: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("the password is swordfish")

    host = host_of(echo)
    monkeypatch.setattr(host._get_context("mcp").__class__, "run", broken)
    async with serving(host) as served, connect(served.base_url, era) as client:
        with pytest.raises(MCPError) as found:
            await client.call_tool("echo", {"message": "hi"})
        assert found.value.code == -32603
        assert "swordfish" not in str(found.value.error)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "arguments",
    [{}, {"message": 5}, {"message": "hi", "session": 5}, {"message": "hi", "session": "../x"}, {"text": "hi"}],
)
async def test_wrong_arguments_are_errors_that_a_model_can_correct(era: str, arguments: dict[str, Any]) -> None:
    async with serving(host_of(echo)) as served, connect(served.base_url, era) as client:
        result = await client.call_tool("echo", arguments)
        assert result.is_error
        assert result.structured_content["code"] == "invalid_request"


async def test_an_unknown_tool_is_an_error_of_the_protocol() -> None:
    async with serving(host_of(echo)) as served, connect(served.base_url) as client:
        with pytest.raises(MCPError) as found:
            await client.call_tool("other", {"message": "hi"})
        assert found.value.code == -32602


@dataclass
class Order:
    item: str
    count: int = 1


class Clerk(Executor):
    @handler
    async def take(self, order: Order, context: WorkflowContext[Any, Order]) -> None:
        await context.yield_output(Order(order.item, order.count * 2))


def order_workflow() -> Any:
    return WorkflowBuilder(name="orders", start_executor=Clerk(id="clerk"), output_from="all").build()


@pytest.mark.parametrize("era", ERAS)
async def test_the_input_type_of_a_workflow_is_the_schema_of_its_tool(era: str) -> None:
    async with serving(host_of(order_workflow)) as served, connect(served.base_url, era) as client:
        (tool,) = (await client.list_tools()).tools
        assert tool.input_schema["required"] == ["item"]
        assert set(tool.input_schema["properties"]) == {"item", "count", "session"}
        items = tool.output_schema["properties"]["outputs"]["items"]
        assert set(items["properties"]) == {"item", "count"}
        result = await client.call_tool("orders", {"item": "tea", "count": 3})
        assert result.structured_content["outputs"] == [{"item": "tea", "count": 6}]
        wrong = await client.call_tool("orders", {"count": 3})
        assert wrong.is_error


async def test_several_tools_show_one_target_and_a_hook_sees_which_was_called() -> None:
    seen: list[ChannelRequest] = []

    def hook(request: ChannelRequest, *, protocol_request: Any, **_: Any) -> ChannelRequest:
        seen.append(request)
        assert protocol_request["method"] == "tools/call"
        return request.replace(input=f"{request.attributes['tool']}: {request.attributes['arguments']}")

    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tools = [
        MCPTool(name="ask", description="Asks."),
        MCPTool(name="weather", description="Weather.", attributes={"topic": "weather"}, input_schema=schema),
    ]
    channel = MCPChannel(tools=tools[1:], run_hook=hook)
    async with serving(host_of(echo, channel)) as served, connect(served.base_url) as client:
        result = await client.call_tool("weather", {"city": "Rome"})
        assert result.structured_content["text"] == "you said weather: {'city': 'Rome'}"
        assert seen[0].attributes["topic"] == "weather"
        wrong = await client.call_tool("weather", {"city": 5})
        assert wrong.is_error
        assert "city" in wrong.content[0].text
    async with serving(host_of(echo, MCPChannel(tools=tools))) as served, connect(served.base_url) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["ask", "weather"]
        result = await client.call_tool("weather", {"city": "Rome"})
        assert result.structured_content["text"] == 'you said {"city":"Rome"}'


@pytest.mark.parametrize("era", ERAS)
async def test_a_structured_value_is_structured_content(era: str) -> None:
    async def count(text: str) -> Any:
        value: Any = {"words": 2}
        return AgentResponse(messages=[Message("assistant", ["{}"])], value=value)

    async with serving(host_of(count)) as served, connect(served.base_url, era) as client:
        result = await client.call_tool("count", {"message": "two words"})
        assert result.structured_content["value"] == {"words": 2}


async def test_a_call_with_an_idempotency_key_runs_once() -> None:
    calls: list[str] = []

    async def once(text: str) -> str:
        calls.append(text)
        return f"run {len(calls)}"

    async with serving(host_of(once)) as served, connect(served.base_url) as client:
        meta: Any = {"frontdesk/idempotencyKey": "k1"}
        results = [await client.call_tool("once", {"message": "hi"}, meta=meta) for _ in range(2)]
        assert [result.structured_content["text"] for result in results] == ["run 1", "run 1"]
        other = await client.call_tool("once", {"message": "other"}, meta=meta)
        assert other.is_error
    assert calls == ["hi"]


async def test_concurrent_calls_of_one_session_run_one_after_the_other() -> None:
    async with serving(host_of(parrot())) as served, connect(served.base_url) as client:
        first = await client.call_tool("Concierge", {"message": "0"})
        session = first.structured_content["session"]
        results = await asyncio.gather(
            *(client.call_tool("Concierge", {"message": str(n), "session": session}) for n in range(1, 6))
        )
        assert [one.structured_content["text"] for one in results] == [f"you said {n}" for n in range(1, 6)]
