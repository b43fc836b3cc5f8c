"""Runs a workflow, each run on an instance of its own."""

import asyncio
import copy
import re
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any, cast

from agent_framework import AgentResponse, Message, SupportsAgentRun, Workflow, WorkflowBuilder, WorkflowRunResult

from frontdesk.abc.target import TargetInfo, TargetStream, TargetTurn
from frontdesk.data.request import ChannelRequest
from frontdesk.errors import UnsupportedError
from frontdesk.kit.framework import whole_outputs
from frontdesk.targets.extras import refuse_extras
from frontdesk.targets.streams import FrameworkStream
from frontdesk.targets.typed_input import fit

_MADE_UP_NAME = re.compile(r"^\w+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


class WorkflowTarget:
    """A workflow. A factory or a builder gives each run its own instance; a bare one runs one request at a time."""

    def __init__(self, native: Any, make: Callable[[], Any], *, shared: bool = False) -> None:
        self.native = native
        self._make = make
        self._alone = asyncio.Lock() if shared else None
        self.warnings = [_SHARED] if shared else []
        sample = make()
        self.findings = _name_findings(sample)
        self._input_types: list[Any] = list(getattr(sample, "input_types", ()))
        self.info = TargetInfo(
            name=sample.name or "workflow", kind="workflow", description=getattr(sample, "description", None) or ""
        )

    def check(self, request: ChannelRequest) -> None:
        refuse_extras(request, "workflow")

    async def run(self, turn: TargetTurn) -> Any:
        value = self._input(turn)
        if self._alone is None:
            return self._done(turn, await self._make().run(value))
        async with self._alone:
            return self._done(turn, await self._make().run(value))

    async def stream(self, turn: TargetTurn) -> TargetStream:
        value = self._input(turn)
        if self._alone is None:
            return FrameworkStream(self._make().run(value, stream=True), lambda result: self._done(turn, result))
        async with AsyncExitStack() as scope:
            await scope.enter_async_context(self._alone)
            stream = self._make().run(value, stream=True)
            return FrameworkStream(stream, lambda result: self._done(turn, result), scope.pop_all())

    def _input(self, turn: TargetTurn) -> Any:
        request = turn.admitted.request
        self.check(request)
        return fit(request.input, turn.messages, self._input_types)

    def _done(self, turn: TargetTurn, result: WorkflowRunResult) -> WorkflowRunResult:
        if result.get_request_info_events():
            raise UnsupportedError("The workflow asked for more information, and this host can't pause it.")
        said = [message for output in whole_outputs(result) for message in _spoken(output)]
        turn.staged = [*turn.messages, *said]
        return result


_SHARED = (
    "target: a bare Workflow keeps state between sessions and runs one request at a time; "
    "pass the function that builds it instead"
)


def from_builder(builder: Any) -> WorkflowTarget:
    """A builder. `WorkflowBuilder` hands the same executors to everything it builds, so each run gets a copy of it."""
    if not isinstance(builder, WorkflowBuilder):
        return WorkflowTarget(builder, builder.build)
    agents = _agents_of(builder)
    pristine = _copy_of(builder, agents)
    return WorkflowTarget(builder, lambda: _copy_of(pristine, agents).build())


def can_be_copied(builder: Any) -> bool:
    """Whether every run can have its own copy of what a builder builds."""
    try:
        _copy_of(builder, _agents_of(builder))
    except (TypeError, ValueError, copy.Error):
        return False
    return True


def _copy_of(builder: Any, agents: Sequence[Any]) -> Any:
    # Agents keep no state between runs, and their clients hold connections: copies share them.
    return copy.deepcopy(builder, {id(agent): agent for agent in agents})


def _agents_of(builder: Any) -> list[Any]:
    if not isinstance(builder, WorkflowBuilder):
        return []
    parts: list[Any] = [part for one in builder.build().executors.values() for part in one.__dict__.values()]
    return [part for part in parts if isinstance(part, SupportsAgentRun)]


def from_workflow(workflow: Workflow) -> WorkflowTarget:
    """A bare workflow object, which can do only one run at a time."""
    return WorkflowTarget(workflow, lambda: workflow, shared=True)


def _name_findings(workflow: Any) -> list[str]:
    if workflow.name and not _MADE_UP_NAME.match(workflow.name):
        return []
    return ["target: the workflow has no name, so it is a new one at each start; give the builder a name="]


def _spoken(output: Any) -> list[Message]:
    if isinstance(output, AgentResponse):
        return output.messages
    if isinstance(output, Message):
        return [output]
    if isinstance(output, str):
        return [Message("assistant", [output])]
    if isinstance(output, list):
        return [message for one in cast("list[Any]", output) for message in _spoken(one)]
    return []
