"""A rule for a tool implies that the tool asks: whatever its `approval_mode`, and however it gets into the target."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from agent_framework import (
    AgentExecutor,
    ContextProvider,
    FunctionInvocationContext,
    FunctionTool,
    MCPStreamableHTTPTool,
    WorkflowBuilder,
    WorkflowExecutor,
    tool,
)

from frontdesk import AgentFrameworkHost, ApprovalOptions, ApproverRule
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.errors import ChannelConfigurationError
from frontdesk_testing import serving
from tests.scenarios.cast import build_scripted, call

PAY = [call("pay", amount=5)]
MODES = [None, "never_require", "always_require"]


class Till:
    """Makes tools that pay, and counts what was paid."""

    def __init__(self, mode: Any) -> None:
        self.paid: list[int] = []
        self.mode = mode

    def tool(self) -> FunctionTool:
        @tool(approval_mode=self.mode)
        def pay(amount: int) -> str:
            """Pay."""
            self.paid.append(amount)
            return f"paid {amount}"

        return pay


class Gives(ContextProvider):
    """A context provider that adds tools to each run."""

    def __init__(self, make: Callable[[], list[Any]]) -> None:
        super().__init__("gives")
        self._make = make

    async def before_run(self, *, context: Any, **_: Any) -> None:
        context.extend_tools(self.source_id, self._make())


class Server(MCPStreamableHTTPTool):
    """An MCP server whose tools are known once a run has connected to it."""

    def __init__(self, tools: list[FunctionTool], **settings: Any) -> None:
        super().__init__("bank", "http://127.0.0.1:1/mcp", **settings)
        self._tools = tools

    @property
    def functions(self) -> list[FunctionTool]:
        return self._tools if self.is_connected else []

    async def _prepare_for_run(self, *_: Any, **__: Any) -> None:
        self.is_connected = True

    def get_mcp_client(self) -> Any:
        raise AssertionError("nothing is called over a wire")


def call_and_say(messages: list[Any]) -> Any:
    """Call the tool once, and then say what came of it."""
    results = [str(one.result) for message in messages for one in message.contents if one.type == "function_result"]
    return [results[-1]] if results else PAY


def load_first(messages: list[Any]) -> Any:
    """Call a tool that adds the other one, and then that one."""
    names = {one.name for message in messages for one in message.contents if one.type == "function_call"}
    return [call("load", "call-0")] if "load" not in names else say_after(messages)


def say_after(messages: list[Any]) -> Any:
    results = [one for message in messages for one in message.contents if one.type == "function_result"]
    paid = [str(one.result) for one in results if "load" not in str(one.result)]
    return [paid[-1]] if paid else PAY


def _own(till: Till) -> Any:
    return build_scripted(call_and_say, tools=[till.tool()])


def _provide_anew(till: Till) -> Any:
    return build_scripted(call_and_say, context_providers=[Gives(lambda: [till.tool()])])


def _provide(till: Till) -> Any:
    own = till.tool()
    return build_scripted(call_and_say, context_providers=[Gives(lambda: [own])])


def _of_a_server(till: Till) -> Any:
    return build_scripted(call_and_say, tools=[Server([till.tool()])])


def _add(till: Till) -> Any:
    @tool
    def load(ctx: FunctionInvocationContext) -> str:
        """Load the other tool."""
        ctx.add_tools([till.tool()])
        return "loaded"

    return build_scripted(load_first, tools=[load])


def _in_workflow(make: Callable[[Till], Any]) -> Callable[[Till], Any]:
    def of(till: Till) -> Any:
        return lambda: WorkflowBuilder(name="flow", start_executor=AgentExecutor(make(till), id="payer")).build()

    return of


def _in_workflow_with_one_agent(till: Till) -> Any:
    agent = _own(till)
    return lambda: WorkflowBuilder(name="flow", start_executor=AgentExecutor(agent, id="payer")).build()


def _in_builder(till: Till) -> Any:
    return WorkflowBuilder(name="flow", start_executor=AgentExecutor(_own(till), id="payer"))


def _inside_another(till: Till) -> Any:
    def build() -> Any:
        inner = WorkflowBuilder(name="inner", start_executor=AgentExecutor(_own(till), id="payer")).build()
        return WorkflowBuilder(
            name="outer", start_executor=WorkflowExecutor(inner, id="inner", propagate_request=True)
        ).build()

    return build


def _as_agent(make: Callable[[Till], Any]) -> Callable[[Till], Any]:
    def of(till: Till) -> Any:
        return lambda: WorkflowBuilder(name="f", start_executor=AgentExecutor(make(till), id="p")).build().as_agent("a")

    return of


ADDED = "added by another tool"
KNOWN: dict[str, Callable[[Till], Any]] = {
    "agent": _own,
    "workflow": _in_workflow(_own),
    "workflow whose agent is shared": _in_workflow_with_one_agent,
    "workflow builder": _in_builder,
    "workflow in a workflow": _inside_another,
    "workflow as agent": _as_agent(_own),
}
DYNAMIC: dict[str, Callable[[Till], Any]] = {
    "context provider": _provide,
    "context provider that makes it anew": _provide_anew,
    "MCP server": _of_a_server,
    ADDED: _add,
    "context provider in a workflow": _in_workflow(_provide_anew),
    "MCP server in a workflow": _in_workflow(_of_a_server),
    "context provider in a workflow as agent": _as_agent(_provide_anew),
}
WAYS = {**KNOWN, **DYNAMIC}


def host_of(way: str, till: Till, **options: Any) -> AgentFrameworkHost:
    if way in DYNAMIC:
        options = {"dynamic_tools": ["pay"], **options}
    approvals = ApprovalOptions(tools={"pay": ApproverRule()}, **options)
    return AgentFrameworkHost(WAYS[way](till), channels=[InvocationsChannel()], approvals=approvals)


def _in_a_tool(till: Till, **inner: Any) -> Any:
    """Return an agent that has another one as a tool, which pays."""
    helper = build_scripted(call_and_say, **inner or {"tools": [till.tool()]}).as_tool(
        name="helper", description="Pay."
    )

    def repeated(messages: list[Any]) -> Any:
        results = [str(one.result) for message in messages for one in message.contents if one.type == "function_result"]
        return [results[-1]] if results else [call("helper", "call-0", task="pay")]

    return build_scripted(repeated, tools=[helper])


IN_A_TOOL: dict[str, Callable[[Till], Any]] = {
    "agent": _in_a_tool,
    "two deep": lambda till: _in_a_tool(till, tools=_in_a_tool(till).default_options["tools"]),
    "workflow": _in_workflow(_in_a_tool),
    "workflow as a tool": lambda till: build_scripted(
        call_and_say, tools=[_as_agent(_own)(till)().as_tool(name="helper")]
    ),
}


@pytest.mark.parametrize("dynamic", [(), ("pay",)])
@pytest.mark.parametrize("way", IN_A_TOOL)
def test_a_rule_for_a_tool_of_an_agent_that_is_a_tool_had_no_effect(way: str, dynamic: Sequence[str]) -> None:
    approvals = ApprovalOptions(tools={"pay": ApproverRule()}, dynamic_tools=dynamic)
    with pytest.raises(ChannelConfigurationError, match="tool 'pay' can't be made to ask: its agent is a tool itself"):
        AgentFrameworkHost(IN_A_TOOL[way](Till(None)), channels=[InvocationsChannel()], approvals=approvals)


@pytest.mark.parametrize("way", IN_A_TOOL)
def test_an_unknown_mode_in_an_agent_that_is_a_tool_had_no_effect(way: str) -> None:
    with pytest.raises(ChannelConfigurationError, match="tool 'pay' has approval_mode='always_requires'"):
        AgentFrameworkHost(IN_A_TOOL[way](Till("always_requires")), channels=[InvocationsChannel()])


@pytest.mark.parametrize("mode", [*MODES, "always_requires"])
@pytest.mark.parametrize("kind", ["context_providers", "tools"])
async def test_a_tool_that_an_agent_that_is_a_tool_gets_during_a_run_ran_without_asking(kind: str, mode: Any) -> None:
    till = Till(mode)
    given: Any = Gives(lambda: [till.tool()]) if kind == "context_providers" else Server([till.tool()])
    approvals = ApprovalOptions(tools={"pay": ApproverRule()}, dynamic_tools=["pay"])
    target = _in_a_tool(till, **{kind: [given]})
    async with serving(AgentFrameworkHost(target, channels=[InvocationsChannel()], approvals=approvals)) as client:
        answer = await client.http.post("/invocations", json={"message": "pay"})
    # The framework can't ask from there, and tells the model.
    assert answer.status_code == 200
    assert till.paid == []


async def test_a_rule_for_an_agent_that_is_a_tool_asks() -> None:
    till = Till(None)
    approvals = ApprovalOptions(tools={"helper": ApproverRule()})
    async with serving(
        AgentFrameworkHost(_in_a_tool(till), channels=[InvocationsChannel()], approvals=approvals)
    ) as client:
        asked = await client.http.post("/invocations", json={"message": "pay", "session_id": "s"})
        (question,) = asked.json()["approvals"]
        assert till.paid == []
        await client.http.post("/invocations", json={"approval": {"id": question["id"], "approved": True}})
        assert till.paid == [5]


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", WAYS)
async def test_a_tool_with_a_rule_ran_without_asking(way: str, mode: Any, stream: bool, approved: bool) -> None:
    till = Till(mode)
    async with serving(host_of(way, till)) as client:
        asked = await client.http.post("/invocations", json={"message": "pay", "session_id": "s", "stream": stream})
        assert till.paid == []
        (question,) = _questions(asked, stream)
        assert question["tool"] == "pay"
        body = {"approval": {"id": question["id"], "approved": approved}}
        answer = await client.http.post("/invocations", json=body)
        assert answer.status_code == 200, answer.text
        # A tool that another tool adds is not there in the run after the approval.
        assert till.paid == ([5] if approved and way != ADDED else [])


def _questions(asked: Any, stream: bool) -> list[Any]:
    assert asked.status_code == 200, asked.text
    if not stream:
        return asked.json()["approvals"]
    events = [json.loads(line[6:]) for line in asked.text.splitlines() if line.startswith("data: {")]
    found = [one for event in events for one in _approvals_in(event)]
    return list({one["id"]: one for one in found}.values())


def _approvals_in(value: Any) -> list[Any]:
    if isinstance(value, dict):
        own = value.get("approvals") or []
        return [*own, *(found for item in value.values() if item is not own for found in _approvals_in(item))]
    return [found for item in value for found in _approvals_in(item)] if isinstance(value, list) else []
