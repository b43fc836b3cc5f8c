"""Builds a workflow for each run, and detects at startup if runs would share state."""

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, cast, get_args, get_type_hints

from agent_framework import (
    Executor,
    FunctionalWorkflow,
    FunctionalWorkflowAgent,
    FunctionExecutor,
    WorkflowAgent,
    register_checkpoint_type,
)

from frontdesk.targets.checkpoints import Checkpoints, own_storage
from frontdesk.targets.resume import Resumption


def register_held_types(workflow: Any) -> None:
    """Register a workflow's own types, so that they can be decoded from its checkpoints."""
    seen: set[type] = set()
    for annotation in _annotations(workflow):
        for kind in _types_in(annotation, seen):
            register_checkpoint_type(kind)


def _annotations(workflow: Any) -> Iterator[Any]:
    for executor in getattr(workflow, "executors", {}).values():
        yield from _of_executor(executor)
    # A workflow that is one function: the types of the function and of its steps.
    function = getattr(workflow, "__wrapped__", None)
    if inspect.isfunction(function):
        yield from _hints(function).values()
        for step in _used_by(function):
            yield from _hints(getattr(step, "__wrapped__", None)).values()


def _used_by(function: FunctionType) -> list[Any]:
    try:
        used = inspect.getclosurevars(function)
    except ValueError:
        # It uses a variable that has no value yet.
        return []
    return [*used.globals.values(), *used.nonlocals.values()]


def _of_executor(executor: Executor) -> Iterator[Any]:
    yield from [*executor.input_types, *executor.output_types, *executor.workflow_output_types]
    for name in dir(type(executor)):
        # The types of requests and answers are only in the annotations of the response handlers.
        function = getattr(inspect.getattr_static(type(executor), name, None), "__wrapped__", None)
        yield from _hints(function).values()
    inner: Any = getattr(executor, "workflow", None)
    if inner is not None:
        yield from _annotations(inner)


def _hints(function: Any) -> dict[str, Any]:
    if function is None:
        return {}
    try:
        return get_type_hints(function)
    except (NameError, TypeError, AttributeError, SyntaxError):
        # An annotation that exists only for type checkers, or an object without any.
        return {}


def _types_in(annotation: Any, seen: set[type]) -> Iterator[type]:
    for argument in get_args(annotation):
        yield from _types_in(argument, seen)
    if not isinstance(annotation, type) or annotation in seen or annotation.__module__ == "builtins":
        return
    kind = cast("type[Any]", annotation)
    seen.add(kind)
    yield kind
    if dataclasses.is_dataclass(kind) or hasattr(kind, "model_fields") or hasattr(kind, "__struct_fields__"):
        for hint in _hints(kind).values():
            yield from _types_in(hint, seen)


WORKFLOW_AGENTS = (WorkflowAgent, FunctionalWorkflowAgent)
"""Agents that are workflows: unlike others they keep messages between runs."""

_MADE_UP_NAME = re.compile(r"\w+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CHANGING = (
    "target: the workflow is another one each time it is built, so that it may not pause, and a session has no memory "
    "in it; give every executor and agent an id or a name of its own"
)
_TWO_STORAGES = (
    "target: the workflow has a checkpoint storage of its own, and the host was given one too; leave one of them out"
)
_OWN_STORAGE = "the workflow keeps checkpoints in a storage of its own: state_dir has no effect on them"
_NO_NAME = "target: the workflow has no name, so it is a new one at each start; give the builder a name="
_SHARED = (
    "target: {} is the same object each time the workflow is built, and what one caller says would stay in it for the "
    "next one; make it inside the function that builds the workflow"
)
_ONE_AT_A_TIME = (
    "target: {} is the same object each time the workflow is built, so that runs wait for each other in it; "
    "make it inside the function that builds the workflow"
)


class Blueprint:
    """Builds the workflow of a target. `make` returns a new instance at each call."""

    def __init__(self, make: Callable[[], Any], checkpoints: Checkpoints | None, *, anew: bool = False) -> None:
        """Build the workflow twice for comparison. With `anew`, only a pause is restored from a checkpoint."""
        self.make = make
        self.sample = sample = make()
        other = make()
        stateful, locked = _name_shared_parts(sample, other)
        changes = _signature(other) != _signature(sample)
        self.findings = [] if sample.name and not _MADE_UP_NAME.fullmatch(sample.name) else [_NO_NAME]
        self.findings += [_SHARED.format(part) for part in stateful]
        self.warnings = [_CHANGING] if changes else []
        if checkpoints is not None and own_storage(sample) is not None:
            if not checkpoints.gives_way:
                self.findings.append(_TWO_STORAGES)
            elif checkpoints.is_directory:
                self.warnings.append(_OWN_STORAGE)
        self.warnings += [_ONE_AT_A_TIME.format(part) for part in locked]
        self.resumption = None if changes else self._resumption(checkpoints, anew)
        register_held_types(sample)

    def _resumption(self, checkpoints: Checkpoints | None, anew: bool) -> Resumption:
        storage = own_storage(self.sample)
        kept = Checkpoints.of(storage) if storage is not None else checkpoints or Checkpoints.in_memory()
        if isinstance(self.sample, FunctionalWorkflow):
            # Its signature includes the variables that the function uses, which may change.
            return Resumption(kept, lambda: _signature(self.make()), replays=True)
        signature = _signature(self.sample)
        return Resumption(kept, lambda: signature, replays=False, anew=anew)


def agents_in(workflow: Any) -> list[Any]:
    """Return the agents that a workflow runs, including those of nested workflows."""
    return [agent for _, part in _parts(workflow) if (agent := getattr(part, "agent", None)) is not None]


def _signature(workflow: Any) -> str | None:
    return getattr(workflow, "graph_signature_hash", None)


def _name_shared_parts(sample: Any, other: Any) -> tuple[list[str], list[str]]:
    """Name the parts shared by two builds: those that can keep messages, and those that only lock."""
    ids = {id(part) for _, part in _parts(other)}
    shared = {name: part for name, part in _parts(sample) if id(part) in ids}
    stateful = [name for name, part in shared.items() if not isinstance(part, FunctionExecutor)]
    return stateful, [name for name in shared if name not in stateful]


def _parts(workflow: Any, within: str = "") -> Iterator[tuple[str, Any]]:
    for name, executor in getattr(workflow, "executors", {}).items():
        yield f"executor {within}{name}", executor
        agent: Any = getattr(executor, "agent", None)
        inner: Any = agent.workflow if isinstance(agent, WorkflowAgent) else getattr(executor, "workflow", None)
        if inner is not None:
            yield f"the workflow in executor {within}{name}", inner
            yield from _parts(inner, f"{within}{name}/")
