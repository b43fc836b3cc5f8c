"""Detects the kind of a target and adapts it. `FunctionTarget` runs plain functions."""

import inspect
import json
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import aclosing
from typing import Any, cast, get_origin

from agent_framework import (
    AgentResponse,
    AgentResponseUpdate,
    Content,
    FunctionalWorkflow,
    FunctionalWorkflowAgent,
    FunctionalWorkflowDefinition,
    Message,
    SupportsAgentRun,
    SupportsChatGetResponse,
    Workflow,
    WorkflowAgent,
    WorkflowBuilder,
)

from frontdesk.errors import ChannelConfigurationError
from frontdesk.framework.contents import require_messages
from frontdesk.framework.types import is_response
from frontdesk.interfaces.target import HistoryKeeper, Target, TargetInfo, TargetStream, TargetTurn
from frontdesk.models.request import ChannelRequest
from frontdesk.targets.agent import AgentTarget
from frontdesk.targets.blueprint import WORKFLOW_AGENTS
from frontdesk.targets.checkpoints import Checkpoints
from frontdesk.targets.extras import function_results, refuse_extras
from frontdesk.targets.streams import PlainStream
from frontdesk.targets.workflow import WorkflowAgentTarget, WorkflowTarget, can_be_copied, from_builder

_LISTS = (list, Sequence, Collection, Iterable)


class FunctionTarget:
    """A function of the text, or of all messages, history first, if its parameter is annotated as a list."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.native = function
        self.warnings: list[str] = []
        self._generates = inspect.isasyncgenfunction(function)
        parameters = _parameters(function)
        self.findings = _parameter_findings(function, parameters)
        first = parameters[0].annotation if parameters else str
        self._takes_messages = (get_origin(first) or first) in _LISTS
        self._takes_session = any(parameter.name == "session" for parameter in parameters[1:])
        self.info = TargetInfo(
            name=getattr(function, "__name__", "function"),
            kind="function",
            description=inspect.getdoc(function) or "",
            messages=self._takes_messages,
            history="host" if self._takes_messages else None,
        )

    def check(self, request: ChannelRequest) -> None:
        refuse_extras(request, "function")

    async def prepare(self, turn: TargetTurn) -> list[Message]:
        return function_results(turn)

    async def run(self, turn: TargetTurn) -> Any:
        if self._generates:
            stream = await self.stream(turn)
            async for _ in stream:
                pass
            return await stream.final()
        return self._finish(turn, _response(await self._call(turn)))

    async def stream(self, turn: TargetTurn) -> TargetStream:
        call = await self._prepare(turn)
        # An answer that came in one piece is kept as it is: updates do not carry its structured value.
        whole: list[AgentResponse[Any]] = []
        updates = _pieces(call) if self._generates else _whole(call, whole)
        return PlainStream(updates, lambda joined: self._finish(turn, whole[0] if whole else joined))

    async def _call(self, turn: TargetTurn) -> Any:
        return await (await self._prepare(turn))()

    async def _prepare(self, turn: TargetTurn) -> Callable[[], Any]:
        require_messages(turn.messages)
        self.check(turn.admitted.request)
        argument: Any = "\n".join(message.text for message in turn.messages)
        if self._takes_messages:
            argument = [*await turn.history(), *turn.messages]
        await turn.begin()
        keywords = {"session": turn.session} if self._takes_session else {}
        return lambda: self.native(argument, **keywords)

    def _finish(self, turn: TargetTurn, result: AgentResponse[Any]) -> AgentResponse[Any]:
        turn.staged = [*turn.messages, *result.messages]
        return result


async def _pieces(call: Callable[[], Any]) -> AsyncIterator[AgentResponseUpdate]:
    async with aclosing(call()) as pieces:
        async for piece in pieces:
            yield _update(piece)


async def _whole(call: Callable[[], Any], kept: list[AgentResponse[Any]]) -> AsyncIterator[AgentResponseUpdate]:
    kept.append(_response(await call()))
    for place, update in enumerate(kept[0].to_updates()):
        # Without ids, two messages would be joined to one when the updates are put together.
        update.message_id = update.message_id or f"message_{place}"
        yield update


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function, eval_str=True).parameters.values())
    except NameError:
        # An annotation that exists only for type checkers.
        return list(inspect.signature(function).parameters.values())


def _parameter_findings(function: Callable[..., Any], parameters: list[inspect.Parameter]) -> list[str]:
    required = (parameter.name for parameter in parameters[1:] if parameter.default is inspect.Parameter.empty)
    needed = [name for name in required if name != "session"]
    name = getattr(function, "__name__", "function")
    if not parameters:
        return [f"target: {name}() takes no argument; it needs one for the text or the messages"]
    if parameters[0].kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD):
        return [f"target: {name}() takes {parameters[0].name} by name only; it is called with the input as it is"]
    if needed:
        return [f"target: {name}() needs {', '.join(needed)}; it is called with the input, and `session` if it has one"]
    return []


def _response(value: Any) -> AgentResponse[Any]:
    if is_response(value):
        return value
    if isinstance(value, Message):
        return AgentResponse(messages=[value])
    if isinstance(value, str):
        return AgentResponse(messages=[Message("assistant", [value])])
    if isinstance(value, Content):
        return AgentResponse(messages=[Message("assistant", [value])])
    if inspect.isawaitable(value):
        close = getattr(value, "close", None)
        if callable(close):
            close()
        raise TypeError(
            f"the function returned a {type(value).__name__} instead of an answer. Check for a missing await"
        )
    return AgentResponse(messages=[Message("assistant", [json.dumps(value)])], value=value)


def _update(piece: Any) -> AgentResponseUpdate:
    if isinstance(piece, AgentResponseUpdate):
        return piece
    content = piece if isinstance(piece, Content) else Content.from_text(str(piece))
    return AgentResponseUpdate(contents=[content], role="assistant")


InstallHistory = Callable[[Any], HistoryKeeper]

_WORKFLOWS = (Workflow, FunctionalWorkflow)
_BUILDERS = (WorkflowBuilder, FunctionalWorkflowDefinition)


_ANSWERS = (str, Message, Content, AgentResponse)
_ANSWER_NAMES = tuple(kind.__name__ for kind in _ANSWERS)
_ONE_FOR_ALL = (
    "target: a {} is one object for all callers: what one of them says stays in it for the next, and it does one run "
    "at a time; pass the function that builds it, as in target={}"
)
_NOT_AS_AGENT = (
    "target: a functional workflow is run as what it is, and not as an agent; leave .as_agent() out: pass what "
    "@workflow has made, or a function that builds it"
)


def adapt(target: Any, install_history: InstallHistory, checkpoints: Checkpoints | None = None) -> Target:
    """Adapt a target for the pipeline. Without `checkpoints`, they are kept in memory."""
    if isinstance(target, type):
        name = target.__name__
        raise ChannelConfigurationError(f"target: {name} is a class. Pass an instance: {name}(...)")
    _refuse_shared(target)
    if isinstance(target, _BUILDERS):
        return _build(target, checkpoints)
    if inspect.iscoroutinefunction(target) or inspect.isasyncgenfunction(target):
        return FunctionTarget(target)
    if isinstance(target, SupportsAgentRun):
        return AgentTarget(target, install_history(target))
    if callable(target):
        _refuse_sync(target)
        return _factory(target, install_history, checkpoints)
    if isinstance(target, SupportsChatGetResponse):
        name = type(cast(object, target)).__name__
        raise ChannelConfigurationError(
            f"target: {name} is a chat client. Pass an agent with it: Agent(client=..., name=...)"
        )
    raise ChannelConfigurationError(
        f"target: {type(target).__name__} is not an agent (it needs id, name, description, run, create_session and "
        "get_session), a workflow, a function that builds one, or an async function"
    )


def _refuse_shared(target: Any) -> None:
    """Reject an object that keeps callers' messages. Its executors cannot be copied, nor all their state reset."""
    if isinstance(target, FunctionalWorkflowAgent):
        raise ChannelConfigurationError(_NOT_AS_AGENT)
    if isinstance(target, WORKFLOW_AGENTS):
        raise ChannelConfigurationError(_ONE_FOR_ALL.format("WorkflowAgent", "lambda: build().as_agent()"))
    if isinstance(target, _WORKFLOWS):
        raise ChannelConfigurationError(_ONE_FOR_ALL.format(type(target).__name__, "build instead of target=build()"))


def _refuse_sync(function: Callable[..., Any]) -> None:
    """Reject a synchronous function that answers instead of building something. It is not called to find out."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    returned = signature.return_annotation
    needs_input = any(_is_input(parameter) for parameter in signature.parameters.values())
    if needs_input or returned in _ANSWERS or returned in _ANSWER_NAMES:
        raise ChannelConfigurationError(
            f"target: {_name(function)}() is not async. Pass an `async def` function, and make blocking calls with "
            "`await asyncio.to_thread(...)`"
        )


def _is_input(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.kind in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )


def _build(builder: Any, checkpoints: Checkpoints | None) -> Target:
    if can_be_copied(builder):
        return from_builder(builder, checkpoints)
    raise ChannelConfigurationError(
        "target: parts of this builder can't be copied, so all sessions would share its executors. "
        "Pass a function that creates the builder and builds the workflow"
    )


def _factory(factory: Callable[[], Any], install_history: InstallHistory, checkpoints: Checkpoints | None) -> Target:
    made, again = _call(factory), _call(factory)
    if isinstance(made, _BUILDERS):
        return WorkflowTarget(factory, lambda: factory().build(), checkpoints=checkpoints)
    if again is made or isinstance(made, FunctionalWorkflowAgent):
        _refuse_shared(made)
    if isinstance(made, _WORKFLOWS):
        return WorkflowTarget(factory, factory, checkpoints=checkpoints)
    if isinstance(made, WorkflowAgent):
        if again.workflow is made.workflow:
            _refuse_shared(made)
        return WorkflowAgentTarget(factory, install_history, checkpoints)
    raise ChannelConfigurationError(
        f"target: {_name(factory)}() returned {type(made).__name__}, it must return a workflow or be an async function"
    )


def _call(factory: Callable[[], Any]) -> Any:
    try:
        return factory()
    except Exception as error:
        message = f"target: {_name(factory)}() failed: {type(error).__name__}: {error}"
        raise ChannelConfigurationError(message) from error


def _name(factory: Callable[[], Any]) -> str:
    return getattr(factory, "__name__", type(factory).__name__)
