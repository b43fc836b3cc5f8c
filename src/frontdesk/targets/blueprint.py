"""Builds a workflow for each run, and checks at the start whether runs would share state."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from agent_framework import FunctionalWorkflow, FunctionalWorkflowAgent, FunctionExecutor, WorkflowAgent

from frontdesk.targets.checkpoints import Checkpoints, own_storage
from frontdesk.targets.held_types import register_held_types
from frontdesk.targets.resume import Resumption

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
    """Build the workflow of a target; `make` returns a new instance at each call."""

    def __init__(self, make: Callable[[], Any], checkpoints: Checkpoints | None, *, anew: bool = False) -> None:
        """Build the workflow twice to compare; with `anew`, only a pause is restored from a checkpoint."""
        self.make = make
        self.sample = sample = make()
        other = make()
        stateful, locked = _shared_parts(sample, other)
        changes = _signature(other) != _signature(sample)
        self.findings = [] if sample.name and not _MADE_UP_NAME.fullmatch(sample.name) else [_NO_NAME]
        self.findings += [_SHARED.format(part) for part in stateful]
        if checkpoints is not None and not checkpoints.gives_way and own_storage(sample) is not None:
            self.findings.append(_TWO_STORAGES)
        self.warnings = [_CHANGING] if changes else []
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
    """Return the agents that a workflow runs, those of the workflows inside it included."""
    return [agent for _, part in _parts(workflow) if (agent := getattr(part, "agent", None)) is not None]


def _signature(workflow: Any) -> str | None:
    return getattr(workflow, "graph_signature_hash", None)


def _shared_parts(sample: Any, other: Any) -> tuple[list[str], list[str]]:
    """Name the parts that two builds share: those that can keep messages, and those that only lock."""
    ids = {id(part) for _, part in _parts(other)}
    shared = {name: part for name, part in _parts(sample) if id(part) in ids}
    stateful = [name for name, part in shared.items() if not isinstance(part, FunctionExecutor)]
    return stateful, [name for name in shared if name not in stateful]


def _parts(workflow: Any, within: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the executors of a workflow, and those of the workflows inside them."""
    for name, executor in getattr(workflow, "executors", {}).items():
        yield f"executor {within}{name}", executor
        agent: Any = getattr(executor, "agent", None)
        inner: Any = agent.workflow if isinstance(agent, WorkflowAgent) else getattr(executor, "workflow", None)
        if inner is not None:
            yield f"the workflow in executor {within}{name}", inner
            yield from _parts(inner, f"{within}{name}/")
