"""Every mistake in the configuration of approvals is a finding when the host is built."""

import ast
import inspect
from collections.abc import Callable
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentExecutor,
    BaseChatClient,
    ContextProvider,
    FunctionTool,
    MCPStdioTool,
    WorkflowBuilder,
)

from frontdesk import AgentFrameworkHost, ApprovalOptions, ApproverRole, ApproverRule, ChannelIdentity
from frontdesk.approvals import policy
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.errors import ChannelConfigurationError
from frontdesk.scripted import ScriptedChatClient
from frontdesk.targets import tool_approvals

BOB = ChannelIdentity(channel="chat", native_id="bob")
ANN = ChannelIdentity(channel="chat", native_id="ann")


def rule(**given: Any) -> dict[str, Any]:
    return {"default": ApproverRule(**given)}


def role(**given: Any) -> dict[str, Any]:
    return rule(approvers=[ApproverRole(**{"name": "team", "people": [BOB], **given})])


MISTAKES: list[tuple[dict[str, Any], str]] = [
    (role(name=""), "the name of a role must be a printable string, got ''"),
    (role(name=5), "the name of a role must be a printable string, got 5"),
    (role(people=lambda: []), "must be a function of the question, or a list"),
    (role(people="bob"), "must be a list or a function, got str"),
    (role(people=[]), "has no people, so that nobody would be asked"),
    (role(people=[ChannelIdentity(channel="chat", native_id=42)]), "role 'team': "),  # type: ignore[arg-type]
    (role(claim=5, values=["a"]), "the claim of the role 'team' must be a name, got 5"),
    (role(claim="", values=["a"]), "the claim of the role 'team' must be a name, got ''"),
    (role(claim="groups", values="admins"), "has a claim but no list of values"),
    (role(claim="groups"), "has a claim but no list of values"),
    (role(values=["admins"]), "has values but no claim"),
    (role(claim="groups", values=[1.5]), "must be strings, integers or booleans"),
    (role(people=(), claim="groups", values=["a"]), "nobody is known to have the claim of the role 'team'"),
    (rule(approvers=[]), "approvers is a list with at least one person"),
    (rule(approvers="requester"), "approvers is a list with at least one person"),
    (rule(approvers=["bob"]), "'bob' is not a ChannelIdentity"),
    (rule(approvers=[5]), "int is not a ChannelIdentity"),
    (rule(approvers=[ChannelIdentity(channel="chat", native_id=42)]), "42"),  # type: ignore[arg-type]
    (rule(approvers=[BOB.replace(channel="slack")]), "the host has no channel named 'slack'"),
    (rule(approvers=[BOB.replace(channel="silent")]), "nobody can be asked on 'silent'"),
    (rule(exclude_requester=1), "exclude_requester must be True or False, got 1"),
    (rule(exclude_requester=True), "exclude_requester=True excludes them"),
    (rule(votes=True), "votes is a number from 1 to"),
    (rule(votes=0), "votes is a number from 1 to"),
    (rule(approvers=[BOB], votes=2), "votes=2, and only 1 could vote"),
    (rule(approvers=[BOB], escalate_after=5, escalate_to=ANN), "escalate_to is a list of people and roles"),
    (rule(approvers=[BOB], escalate_after=5, escalate_to=["requester"]), 'not "requester"'),
    (rule(approvers=[BOB], escalate_after=5), "escalate_after and escalate_to are given together"),
    (rule(approvers=[BOB], escalate_after=-1, escalate_to=[ANN]), "escalate_after must be more than 0"),
    (rule(approvers=[BOB], escalate_after=10**6, escalate_to=[ANN]), "escalate_after must be less than seconds"),
    ({"default": "bob"}, "str is not an ApproverRule"),
    ({"tools": {"pay": None}}, "tool 'pay': NoneType is not an ApproverRule"),
    ({"tools": ["pay"]}, "tools must be a mapping of tool names to rules, got list"),
    ({"tools": {5: ApproverRule()}}, "the name of a tool must be a non-empty string"),
    ({"dynamic_tools": "pay"}, "dynamic_tools must be a list of tool names"),
    ({"dynamic_tools": [5]}, "dynamic_tools must be a list of tool names"),
    ({"rule": "everybody"}, "rule is not a function of the question and its requester"),
    ({"rule": lambda question: None}, "rule is not a function of the question and its requester"),
    ({"max_holders": True}, "max_holders is a number from 0 to"),
    ({"max_holders": -1}, "max_holders is a number from 0 to"),
    ({"show_arguments_in_groups": "no"}, "show_arguments_in_groups must be True or False, got 'no'"),
    ({"seconds": 0}, "seconds must be more than 0, or None"),
    ({"seconds": float("nan")}, "seconds must be more than 0, or None"),
]


def findings(given: dict[str, Any]) -> list[str]:
    return ApprovalOptions(**given).findings(asking={"chat"}, known={"chat", "silent"}, linked=False)


@pytest.mark.parametrize(("given", "finding"), MISTAKES, ids=[finding for _, finding in MISTAKES])
def test_a_mistake_in_approvals_was_found_when_somebody_asked(given: dict[str, Any], finding: str) -> None:
    found = findings(given)
    assert any(finding in line for line in found), found


def test_every_finding_about_approvals_has_a_mistake_above() -> None:
    """A finding that is added without a case here fails this test."""
    found = "\n".join(line for given, _ in MISTAKES for line in findings(given))
    texts: list[str] = []
    for node in ast.walk(ast.parse(inspect.getsource(policy))):
        if not isinstance(node, ast.Yield) or node.value is None:
            continue
        parts = node.value.values if isinstance(node.value, ast.JoinedStr) else [node.value]
        constants = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        texts += [max(constants, key=len)] if constants else []
    assert len(texts) > 20
    assert [text for text in texts if text not in found] == []


@pytest.mark.parametrize("given", [{"tools": {}}, "strict", ApproverRule()])
def test_approvals_of_a_wrong_type_are_a_finding(given: Any) -> None:
    async def echo(text: str) -> str:
        return text

    with pytest.raises(ChannelConfigurationError, match="is not ApprovalOptions"):
        AgentFrameworkHost(echo, channels=[InvocationsChannel()], approvals=given)


def test_a_rule_for_a_target_whose_tools_can_not_be_made_to_ask_is_a_finding() -> None:
    async def echo(text: str) -> str:
        return text

    options = ApprovalOptions(tools={"refund": ApproverRule()})
    with pytest.raises(ChannelConfigurationError, match="the host can't make the tools of a function ask"):
        AgentFrameworkHost(echo, channels=[InvocationsChannel()], approvals=options)


def refund(amount: int) -> str:
    return f"{amount}"


TARGETS: list[tuple[Any, dict[str, Any], str]] = [
    ("always_requires", {}, "tool 'refund' has approval_mode='always_requires'; use 'always_require'"),
    (True, {}, "tool 'refund' has approval_mode=True; use 'always_require'"),
    (None, {"tools": {"refundd": ApproverRule()}}, "refundd"),
    (None, {"dynamic_tools": ["other"]}, "dynamic_tools: 'other' has no rule in tools"),
    (None, {"tools": {"refund": ApproverRule()}, "dynamic_tools": ["refund"]}, "remove it from dynamic_tools"),
]


@pytest.mark.parametrize(("mode", "options", "finding"), TARGETS, ids=[finding for *_, finding in TARGETS])
def test_an_approval_mode_or_a_rule_that_meant_nothing_was_accepted(
    mode: Any, options: dict[str, Any], finding: str
) -> None:
    made = FunctionTool(name="refund", func=refund, approval_mode=None)
    made.approval_mode = mode
    agent = Agent(ScriptedChatClient([]), "Pay.", tools=[made])
    with pytest.raises(ChannelConfigurationError) as caught:
        AgentFrameworkHost(agent, channels=[InvocationsChannel()], approvals=ApprovalOptions(**options))
    assert any(finding in line for line in caught.value.findings), caught.value.findings


@pytest.mark.parametrize(
    ("mode", "finding"),
    [
        ("never", "has approval_mode='never'"),
        ({"always": ["a"]}, "has 'always' in approval_mode; use 'always_require_approval'"),
        ({"always_require_approval": "a"}, "has no list of tools in always_require_approval of approval_mode"),
    ],
)
def test_an_approval_mode_of_a_server_that_meant_nothing_was_accepted(mode: Any, finding: str) -> None:
    server = MCPStdioTool(name="desk", command="unused")
    server.approval_mode = mode
    agent = Agent(ScriptedChatClient([]), "Pay.", tools=[server])
    with pytest.raises(ChannelConfigurationError) as caught:
        AgentFrameworkHost(agent, channels=[InvocationsChannel()])
    assert any(finding in line for line in caught.value.findings), caught.value.findings


class NoLayers(BaseChatClient[Any]):
    """A chat client that runs no tools and takes no middleware."""

    def _inner_get_response(self, **given: Any) -> Any:
        raise AssertionError("nothing runs")


class Gives(ContextProvider):
    """A context provider, which may add tools to each run."""


def without_layers(*tools: Any, **options: Any) -> Any:
    return Agent(NoLayers(), "Pay.", tools=list(tools), **options)


def build_agent(*tools: Any, **options: Any) -> Any:
    return Agent(ScriptedChatClient([]), "Pay.", tools=list(tools), **options)


def one() -> FunctionTool:
    return FunctionTool(name="refund", func=refund)


REFUND = {"tools": {"refund": ApproverRule()}}
DYNAMIC = {**REFUND, "dynamic_tools": ["refund"]}
HOSTED = {"type": "mcp", "server_label": "bank", "require_approval": "never"}
TOOL_MISTAKES: list[tuple[Callable[[], Any], dict[str, Any], str]] = [
    (build_agent, REFUND, "the target has no tool called 'refund'"),
    (lambda: build_agent(one()), {"tools": {"refunds": ApproverRule()}}, "did you mean 'refund'?"),
    (lambda: build_agent(context_providers=[Gives("gives")]), REFUND, "list it in dynamic_tools too"),
    (lambda: without_layers(one()), REFUND, "the framework does not run it; remove its rule"),
    (lambda: build_agent({"name": "refund"}), REFUND, "the framework does not run it; remove its rule"),
    (
        lambda: build_agent(build_agent(one(), name="helper").as_tool()),
        REFUND,
        "its agent is a tool itself; give the rule to that tool",
    ),
    (lambda: without_layers(), DYNAMIC, "the target has no agent of which the framework runs tools"),
    (lambda: build_agent(HOSTED), DYNAMIC, "a hosted MCP server may run 'refund' without asking"),
    (
        lambda: in_turn(build_agent(name="able"), without_layers(name="unable", context_providers=[Gives("gives")])),
        DYNAMIC,
        "can't be made to ask in agent 'unable', which takes no middleware",
    ),
    (build_agent, {"dynamic_tools": ["refund"]}, "dynamic_tools: 'refund' has no rule in tools"),
    (
        lambda: build_agent(one()),
        DYNAMIC,
        "dynamic_tools: 'refund' is known before a run; remove it from dynamic_tools",
    ),
    (lambda: build_agent(with_mode(one(), "always")), {}, "tool 'refund' has approval_mode='always'"),
    (lambda: build_agent(with_mode(bank(), "always")), {}, "MCP server 'bank' has approval_mode='always'"),
    (lambda: build_agent(with_mode(bank(), {"ask": ["a"]})), {}, "MCP server 'bank' has 'ask' in approval_mode; use"),
    (
        lambda: build_agent(with_mode(bank(), {"never_require_approval": "a"})),
        {},
        "has no list of tools in never_require_approval of approval_mode",
    ),
]


def in_turn(first: Any, second: Any) -> Any:
    executor = AgentExecutor(first, id="first")
    return WorkflowBuilder(name="flow", start_executor=executor).add_edge(executor, AgentExecutor(second, id="b")).build


def bank() -> Any:
    return MCPStdioTool(name="bank", command="unused")


def with_mode(tool: Any, mode: Any) -> Any:
    tool.approval_mode = mode
    return tool


def tool_findings(make: Callable[[], Any], options: dict[str, Any]) -> list[str]:
    try:
        AgentFrameworkHost(make(), channels=[InvocationsChannel()], approvals=ApprovalOptions(**options))
    except ChannelConfigurationError as error:
        return list(error.findings)
    return []


@pytest.mark.parametrize(("make", "options", "finding"), TOOL_MISTAKES, ids=[finding for *_, finding in TOOL_MISTAKES])
def test_a_mistake_about_the_tools_of_approvals_was_accepted(
    make: Callable[[], Any], options: dict[str, Any], finding: str
) -> None:
    found = tool_findings(make, options)
    assert any(finding in line for line in found), found


def test_every_finding_about_tools_has_a_mistake_above() -> None:
    """A finding that is added without a case here fails this test."""
    found = "\n".join(line for make, options, _ in TOOL_MISTAKES for line in tool_findings(make, options))
    finders = [
        node
        for node in ast.parse(inspect.getsource(tool_approvals)).body
        if isinstance(node, ast.FunctionDef) and (node.name.endswith("_findings") or node.name == "_unknown")
    ]
    texts = [
        max((part.value for part in node.values if isinstance(part, ast.Constant)), key=lambda text: len(str(text)))
        for finder in finders
        for node in ast.walk(finder)
        if isinstance(node, ast.JoinedStr) and any(isinstance(part, ast.Constant) for part in node.values)
    ]
    assert len(texts) > 12
    assert [text for text in texts if str(text) not in found] == []
