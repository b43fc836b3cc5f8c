"""Finds out what the operator handed over."""

import inspect
from collections.abc import Callable
from typing import Any, Literal

from agent_framework import (
    FunctionalWorkflow,
    FunctionalWorkflowDefinition,
    SupportsAgentRun,
    Workflow,
    WorkflowBuilder,
)

from frontdesk.abc.target import Target
from frontdesk.errors import ChannelConfigurationError
from frontdesk.targets.agent import AgentTarget
from frontdesk.targets.checkpoints import Checkpoints
from frontdesk.targets.function import FunctionTarget
from frontdesk.targets.workflow import WorkflowTarget, can_be_copied, from_builder, from_workflow

InstallHistory = Callable[[Any], Literal["provider", "own", "host"]]

_WORKFLOWS = (Workflow, FunctionalWorkflow)
_BUILDERS = (WorkflowBuilder, FunctionalWorkflowDefinition)


def adapt(target: Any, install_history: InstallHistory, checkpoints: Checkpoints | None = None) -> Target:
    """The target in the one form that the pipeline runs; checkpoints that nobody has chosen are kept in memory."""
    if isinstance(target, _WORKFLOWS):
        return from_workflow(target, checkpoints)  # pyright: ignore[reportArgumentType]
    if isinstance(target, _BUILDERS):
        return _built(target, checkpoints)
    if inspect.iscoroutinefunction(target) or inspect.isasyncgenfunction(target):
        return FunctionTarget(target)
    if isinstance(target, SupportsAgentRun):
        return AgentTarget(target, install_history(target))
    if callable(target) and not isinstance(target, type):
        return _factory(target, checkpoints)
    raise ChannelConfigurationError(
        f"target: {type(target).__name__} is not an agent (it needs id, name, description, run, create_session and "
        "get_session), a workflow, a function that builds one, or an async function"
    )


def _built(builder: Any, checkpoints: Checkpoints | None) -> Target:
    if can_be_copied(builder):
        return from_builder(builder, checkpoints)
    raise ChannelConfigurationError(
        "target: what this builder holds can't be copied, and its executors would be shared by all sessions; "
        "pass a function that makes the builder and builds the workflow"
    )


def _factory(factory: Callable[[], Any], checkpoints: Checkpoints | None) -> Target:
    name = getattr(factory, "__name__", type(factory).__name__)
    try:
        made = factory()
    except Exception as error:
        raise ChannelConfigurationError(f"target: {name}() failed: {type(error).__name__}: {error}") from error
    if isinstance(made, _BUILDERS):
        return WorkflowTarget(factory, lambda: factory().build(), checkpoints=checkpoints)
    if isinstance(made, _WORKFLOWS):
        again = factory()
        if again is made:
            return from_workflow(made, checkpoints)  # pyright: ignore[reportArgumentType]
        return WorkflowTarget(factory, factory, checkpoints=checkpoints)
    raise ChannelConfigurationError(
        f"target: {name}() returned {type(made).__name__}; it must build a workflow, or be an async function"
    )
