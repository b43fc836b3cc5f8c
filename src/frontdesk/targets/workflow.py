"""Runs a workflow, each run on an instance of its own that goes on from its session's checkpoint."""

import asyncio
import copy
import re
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any, cast

from agent_framework import (
    AgentResponse,
    FunctionalWorkflow,
    Message,
    SupportsAgentRun,
    Workflow,
    WorkflowBuilder,
    WorkflowCheckpointException,
    WorkflowRunResult,
)

from frontdesk.abc.target import TargetInfo, TargetStream, TargetTurn
from frontdesk.data.request import ChannelRequest
from frontdesk.errors import SessionRequiredError, TargetError, UnsupportedError
from frontdesk.kit.framework import whole_outputs
from frontdesk.kit.outputs import as_results
from frontdesk.kit.requests import asked, requests_of
from frontdesk.loggers import runs as log
from frontdesk.targets.checkpoints import Checkpoints, ReadOnly, own_storage
from frontdesk.targets.extras import function_results, refuse_extras
from frontdesk.targets.held_types import register_held_types
from frontdesk.targets.resume import Plan, Resumption
from frontdesk.targets.streams import FrameworkStream
from frontdesk.targets.typed_input import fit

_MADE_UP_NAME = re.compile(r"\w+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SHARED = (
    "target: a bare Workflow keeps state between sessions, runs one request at a time and may not pause; "
    "pass the function that builds it instead"
)
_CHANGING = (
    "target: the workflow is another one each time it is built, so that it may not pause, and a session has no memory "
    "in it; give every executor and agent an id or a name of its own"
)
_TWO_STORAGES = (
    "target: the workflow has a checkpoint storage of its own, and the host was given one too; leave one of them out"
)
_MAY_NOT_PAUSE = "The workflow asked for more information, and it was built so that it can't be paused."
_NOWHERE_TO_WAIT = "The workflow asks for something, and without a session nothing can wait for the answer."
_NOT_SAVED = "The workflow asked for more information, and its pause could not be saved."


class WorkflowTarget:
    """A workflow. A factory or a builder gives each run its own instance; a bare one runs one request at a time."""

    def __init__(
        self, native: Any, make: Callable[[], Any], *, shared: bool = False, checkpoints: Checkpoints | None = None
    ) -> None:
        self.native = native
        self._make = make
        self._alone = asyncio.Lock() if shared else None
        sample = make()
        self.findings = _name_findings(sample)
        self.warnings = [_SHARED] if shared else []
        if checkpoints is not None and not checkpoints.gives_way and own_storage(sample) is not None:
            self.findings.append(_TWO_STORAGES)
        if not shared and _signature(make()) != _signature(sample):
            self.warnings.append(_CHANGING)
        self._resumption = None if self.warnings else self._resumed_from(sample, checkpoints)
        register_held_types(sample)
        self._input_types: list[Any] = list(getattr(sample, "input_types", ()))
        self.info = TargetInfo(
            name=sample.name or "workflow",
            kind="workflow",
            description=getattr(sample, "description", None) or "",
            messages=False,
            outputs=tuple(getattr(sample, "output_types", ())),
        )

    def _resumed_from(self, sample: Any, checkpoints: Checkpoints | None) -> Resumption:
        storage = own_storage(sample)
        kept = Checkpoints.of(storage) if storage is not None else checkpoints or Checkpoints.in_memory()
        if isinstance(sample, FunctionalWorkflow):
            # Its signature counts in what the function can see, which may change.
            return Resumption(kept, lambda: _signature(self._make()), replays=True)
        known = _signature(sample)
        return Resumption(kept, lambda: known, replays=False)

    def check(self, request: ChannelRequest) -> None:
        refuse_extras(request, "workflow")

    async def prepare(self, turn: TargetTurn) -> list[Message]:
        if self._resumption is None:
            return function_results(turn)
        turn.plan = await self._resumption.plan(turn)
        return as_results(turn.admitted.request.client_outputs)

    async def run(self, turn: TargetTurn) -> Any:
        async with AsyncExitStack() as scope:
            workflow, arguments = await self._begin(turn, scope)
            return self._done(turn, await workflow.run(**arguments))

    async def stream(self, turn: TargetTurn) -> TargetStream:
        async with AsyncExitStack() as scope:
            workflow, arguments = await self._begin(turn, scope)
            stream = workflow.run(stream=True, **arguments)
            return FrameworkStream(stream, lambda result: self._done(turn, result), scope.pop_all())

    async def _begin(self, turn: TargetTurn, scope: AsyncExitStack) -> tuple[Any, dict[str, Any]]:
        """A workflow as the session left it, and what it is run with."""
        # Its executors run ahead of what is seen of them.
        await turn.begin()
        plan: Plan = turn.plan or Plan()
        arguments: dict[str, Any] = {} if plan.storage is None else {"checkpoint_storage": plan.storage}
        if plan.resumes:
            arguments["checkpoint_id"] = plan.checkpoint_id
            answers = plan.answers(turn.messages)
            return self._make(), {**arguments, "responses": answers} if answers else arguments
        self.check(turn.admitted.request)
        arguments["message"] = fit(turn.admitted.request.input, turn.messages, self._input_types)
        if self._alone is not None:
            await scope.enter_async_context(self._alone)
        return await self._restored(turn, plan), arguments

    async def _restored(self, turn: TargetTurn, plan: Plan) -> Any:
        workflow = self._make()
        if plan.checkpoint is None:
            return workflow
        try:
            # The framework takes a message or a checkpoint. One that nothing waits in restores what the executors
            # remember, and then the same instance takes the message.
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
            self._need_pause(plan, [str(one.request_id) for one in waiting])
        if plan.keeps:
            turn.checkpoint = plan.end
            if plan.end is None:
                log.warning(
                    "the checkpoint of run %s could not be saved: the session's workflow stays where it was",
                    turn.admitted.run_id,
                    exc_info=plan.failure,
                )
        said = [message for output in whole_outputs(result) for message in _spoken(output)]
        turn.staged = [*turn.messages, *said, *asked(waiting)]
        return result

    def _need_pause(self, plan: Plan, waiting: Sequence[str]) -> None:
        if self._resumption is None:
            raise UnsupportedError(_MAY_NOT_PAUSE)
        if not plan.keeps:
            raise SessionRequiredError(_NOWHERE_TO_WAIT)
        if plan.end is None or not plan.pending.issuperset(waiting):
            # The framework only says so in its own log, and goes on.
            log.error("the pause of a workflow could not be saved", exc_info=plan.failure)
            raise TargetError(_NOT_SAVED) from plan.failure


def from_builder(builder: Any, checkpoints: Checkpoints | None = None) -> WorkflowTarget:
    """A builder. `WorkflowBuilder` hands the same executors to everything it builds, so each run gets a copy of it."""
    if not isinstance(builder, WorkflowBuilder):
        return WorkflowTarget(builder, builder.build, checkpoints=checkpoints)
    shared = _shared_parts(builder)
    pristine = _copy_of(builder, shared)
    return WorkflowTarget(builder, lambda: _copy_of(pristine, shared).build(), checkpoints=checkpoints)


def can_be_copied(builder: Any) -> bool:
    """Whether every run can have its own copy of what a builder builds."""
    try:
        _copy_of(builder, _shared_parts(builder))
    except (TypeError, ValueError, copy.Error):
        return False
    return True


def _copy_of(builder: Any, shared: Sequence[Any]) -> Any:
    # Agents keep no state between runs, and they and a storage of the operator's hold connections: copies share them.
    return copy.deepcopy(builder, {id(one): one for one in shared})


def _shared_parts(builder: Any) -> list[Any]:
    if not isinstance(builder, WorkflowBuilder):
        return []
    parts: list[Any] = [part for one in builder.build().executors.values() for part in one.__dict__.values()]
    return [*(part for part in parts if isinstance(part, SupportsAgentRun)), own_storage(builder)]


def from_workflow(workflow: Workflow, checkpoints: Checkpoints | None = None) -> WorkflowTarget:
    """A bare workflow object, which can do only one run at a time."""
    return WorkflowTarget(workflow, lambda: workflow, shared=True, checkpoints=checkpoints)


def _signature(workflow: Any) -> str | None:
    return getattr(workflow, "graph_signature_hash", None)


def _name_findings(workflow: Any) -> list[str]:
    if workflow.name and not _MADE_UP_NAME.fullmatch(workflow.name):
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
