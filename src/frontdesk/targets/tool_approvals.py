"""Makes tools with an approver rule require approval, and reports those without support for it.

In the framework, `approval_mode` of a tool decides if a call requires approval. Known tools get the mode when the host
is built. Tools that an MCP server, a context provider or another tool adds during a run get it before the model is
called. An unapproved call of a tool with a rule ends the run, regardless of the mode.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, TypeVar, cast

from agent_framework import (
    AgentMiddlewareLayer,
    BaseAgent,
    ChatContext,
    ChatMiddleware,
    ChatMiddlewareLayer,
    FunctionInvocationContext,
    FunctionInvocationLayer,
    FunctionMiddleware,
    FunctionTool,
    HistoryProvider,
    MiddlewareFailure,
    RawAgent,
    WorkflowAgent,
)

from frontdesk.framework.types import list_tools
from frontdesk.loggers import runs as log
from frontdesk.targets.blueprint import agents_in

ASKS = "always_require"
_MODES = (ASKS, "never_require")
_USE_MODES = "use 'always_require' or 'never_require'"
_MCP_LISTS = ("always_require_approval", "never_require_approval")
_APPROVED = "approval_response"
"""The key under which the framework passes the approval of a call to function middleware."""

T = TypeVar("T")
ApprovalMiddleware = tuple[FunctionMiddleware, ChatMiddleware]


def mode_findings(agents: Sequence[Any]) -> list[str]:
    """List tools and MCP servers with an unknown `approval_mode`, one line each. The framework ignores these."""
    wrong: list[str] = []
    for agent in [*agents, *find_sub_agents(agents)]:
        for tool in list_tools(agent):
            mode = getattr(tool, "approval_mode", None)
            if mode is not None and mode not in _MODES:
                wrong.append(f"target: tool {_name(tool)!r} has approval_mode={mode!r}; {_USE_MODES}")
        for server in getattr(agent, "mcp_tools", None) or ():
            wrong += _server_findings(server)
    return list(dict.fromkeys(wrong))


def rule_findings(agents: Sequence[Any], ruled: Collection[str], dynamic: Collection[str]) -> list[str]:
    """List the tools with a rule that do not exist or cannot require approval, one line each.

    `dynamic` holds the names of tools that exist only during a run.
    """
    tools = [(agent, tool) for agent in agents for tool in list_tools(agent)]
    known = sorted({name for _, tool in tools if (name := _name(tool))})
    nested = {_name(tool) for agent in find_sub_agents(agents) for tool in list_tools(agent)}
    wrong: list[str] = []
    for name in ruled:
        found = [(agent, tool) for agent, tool in tools if _name(tool) == name]
        if name in nested:
            wrong.append(f"tool {name!r} can't be made to ask: its agent is a tool itself; give the rule to that tool")
        elif not found and name not in dynamic:
            wrong.append(_unknown(name, known, agents))
        if any(not _can_ask(agent, tool) for agent, tool in found):
            wrong.append(f"tool {name!r} can't be made to ask: the framework does not run it; remove its rule")
    for name in dynamic:
        if name not in ruled:
            wrong.append(f"dynamic_tools: {name!r} has no rule in tools")
        elif name in known:
            wrong.append(f"dynamic_tools: {name!r} is known before a run; remove it from dynamic_tools")
        else:
            wrong += _dynamic_findings(name, agents)
    return wrong


def find_sub_agents(agents: Sequence[Any]) -> list[Any]:
    """Return the agents that agents have as tools, at any depth."""
    found: list[Any] = []
    waiting = [tool for agent in agents for tool in list_tools(agent)]
    while waiting:
        for agent in _agents_behind(waiting.pop()):
            if not any(agent is one for one in (*agents, *found)):
                found.append(agent)
                waiting += list_tools(agent)
    return found


def _agents_behind(tool: Any) -> list[Any]:
    """Return the agents of a tool created by `as_tool`. Only the closure of its function refers to them."""
    values: list[Any] = []
    for cell in getattr(getattr(tool, "func", None), "__closure__", None) or ():
        # A cell is empty until its variable is set.
        with suppress(ValueError):
            values.append(cell.cell_contents)
    agents = [value for value in values if isinstance(value, BaseAgent)]
    workflows = [agent.workflow for agent in agents if isinstance(agent, WorkflowAgent)]
    inner = [agent for workflow in workflows for agent in agents_in(workflow)]
    return [*agents, *inner]


def require_approval(agents: Sequence[Any], ruled: Collection[str]) -> None:
    for agent in agents:
        for tool in list_tools(agent):
            if _name(tool) in ruled:
                tool.approval_mode = ASKS


def has_dynamic_tools(agent: Any) -> bool:
    """Return True if an MCP server or a context provider may add tools to an agent during a run."""
    providers: Any = getattr(agent, "context_providers", None) or ()
    return bool(getattr(agent, "mcp_tools", None)) or any(not isinstance(one, HistoryProvider) for one in providers)


def approval_middleware(ruled: Collection[str], dynamic: Collection[str]) -> ApprovalMiddleware:
    reject = RejectUnapproved(frozenset(ruled))
    return reject, MarkOfferedTools(frozenset(ruled), frozenset(dynamic), reject)


def add_middleware(agents: Sequence[Any], middleware: ApprovalMiddleware) -> None:
    """Add the middleware to the agents of a workflow, which accepts none for a run. Idempotent."""
    for agent in agents:
        if isinstance(agent, RawAgent) and not any(one is middleware[0] for one in agent.middleware or ()):
            agent.middleware = [*(agent.middleware or ()), *middleware]


def require_in_builds(
    make: Callable[[], T], find_agents: Callable[[T], Sequence[Any]], ruled: Collection[str], dynamic: Collection[str]
) -> Callable[[], T]:
    """Return a function that builds what `make` builds, with agents whose tools require approval."""
    middleware = approval_middleware(ruled, dynamic)

    def build() -> T:
        made = make()
        agents = find_agents(made)
        require_approval(agents, ruled)
        if ruled or any(map(has_dynamic_tools, agents)):
            add_middleware(agents, middleware)
        return made

    return build


class RejectUnapproved(FunctionMiddleware):
    """Ends a run that calls a tool with a rule without an approval."""

    def __init__(self, ruled: frozenset[str]) -> None:
        self._ruled = ruled

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        tool = context.function
        if _APPROVED not in context.metadata and (tool.name in self._ruled or tool.approval_mode not in _MODES):
            log.error("tool call without approval, ending the run: tool=%s", tool.name)
            # Any other error would be passed to the model as the result of the tool.
            raise MiddlewareFailure("The tool requires approval.")
        await call_next()


class MarkOfferedTools(ChatMiddleware):
    """Makes tools added during a run require approval if they have a rule, before the model can call them."""

    def __init__(self, ruled: frozenset[str], dynamic: frozenset[str], reject: RejectUnapproved) -> None:
        self._ruled = ruled
        self._unseen = set(dynamic)
        self._reject = reject

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        options: Mapping[str, Any] = context.options or {}
        offered = [tool for tool in options.get("tools") or () if isinstance(tool, FunctionTool)]
        for tool in offered:
            if tool.name in self._ruled:
                tool.approval_mode = ASKS
            elif tool.approval_mode not in _MODES:
                log.error("unknown approval_mode, requiring approval: tool=%s", tool.name)
                tool.approval_mode = ASKS
            # An agent that is a tool takes no middleware of the run.
            add_middleware(_agents_behind(tool), (self._reject, self))
        if self._unseen:
            self._report_unseen({tool.name for tool in offered})
        await call_next()

    def _report_unseen(self, offered: set[str]) -> None:
        for name in sorted(self._unseen - offered):
            log.warning("approval rule for a dynamic tool that the agent does not offer: tool=%s", name)
        # Each name once. A tool may be offered to some people only.
        self._unseen.clear()


def _name(tool: Any) -> Any:
    return cast("Mapping[str, Any]", tool).get("name") if isinstance(tool, Mapping) else getattr(tool, "name", None)


def _can_ask(agent: Any, tool: Any) -> bool:
    if not isinstance(tool, FunctionTool):
        return False
    return tool.approval_mode == ASKS or _is_run_by_framework(agent)


def _is_run_by_framework(agent: Any) -> bool:
    return isinstance(agent, RawAgent) and isinstance(cast(Any, agent).client, FunctionInvocationLayer)


def _unknown(name: str, known: Sequence[str], agents: Sequence[Any]) -> str:
    line = f"the target has no tool called {name!r}"
    close = get_close_matches(name, known, n=1)
    if close:
        return f"{line}; did you mean {close[0]!r}?"
    if any(map(has_dynamic_tools, agents)):
        return f"{line}; if a context provider or an MCP server adds it during a run, list it in dynamic_tools too"
    return line


def _dynamic_findings(name: str, agents: Sequence[Any]) -> Iterator[str]:
    """Yield a line for each agent that may get a tool during a run that cannot require approval."""
    if not any(map(_takes_middleware, agents)):
        yield f"dynamic_tools: {name!r} can't be made to ask: the target has no agent of which the framework runs tools"
        return
    for agent in agents:
        if has_dynamic_tools(agent) and not _takes_middleware(agent):
            yield f"dynamic_tools: {name!r} can't be made to ask in agent {_name(agent)!r}, which takes no middleware"
        for tool in list_tools(agent):
            if isinstance(tool, Mapping) and not _asks_hosted(cast("Mapping[str, Any]", tool), name):
                yield f"dynamic_tools: a hosted MCP server may run {name!r} without asking; set its approval to always"


def _takes_middleware(agent: Any) -> bool:
    has_layers = isinstance(agent, AgentMiddlewareLayer) and isinstance(cast(Any, agent).client, ChatMiddlewareLayer)
    return has_layers and _is_run_by_framework(agent)


def _asks_hosted(tool: Mapping[str, Any], name: str) -> bool:
    if tool.get("type") != "mcp":
        return True
    allowed: Any = tool.get("allowed_tools")
    if isinstance(allowed, (list, tuple)) and name not in allowed:
        return True
    required: Any = tool.get("require_approval", "always")
    if isinstance(required, Mapping):
        always: Any = cast("Mapping[str, Any]", required).get("always") or {}
        return name in (always.get("tool_names") or ())
    return required == "always"


def _server_findings(server: Any) -> Iterator[str]:
    mode: Any = getattr(server, "approval_mode", None)
    label = f"target: MCP server {_name(server)!r}"
    if isinstance(mode, Mapping):
        given = cast("Mapping[Any, Any]", mode)
        for key in given:
            if key not in _MCP_LISTS:
                yield f"{label} has {key!r} in approval_mode; use {_MCP_LISTS[0]!r} or {_MCP_LISTS[1]!r}"
        for key in _MCP_LISTS:
            names = given.get(key)
            if names is not None and (isinstance(names, str) or not isinstance(names, Collection)):
                yield f"{label} has no list of tools in {key} of approval_mode"
    elif mode is not None and mode not in _MODES:
        yield f"{label} has approval_mode={mode!r}; {_USE_MODES}"
