"""Runs a workflow, each run on an instance of its own that resumes from its session's checkpoint."""

import copy
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any, cast

from agent_framework import (
    AgentResponse,
    Message,
    SupportsAgentRun,
    WorkflowBuilder,
    WorkflowCheckpointException,
    WorkflowRunResult,
)

from frontdesk.abc.target import GivenUp, TargetInfo, TargetStream, TargetTurn
from frontdesk.data.request import ChannelRequest
from frontdesk.data.session import SessionRecord
from frontdesk.kit.framework.client_outputs import as_results
from frontdesk.kit.framework.tool_schemas import schema_digest, tools_of
from frontdesk.kit.framework.types import whole_outputs
from frontdesk.kit.framework.workflow_requests import asked, requests_of
from frontdesk.loggers import runs as log
from frontdesk.targets.binding import asks_for_attributes, bind, binding_findings, binding_in
from frontdesk.targets.blueprint import WORKFLOW_AGENTS, Blueprint, agents_in
from frontdesk.targets.checkpoints import Checkpoints, ReadOnly, own_storage
from frontdesk.targets.extras import function_results, refuse_extras
from frontdesk.targets.resume import Plan, need_pause
from frontdesk.targets.streams import FrameworkStream
from frontdesk.targets.typed_input import fit


class WorkflowTarget:
    """A workflow, of which each run has an instance of its own."""

    def __init__(self, native: Any, make: Callable[[], Any], *, checkpoints: Checkpoints | None = None) -> None:
        self.native = native
        self._make = make
        blueprint = Blueprint(make, checkpoints)
        self._sample = sample = blueprint.sample
        self.findings, self.warnings = blueprint.findings, blueprint.warnings
        self._resumption = blueprint.resumption
        self._input_types: list[Any] = list(getattr(sample, "input_types", ()))
        bindings = binding_in(sample)
        self.findings += binding_findings(bindings)
        self._binds = bool(bindings)
        self.info = TargetInfo(
            name=sample.name or "workflow",
            kind="workflow",
            description=getattr(sample, "description", None) or "",
            messages=False,
            checkpoints=True,
            reads_attributes=asks_for_attributes(bindings),
            outputs=tuple(getattr(sample, "output_types", ())),
        )

    def tool_schema(self, name: str) -> str | None:
        return schema_digest((tool for agent in agents_in(self._sample) for tool in tools_of(agent)), name)

    def check(self, request: ChannelRequest) -> None:
        refuse_extras(request, "workflow")

    async def prepare(self, turn: TargetTurn) -> list[Message]:
        if self._resumption is None:
            return function_results(turn)
        turn.plan = await self._resumption.plan(turn)
        return as_results(turn.admitted.request.client_outputs)

    async def give_up(self, record: SessionRecord) -> GivenUp | None:
        return None if self._resumption is None else await self._resumption.give_up(record)

    async def run(self, turn: TargetTurn) -> Any:
        workflow, arguments = await self._begin(turn)
        if not self._binds:
            return self._done(turn, await workflow.run(**arguments))
        async with AsyncExitStack() as scope:
            await bind(binding_in(workflow), turn, scope)
            return self._done(turn, await workflow.run(**arguments))

    async def stream(self, turn: TargetTurn) -> TargetStream:
        workflow, arguments = await self._begin(turn)
        async with AsyncExitStack() as scope:
            if self._binds:
                await bind(binding_in(workflow), turn, scope)
            stream = workflow.run(stream=True, **arguments)
            return FrameworkStream(stream, lambda result: self._done(turn, result), scope.pop_all())

    async def _begin(self, turn: TargetTurn) -> tuple[Any, dict[str, Any]]:
        """Return the workflow as the session left it, and the arguments of its run."""
        # Its executors run ahead of their events.
        await turn.begin()
        plan: Plan = turn.plan or Plan()
        arguments: dict[str, Any] = {} if plan.storage is None else {"checkpoint_storage": plan.storage}
        if plan.resumes:
            arguments["checkpoint_id"] = plan.checkpoint_id
            workflow = self._make()
            answers = plan.answers(turn.messages, workflow)
            return workflow, {**arguments, "responses": answers} if answers else arguments
        self.check(turn.admitted.request)
        arguments["message"] = fit(turn.admitted.request.input, turn.messages, self._input_types)
        return await self._restored(turn, plan), arguments

    async def _restored(self, turn: TargetTurn, plan: Plan) -> Any:
        workflow = self._make()
        if plan.checkpoint is None:
            return workflow
        try:
            # The framework takes a message or a checkpoint. A checkpoint without pending requests restores the state
            # of the executors, and then the same instance takes the message.
            await workflow.run(checkpoint_id=plan.checkpoint_id, checkpoint_storage=ReadOnly(plan.checkpoint))
        except WorkflowCheckpointException as error:
            log.warning(
                "checkpoint %s restores nothing, and run %s starts anew",
                plan.checkpoint_id,
                turn.admitted.run_id,
                exc_info=error,
            )
            return self._make()
        return workflow

    def _done(self, turn: TargetTurn, result: WorkflowRunResult) -> WorkflowRunResult:
        if turn.earlier:
            result = WorkflowRunResult([*turn.earlier, *result], result.status_timeline())
        waiting = requests_of(result)
        plan: Plan = turn.plan or Plan()
        if waiting:
            need_pause(self._resumption, plan, [str(request.request_id) for request in waiting])
        if plan.keeps:
            turn.checkpoint = plan.end
            if plan.end is None:
                log.warning(
                    "the checkpoint of run %s could not be saved: the session's workflow stays where it was",
                    turn.admitted.run_id,
                    exc_info=plan.failure,
                )
        messages = [message for output in whole_outputs(result) for message in _messages_of(output)]
        turn.staged = [*turn.messages, *messages, *asked(waiting)]
        return result


def from_builder(builder: Any, checkpoints: Checkpoints | None = None) -> WorkflowTarget:
    """Make a target of a builder; each run copies a `WorkflowBuilder`, whose builds would share their executors."""
    if not isinstance(builder, WorkflowBuilder):
        return WorkflowTarget(builder, builder.build, checkpoints=checkpoints)
    shared = _shared_parts(builder)
    pristine = _copy_of(builder, shared)
    return WorkflowTarget(builder, lambda: _copy_of(pristine, shared).build(), checkpoints=checkpoints)


def can_be_copied(builder: Any) -> bool:
    """Tell whether every run can have its own copy of a builder."""
    try:
        _copy_of(builder, _shared_parts(builder))
    except (TypeError, ValueError, copy.Error):
        return False
    return True


def _copy_of(builder: Any, shared: Sequence[Any]) -> Any:
    # Copies share agents and the operator's storage: these hold connections, and agents keep no state between runs.
    return copy.deepcopy(builder, {id(part): part for part in shared})


def _shared_parts(builder: Any) -> list[Any]:
    if not isinstance(builder, WorkflowBuilder):
        return []
    parts: list[Any] = [part for executor in builder.build().executors.values() for part in executor.__dict__.values()]
    agents = [part for part in parts if isinstance(part, SupportsAgentRun) and not isinstance(part, WORKFLOW_AGENTS)]
    return [*agents, own_storage(builder)]


def _messages_of(output: Any) -> list[Message]:
    if isinstance(output, AgentResponse):
        return output.messages
    if isinstance(output, Message):
        return [output]
    if isinstance(output, str):
        return [Message("assistant", [output])]
    if isinstance(output, list):
        return [message for item in cast("list[Any]", output) for message in _messages_of(item)]
    return []
