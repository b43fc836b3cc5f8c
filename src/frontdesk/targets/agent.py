"""`AgentTarget`: runs any object that implements `SupportsAgentRun`."""

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack
from typing import Any, cast

from agent_framework import (
    AgentResponse,
    AgentSession,
    ChatContext,
    ChatMiddleware,
    FunctionInvocationContext,
    FunctionMiddleware,
    FunctionTool,
    Message,
    MiddlewareFailure,
    MiddlewareTypes,
    RawAgent,
)

from frontdesk.errors import FrontdeskError, InvalidRequestError
from frontdesk.framework.contents import require_messages
from frontdesk.framework.types import list_tools, schema_digest
from frontdesk.identifiers import is_named
from frontdesk.interfaces.target import (
    HistoryKeeper,
    RequiresApprovals,
    ShowsToolSchemas,
    TargetInfo,
    TargetStream,
    TargetTurn,
)
from frontdesk.loggers import runs as log
from frontdesk.models.request import ChannelRequest, ClientTool
from frontdesk.serialization.codec import register_answer
from frontdesk.targets.binding import asks_for_attributes, bind, find_bindings, list_binding_findings
from frontdesk.targets.extras import OWN_HISTORY, function_results
from frontdesk.targets.own_history import find_fork, of_turn
from frontdesk.targets.streams import as_stream
from frontdesk.targets.tool_approvals import (
    approval_middleware,
    has_dynamic_tools,
    mode_findings,
    require_approval,
    rule_findings,
)

_APPROVALS = "tool_approval"
"""The key under which the framework keeps the pending approval requests of a session."""
_UNNAMED = (
    "target: the agent has no name; clients are shown its id instead, which may be another one after each start: "
    "give it name="
)
_NAMESAKE = (
    "target: the agent answers in a type whose name another type has in the store; a store on disk can't keep its "
    "answers until it is registered with frontdesk.serialization.codec.register_model under a name of its own"
)


class AgentTarget(RequiresApprovals, ShowsToolSchemas):
    """An agent. The signature of its `run` is read once. Unsupported options are rejected by name."""

    def __init__(self, agent: Any, history: HistoryKeeper = "host") -> None:
        self.native = agent
        self._binding = find_bindings(agent)
        self.findings = list(list_binding_findings(self._binding))
        self.warnings = [OWN_HISTORY] if history == "own" else []
        self._history = history
        if not register_answer(_defaults(agent).get("response_format")):
            self.warnings.append(_NAMESAKE)
        if not agent.name:
            self.warnings.append(_UNNAMED)
        parameters = inspect.signature(agent.run).parameters
        any_keyword = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
        # Only of this class it is known that it runs function middleware.
        self._observes_tools = "middleware" in parameters and isinstance(agent, RawAgent)
        self._takes_session = "session" in parameters or any_keyword
        self._defaults = _stay_local(agent) if "options" in parameters and history == "provider" else {}
        self.info = TargetInfo(
            name=agent.name or agent.id,
            kind="agent",
            description=agent.description or "",
            options="options" in parameters,
            tools="tools" in parameters,
            tool_names=_tool_names(agent),
            history=history,
            reads_attributes=asks_for_attributes(self._binding),
        )
        self.findings += mode_findings([agent])
        self._approval_middleware: tuple[MiddlewareTypes, ...] = ()
        self._warned_of_leftovers = False

    def approval_findings(self, ruled: Collection[str], dynamic: Collection[str]) -> list[str]:
        return rule_findings([self.native], ruled, dynamic)

    def require_approvals(self, ruled: Collection[str], dynamic: Collection[str]) -> None:
        require_approval([self.native], ruled)
        if self._observes_tools and (ruled or has_dynamic_tools(self.native)):
            self._approval_middleware = approval_middleware(ruled, dynamic)

    def tool_schema(self, name: str) -> str | None:
        return schema_digest(list_tools(self.native), name)

    def check(self, request: ChannelRequest) -> None:
        if request.options and not self.info.options:
            name = next(iter(request.options))
            raise InvalidRequestError(f"This agent does not support {name!r}.", param=name)
        if request.client_tools and not self.info.tools:
            raise InvalidRequestError("This agent does not support client tools.", param="tools")
        for tool in request.client_tools:
            if is_named(tool.name, self.info.tool_names):
                raise InvalidRequestError(
                    f"The agent has its own tool named {tool.name!r}. Rename the client tool.", param="tools"
                )

    async def prepare(self, turn: TargetTurn) -> list[Message]:
        for answer in turn.admitted.request.approvals:
            question = await turn.question(answer.approval_id)
            if question is not None and turn.record is not None:
                _restore_request(self._get_session(turn), question.request)
        if self._history == "own":
            await find_fork(self.native.context_providers, turn)
        request, record = turn.admitted.request, turn.record
        if not (
            request.client_outputs or request.checkpoint_id is not None or (record is not None and record.client_calls)
        ):
            return []
        return function_results(turn)

    async def run(self, turn: TargetTurn) -> Any:
        arguments = await self._arguments(turn)
        agent = await of_turn(self.native, turn) if self._history == "own" else self.native
        if not self._binding:
            return self._finish(turn, await agent.run(**arguments))
        async with AsyncExitStack() as scope:
            await bind(self._binding, turn, scope)
            return self._finish(turn, await agent.run(**arguments))

    async def stream(self, turn: TargetTurn) -> TargetStream:
        arguments = await self._arguments(turn)
        agent = await of_turn(self.native, turn) if self._history == "own" else self.native
        scope = AsyncExitStack() if self._binding else None
        try:
            if scope is not None:
                await bind(self._binding, turn, scope)
            stream: Any = agent.run(stream=True, **arguments)
            if not hasattr(stream, "__aiter__"):
                # The framework's own documented custom agent returns a coroutine here.
                stream = await stream
        except BaseException:
            if scope is not None:
                await scope.aclose()
            raise
        return as_stream(stream, lambda result: self._finish(turn, result), scope)

    async def _arguments(self, turn: TargetTurn) -> dict[str, Any]:
        messages, request = turn.messages, turn.admitted.request
        if not messages:
            require_messages(messages)
        if request.options or request.client_tools:
            self.check(request)
        if self._history == "host" and turn.has_history():
            messages = [*await turn.history(), *messages]
        arguments: dict[str, Any] = {"messages": messages}
        if self._takes_session and turn.record is not None:
            arguments["session"] = self._get_session(turn)
        if request.options or self._defaults:
            arguments["options"] = {**self._defaults, **request.options}
        if request.client_tools:
            arguments["tools"] = [_declare(tool) for tool in request.client_tools]
        if self._approval_middleware:
            arguments["middleware"] = [*self._approval_middleware]
        if turn.is_guarded():
            if self._observes_tools:
                arguments["middleware"] = [*self._approval_middleware, *_begin_middleware(turn)]
            else:
                # Its tool calls can't be observed.
                await turn.begin()
        return arguments

    def _finish(self, turn: TargetTurn, result: AgentResponse[Any]) -> AgentResponse[Any]:
        if result.finish_reason in ("length", "content_filter"):
            result = _drop_response_format(result)
        # Parsed now: output that does not fit its schema fails the run, not the code that renders it.
        try:
            _ = result.value
        except ValueError:
            if not result.user_input_requests:
                raise
            # There is no final answer yet: it waits for a tool.
            result = _drop_response_format(result)
        if self._history in ("host", "agent"):
            turn.staged = [*turn.messages, *result.messages]
            plan: AgentSession | None = turn.plan
            if plan is not None and (plan.state or plan.service_session_id is not None):
                self._warn_of_leftovers(plan)
        return result

    def _get_session(self, turn: TargetTurn) -> AgentSession:
        """Choose the agent's session. With the host's history, it lasts for this run only.

        An agent looks up its stored conversation by session. If it receives the whole conversation each time, it must
        find nothing, or it would get the conversation twice.
        """
        if self._history != "host":
            return turn.session
        if turn.plan is None:
            turn.plan = AgentSession(session_id=turn.admitted.run_id)
            if turn.record is not None and turn.record.state:
                turn.session = AgentSession(session_id=turn.record.session_id)
        return turn.plan

    def _warn_of_leftovers(self, dropped: AgentSession) -> None:
        if self._warned_of_leftovers:
            return
        if dropped.service_session_id is not None or (dropped.state and dropped.state.keys() - {_APPROVALS}):
            self._warned_of_leftovers = True
            log.warning(
                "agent %s keeps something in its session, which is dropped after each turn because the host keeps the "
                'history; history="agent" leaves both to the agent',
                self.info.name,
            )


class _BeginBeforeTool(FunctionMiddleware):
    """Marks the turn as begun before the first tool call."""

    def __init__(self, turn: TargetTurn) -> None:
        self._turn = turn

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        try:
            await self._turn.begin()
        except FrontdeskError as error:
            # Any other error would be passed to the model as the result of the tool.
            raise MiddlewareFailure("The tool was not called because its turn could not begin.") from error
        await call_next()


class _BeginBeforeModel(ChatMiddleware):
    """Marks the turn as begun before the first model call, which carries approvals of hosted tools."""

    def __init__(self, turn: TargetTurn) -> None:
        self._turn = turn

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        await self._turn.begin()
        await call_next()


def _begin_middleware(turn: TargetTurn) -> list[FunctionMiddleware | ChatMiddleware]:
    approves = any(answer.approved for answer in turn.admitted.request.approvals)
    return [_BeginBeforeTool(turn), _BeginBeforeModel(turn)] if approves else [_BeginBeforeTool(turn)]


def _declare(tool: ClientTool) -> FunctionTool:
    return FunctionTool(
        name=tool.name,
        description=tool.description,
        func=None,
        input_model=dict(tool.parameters),
        additional_properties=None if tool.strict is None else {"strict": tool.strict},
    )


def _drop_response_format(result: AgentResponse[Any]) -> AgentResponse[Any]:
    """Return an incomplete answer without its response format, so that it is not parsed."""
    return AgentResponse(
        messages=result.messages,
        response_id=result.response_id,
        agent_id=result.agent_id,
        created_at=result.created_at,
        finish_reason=cast(Any, result.finish_reason),
        usage_details=result.usage_details,
        continuation_token=result.continuation_token,
        raw_representation=result.raw_representation,
        additional_properties=result.additional_properties,
    )


def _tool_names(agent: Any) -> tuple[str, ...]:
    return tuple(str(tool.name) for tool in list_tools(agent) if hasattr(tool, "name"))


def _stay_local(agent: Any) -> dict[str, Any]:
    """Turn off the history of the model's service, which would otherwise get the messages twice."""
    client = getattr(agent, "client", None)
    stores = getattr(client, "STORES_BY_DEFAULT", False) and _defaults(agent).get("store") is None
    return {"store": False} if stores else {}


def _defaults(agent: Any) -> Mapping[str, Any]:
    return getattr(agent, "default_options", None) or {}


def _restore_request(session: Any, request: Any) -> None:
    """Restore an older approval request. The framework keeps only those of the last turn that had any."""
    waiting = session.state.setdefault(_APPROVALS, {}).setdefault("pending_approval_requests", [])
    # A request of another call with the same id must not be approved by this answer.
    waiting[:] = [*(other for other in waiting if other.get("id") != request.id), request.to_dict()]
