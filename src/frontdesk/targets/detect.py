"""Detects the kind of a target."""

import inspect
from collections.abc import Callable
from typing import Any, cast

from agent_framework import (
    AgentResponse,
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

from frontdesk.abc.target import HistoryKeeper, Target
from frontdesk.errors import ChannelConfigurationError
from frontdesk.targets.agent import AgentTarget
from frontdesk.targets.blueprint import WORKFLOW_AGENTS
from frontdesk.targets.checkpoints import Checkpoints
from frontdesk.targets.function import FunctionTarget
from frontdesk.targets.workflow import WorkflowTarget, can_be_copied, from_builder
from frontdesk.targets.workflow_agent import WorkflowAgentTarget

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
    """Return a target in the form that the pipeline runs; without `checkpoints`, they are kept in memory."""
    if isinstance(target, type):
        name = target.__name__
        raise ChannelConfigurationError(f"target: {name} is a class; give an instance: {name}(...)")
    _refuse_shared(target)
    if isinstance(target, _BUILDERS):
        return _built(target, checkpoints)
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
            f"target: {name} is the client of a model; give an agent that has it: Agent(client=..., name=...)"
        )
    raise ChannelConfigurationError(
        f"target: {type(target).__name__} is not an agent (it needs id, name, description, run, create_session and "
        "get_session), a workflow, a function that builds one, or an async function"
    )


def _refuse_shared(target: Any) -> None:
    """Refuse an object that keeps messages of callers: its executors can't be copied, nor all of their state reset."""
    if isinstance(target, FunctionalWorkflowAgent):
        raise ChannelConfigurationError(_NOT_AS_AGENT)
    if isinstance(target, WORKFLOW_AGENTS):
        raise ChannelConfigurationError(_ONE_FOR_ALL.format("WorkflowAgent", "lambda: build().as_agent()"))
    if isinstance(target, _WORKFLOWS):
        raise ChannelConfigurationError(_ONE_FOR_ALL.format(type(target).__name__, "build instead of target=build()"))


def _refuse_sync(function: Callable[..., Any]) -> None:
    """Refuse a plain function that answers instead of building something; it is not called to find out."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    returned = signature.return_annotation
    needs_input = any(_is_input(parameter) for parameter in signature.parameters.values())
    if needs_input or returned in _ANSWERS or returned in _ANSWER_NAMES:
        raise ChannelConfigurationError(
            f"target: {_name(function)}() is not async; pass an `async def` function, and call what takes long with "
            "`await asyncio.to_thread(...)`"
        )


def _is_input(parameter: inspect.Parameter) -> bool:
    """Tell whether a parameter has to be given, and can be given as the input is."""
    return parameter.default is parameter.empty and parameter.kind in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )


def _built(builder: Any, checkpoints: Checkpoints | None) -> Target:
    if can_be_copied(builder):
        return from_builder(builder, checkpoints)
    raise ChannelConfigurationError(
        "target: what this builder holds can't be copied, and its executors would be shared by all sessions; "
        "pass a function that makes the builder and builds the workflow"
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
        f"target: {_name(factory)}() returned {type(made).__name__}; it must build a workflow, or be an async function"
    )


def _call(factory: Callable[[], Any]) -> Any:
    try:
        return factory()
    except Exception as error:
        message = f"target: {_name(factory)}() failed: {type(error).__name__}: {error}"
        raise ChannelConfigurationError(message) from error


def _name(factory: Callable[[], Any]) -> str:
    return getattr(factory, "__name__", type(factory).__name__)
