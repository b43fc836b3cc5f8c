"""Runs workflows. Each run has its own instance, which resumes from the checkpoint of its session."""

import copy
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack
from typing import Any

from agent_framework import (
    AgentResponse,
    AgentResponseUpdate,
    Content,
    ContextProvider,
    HistoryProvider,
    Message,
    ResponseStream,
    SupportsAgentRun,
    WorkflowAgent,
    WorkflowBuilder,
    WorkflowCheckpointException,
    WorkflowRunResult,
)

from frontdesk.errors import StoreError, StoreUnavailableError
from frontdesk.framework.client_outputs import as_results
from frontdesk.framework.contents import require_messages
from frontdesk.framework.outputs import read_output
from frontdesk.framework.types import is_event, list_tools, schema_digest, whole_outputs
from frontdesk.framework.workflow_requests import Request, build_asked, extract_requests, is_approval, request_content
from frontdesk.interfaces.target import (
    AbandonedQuestions,
    GivesUpQuestions,
    HistoryKeeper,
    RequiresApprovals,
    ShowsToolSchemas,
    TargetInfo,
    TargetStream,
    TargetTurn,
)
from frontdesk.loggers import runs as log
from frontdesk.models.request import ChannelRequest
from frontdesk.models.session import SessionRecord
from frontdesk.targets.binding import asks_for_attributes, bind, find_bindings, find_bindings_in, list_binding_findings
from frontdesk.targets.blueprint import WORKFLOW_AGENTS, Blueprint, agents_in
from frontdesk.targets.checkpoints import Checkpoints, PauseStorage, ReadOnly, own_storage
from frontdesk.targets.extras import OWN_HISTORY, function_results, refuse_extras
from frontdesk.targets.own_history import find_fork, wrap
from frontdesk.targets.resume import Plan, require_pause
from frontdesk.targets.streams import FrameworkStream, PlainStream
from frontdesk.targets.tool_approvals import mode_findings, require_in_builds, rule_findings
from frontdesk.targets.typed_input import fit


class WorkflowTarget(GivesUpQuestions, RequiresApprovals, ShowsToolSchemas):
    """A workflow with a separate instance for each run."""

    def __init__(self, native: Any, make: Callable[[], Any], *, checkpoints: Checkpoints | None = None) -> None:
        self.native = native
        self._make = make
        blueprint = Blueprint(make, checkpoints)
        self._sample = sample = blueprint.sample
        self.findings, self.warnings = blueprint.findings, blueprint.warnings
        self._resumption = blueprint.resumption
        self._input_types: list[Any] = list(getattr(sample, "input_types", ()))
        bindings = find_bindings_in(sample)
        self.findings += [*list_binding_findings(bindings), *mode_findings(agents_in(sample))]
        self._binds = bool(bindings)
        self.info = TargetInfo(
            name=sample.name or "workflow",
            kind="workflow",
            description=getattr(sample, "description", None) or "",
            messages=False,
            checkpoints=True,
            reads_attributes=asks_for_attributes(bindings),
            inputs=tuple(self._input_types),
            outputs=tuple(getattr(sample, "output_types", ())),
        )

    def tool_schema(self, name: str) -> str | None:
        return schema_digest((tool for agent in agents_in(self._sample) for tool in list_tools(agent)), name)

    def approval_findings(self, ruled: Collection[str], dynamic: Collection[str]) -> list[str]:
        return rule_findings(agents_in(self._sample), ruled, dynamic)

    def require_approvals(self, ruled: Collection[str], dynamic: Collection[str]) -> None:
        self._make = require_in_builds(self._make, agents_in, ruled, dynamic)

    def check(self, request: ChannelRequest) -> None:
        refuse_extras(request, "workflow")

    async def prepare(self, turn: TargetTurn) -> list[Message]:
        if self._resumption is None:
            return function_results(turn)
        turn.plan = await self._resumption.plan(turn)
        return as_results(turn.admitted.request.client_outputs)

    async def give_up(self, record: SessionRecord) -> AbandonedQuestions | None:
        return None if self._resumption is None else await self._resumption.give_up(record)

    async def run(self, turn: TargetTurn) -> Any:
        workflow, arguments = await self._begin(turn)
        if not self._binds:
            return self._finish(turn, await workflow.run(**arguments))
        async with AsyncExitStack() as scope:
            await bind(find_bindings_in(workflow), turn, scope)
            return self._finish(turn, await workflow.run(**arguments))

    async def stream(self, turn: TargetTurn) -> TargetStream:
        workflow, arguments = await self._begin(turn)
        async with AsyncExitStack() as scope:
            if self._binds:
                await bind(find_bindings_in(workflow), turn, scope)
            stream = workflow.run(stream=True, **arguments)
            return FrameworkStream(stream, lambda result: self._finish(turn, result), scope.pop_all())

    async def _begin(self, turn: TargetTurn) -> tuple[Any, dict[str, Any]]:
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
        return await self._restore(turn, plan), arguments

    async def _restore(self, turn: TargetTurn, plan: Plan) -> Any:
        workflow = self._make()
        if plan.checkpoint is None:
            return workflow
        try:
            # The framework takes a message or a checkpoint. A checkpoint without pending requests restores the state
            # of the executors, and then the same instance takes the message.
            await workflow.run(checkpoint_id=plan.checkpoint_id, checkpoint_storage=ReadOnly(plan.checkpoint))
        except WorkflowCheckpointException as error:
            log.warning(
                "checkpoint restored nothing, starting anew: checkpoint_id=%s run_id=%s",
                plan.checkpoint_id,
                turn.admitted.run_id,
                exc_info=error,
            )
            return self._make()
        return workflow

    def _finish(self, turn: TargetTurn, result: WorkflowRunResult) -> WorkflowRunResult:
        if turn.earlier:
            result = WorkflowRunResult([*turn.earlier, *result], result.status_timeline())
        waiting = extract_requests(result)
        plan: Plan = turn.plan or Plan()
        if waiting:
            require_pause(self._resumption, plan, [str(request.request_id) for request in waiting])
        if plan.keeps:
            turn.checkpoint = plan.end
            if plan.end is None:
                log.warning(
                    "failed to save the checkpoint, the session's workflow is unchanged: run_id=%s",
                    turn.admitted.run_id,
                    exc_info=plan.failure,
                )
        # The history holds what was said. Data belongs to the result alone.
        messages = [
            message for output in whole_outputs(result) for message in read_output(output, with_data=False) or ()
        ]
        turn.staged = [*turn.messages, *messages, *build_asked(waiting)]
        return result


def from_builder(builder: Any, checkpoints: Checkpoints | None = None) -> WorkflowTarget:
    """Create a target from a builder. Each run copies a `WorkflowBuilder`, whose builds would share executors."""
    if not isinstance(builder, WorkflowBuilder):
        return WorkflowTarget(builder, builder.build, checkpoints=checkpoints)
    shared = _list_shared_parts(builder)
    pristine = _copy_value(builder, shared)
    return WorkflowTarget(builder, lambda: _copy_value(pristine, shared).build(), checkpoints=checkpoints)


def can_be_copied(builder: Any) -> bool:
    """Return True if every run can have its own copy of a builder."""
    try:
        _copy_value(builder, _list_shared_parts(builder))
    except (TypeError, ValueError, copy.Error):
        return False
    return True


def _copy_value(builder: Any, shared: Sequence[Any]) -> Any:
    # Copies share agents and the operator's storage: these hold connections, and agents keep no state between runs.
    return copy.deepcopy(builder, {id(part): part for part in shared})


def _list_shared_parts(builder: Any) -> list[Any]:
    if not isinstance(builder, WorkflowBuilder):
        return []
    parts: list[Any] = [part for executor in builder.build().executors.values() for part in executor.__dict__.values()]
    agents = [part for part in parts if isinstance(part, SupportsAgentRun) and not isinstance(part, WORKFLOW_AGENTS)]
    return [*agents, own_storage(builder)]


_NOT_WRITTEN = (OSError, WorkflowCheckpointException, StoreError, StoreUnavailableError)


class WorkflowAgentTarget(GivesUpQuestions, RequiresApprovals, ShowsToolSchemas):
    """A function that builds a workflow as an agent, called for each run."""

    def __init__(
        self,
        factory: Callable[[], WorkflowAgent],
        install_history: Callable[[Any], HistoryKeeper],
        checkpoints: Checkpoints | None = None,
    ) -> None:
        self.native = factory
        self._make = factory
        self._install_history = install_history
        self._sample = sample = factory()
        self._history = install_history(sample)
        blueprint = Blueprint(lambda: factory().workflow, checkpoints, anew=True)
        bindings = find_bindings(sample, *agents_in(sample.workflow))
        self.findings = [
            *blueprint.findings,
            *list_binding_findings(bindings),
            *mode_findings(agents_in(sample.workflow)),
        ]
        self._binds = bool(bindings)
        self.warnings = [*blueprint.warnings, *([OWN_HISTORY] if self._history == "own" else [])]
        self._resumption = blueprint.resumption
        self.info = TargetInfo(
            name=sample.name or sample.workflow.name,
            kind="agent",
            description=sample.description or "",
            checkpoints=True,
            reads_attributes=asks_for_attributes(bindings),
            history=self._history,
        )

    def tool_schema(self, name: str) -> str | None:
        return schema_digest((tool for agent in agents_in(self._sample.workflow) for tool in list_tools(agent)), name)

    def approval_findings(self, ruled: Collection[str], dynamic: Collection[str]) -> list[str]:
        return rule_findings(agents_in(self._sample.workflow), ruled, dynamic)

    def require_approvals(self, ruled: Collection[str], dynamic: Collection[str]) -> None:
        self._make = require_in_builds(self._make, lambda made: agents_in(made.workflow), ruled, dynamic)

    def check(self, request: ChannelRequest) -> None:
        refuse_extras(request, "agent")

    async def prepare(self, turn: TargetTurn) -> list[Message]:
        if self._history == "own":
            await find_fork(self._sample.context_providers, turn)
        if self._resumption is None:
            return function_results(turn)
        turn.plan = await self._resumption.plan(turn)
        return as_results(turn.admitted.request.client_outputs)

    async def give_up(self, record: SessionRecord) -> AbandonedQuestions | None:
        return None if self._resumption is None else await self._resumption.give_up(record)

    async def run(self, turn: TargetTurn) -> Any:
        async with AsyncExitStack() as scope:
            agent, arguments = await self._begin(turn, scope)
            response: AgentResponse[Any] = await agent.run(**arguments)
            for message in response.messages:
                _show_request(message)
            for still_open in await self._save_pause(turn, response.messages):
                response.messages.append(Message("assistant", [still_open]))
            return self._finish(turn, response)

    async def stream(self, turn: TargetTurn) -> TargetStream:
        async with AsyncExitStack() as scope:
            agent, arguments = await self._begin(turn, scope)
            stream = agent.run(stream=True, **arguments)
            return PlainStream(self._updates(turn, stream), lambda result: self._finish(turn, result), scope.pop_all())

    async def _updates(
        self, turn: TargetTurn, stream: ResponseStream[AgentResponseUpdate, AgentResponse[Any]]
    ) -> AsyncIterator[AgentResponseUpdate]:
        requests: list[AgentResponseUpdate] = []
        try:
            async for update in stream:
                if _show_request(update):
                    requests.append(update)
                yield update
        finally:
            await stream.close()
        for place, still_open in enumerate(await self._save_pause(turn, requests)):
            yield AgentResponseUpdate(contents=[still_open], role="assistant", message_id=f"open_{place}")

    async def _begin(self, turn: TargetTurn, scope: AsyncExitStack) -> tuple[WorkflowAgent, dict[str, Any]]:
        # Its executors run ahead of their events.
        await turn.begin()
        plan: Plan = turn.plan or Plan()
        agent: WorkflowAgent = self._make()
        self._install_history(agent)
        if self._binds:
            await bind(find_bindings(agent, *agents_in(agent.workflow)), turn, scope)
        if self._history == "own":
            agent.context_providers[:] = await wrap(agent.context_providers, turn)
        arguments: dict[str, Any] = {} if plan.storage is None else {"checkpoint_storage": plan.storage}
        if turn.session is not None:
            arguments["session"] = turn.session
        if plan.resumes:
            agent.context_providers[:] = [_AfterRun(provider) for provider in agent.context_providers]
            given, approvals = plan.answers(turn.messages, agent.workflow), set(plan.approvals.values())
            answers = [_answer(name, value, decides=name in approvals) for name, value in given.items()]
            return agent, {
                **arguments,
                "checkpoint_id": plan.checkpoint_id,
                "messages": [Message("user", answers)],
            }
        require_messages(turn.messages)
        self.check(turn.admitted.request)
        return agent, {**arguments, "messages": turn.messages}

    async def _save_pause(
        self, turn: TargetTurn, output: Sequence[Message] | Sequence[AgentResponseUpdate]
    ) -> list[Content]:
        """Save the pause, if the run has one. Return the pending requests that are not in its output."""
        plan: Plan = turn.plan or Plan()
        events = [item.raw_representation for item in output]
        waiting = {str(event.request_id) for event in events if is_event(event) and event.type == "request_info"}
        shown = frozenset(waiting)
        if isinstance(plan.storage, PauseStorage):
            waiting |= plan.storage.pending
            try:
                await plan.storage.save_pause()
            except _NOT_WRITTEN as error:
                log.warning("failed to save the checkpoint: run_id=%s", turn.admitted.run_id, exc_info=error)
        if waiting:
            require_pause(self._resumption, plan, waiting)
        return [_content(request) for request_id, request in plan.pending.items() if request_id not in shown]

    def _finish(self, turn: TargetTurn, response: AgentResponse[Any]) -> AgentResponse[Any]:
        if self._history == "provider":
            turn.staged = [*turn.messages, *_list_answer(response.messages)]
        return response


class _AfterRun(HistoryProvider):
    """Calls a provider after a resumed run, but not before: the framework then accepts only answers as input."""

    def __init__(self, provider: ContextProvider) -> None:
        super().__init__(provider.source_id)
        self._provider = provider

    async def before_run(self, **_: Any) -> None:
        return

    async def after_run(self, **arguments: Any) -> None:
        await self._provider.after_run(**arguments)

    async def get_messages(self, session_id: str | None, **_: Any) -> list[Message]:
        return []

    async def save_messages(self, session_id: str | None, messages: Sequence[Message], **_: Any) -> None:
        return


def _answer(request_id: str, value: Any, *, decides: bool) -> Content:
    """Wrap the answer to a request in the only content whose value the framework does not convert."""
    if isinstance(value, Content) and value.type == "function_result" and not decides:
        # It answers a function call of an agent inside, and is found by the id of the call.
        return value
    carrier = Content.from_function_result(request_id, result="")
    carrier.result = value
    return carrier


def _show_request(output: Message | AgentResponseUpdate) -> bool:
    """Convert a request to the host's display and storage form. Return False for anything else."""
    event = output.raw_representation
    if not is_event(event) or event.type != "request_info":
        return False
    output.contents = [_content(event)]
    return True


def _content(request: Request) -> Content:
    return request.data if is_approval(request) else request_content(request)


def _list_answer(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages after the last input, because a workflow may output its whole conversation."""
    asked = [place for place, message in enumerate(messages) if message.role in ("user", "system")]
    return messages[asked[-1] + 1 :] if asked else messages
