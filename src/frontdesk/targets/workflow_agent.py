"""Runs a workflow as an agent: `workflow.as_agent()`.

Each run has an instance of its own. Earlier messages come from the host's history, as for any agent, so a message
starts the workflow from its beginning. Only a pause is restored: the run that answers it resumes from the checkpoint
of its session.
"""

from collections.abc import AsyncIterator, Callable, Sequence
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
    WorkflowAgent,
    WorkflowCheckpointException,
)

from frontdesk.abc.target import GivenUp, HistoryKeeper, TargetInfo, TargetStream, TargetTurn
from frontdesk.data.request import ChannelRequest
from frontdesk.data.session import SessionRecord
from frontdesk.errors import StoreError, StoreUnavailableError
from frontdesk.kit.framework.client_outputs import as_results
from frontdesk.kit.framework.messages import need_messages
from frontdesk.kit.framework.tool_schemas import schema_digest, tools_of
from frontdesk.kit.framework.types import is_event
from frontdesk.kit.framework.workflow_requests import Request, is_approval, request_content
from frontdesk.loggers import runs as log
from frontdesk.targets.binding import asks_for_attributes, bind, binding, binding_findings
from frontdesk.targets.blueprint import Blueprint, agents_in
from frontdesk.targets.checkpoints import Checkpoints, PauseStorage
from frontdesk.targets.extras import OWN_HISTORY, function_results, refuse_extras
from frontdesk.targets.own_history import find_fork, wrapped
from frontdesk.targets.resume import Plan, need_pause
from frontdesk.targets.streams import PlainStream

_NOT_WRITTEN = (OSError, WorkflowCheckpointException, StoreError, StoreUnavailableError)


class WorkflowAgentTarget:
    """A function that builds a workflow as an agent; it is called for each run."""

    def __init__(
        self,
        factory: Callable[[], WorkflowAgent],
        install_history: Callable[[Any], HistoryKeeper],
        checkpoints: Checkpoints | None = None,
    ) -> None:
        self.native = factory
        self._install_history = install_history
        self._sample = sample = factory()
        self._history = install_history(sample)
        blueprint = Blueprint(lambda: factory().workflow, checkpoints, anew=True)
        bindings = binding(sample, *agents_in(sample.workflow))
        self.findings = [*blueprint.findings, *binding_findings(bindings)]
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
        return schema_digest((tool for agent in agents_in(self._sample.workflow) for tool in tools_of(agent)), name)

    def check(self, request: ChannelRequest) -> None:
        refuse_extras(request, "agent")

    async def prepare(self, turn: TargetTurn) -> list[Message]:
        if self._history == "own":
            await find_fork(self._sample.context_providers, turn)
        if self._resumption is None:
            return function_results(turn)
        turn.plan = await self._resumption.plan(turn)
        return as_results(turn.admitted.request.client_outputs)

    async def give_up(self, record: SessionRecord) -> GivenUp | None:
        return None if self._resumption is None else await self._resumption.give_up(record)

    async def run(self, turn: TargetTurn) -> Any:
        async with AsyncExitStack() as scope:
            agent, arguments = await self._begin(turn, scope)
            response: AgentResponse[Any] = await agent.run(**arguments)
            for message in response.messages:
                _show_request(message)
            for still_open in await self._save_pause(turn, response.messages):
                response.messages.append(Message("assistant", [still_open]))
            return self._done(turn, response)

    async def stream(self, turn: TargetTurn) -> TargetStream:
        async with AsyncExitStack() as scope:
            agent, arguments = await self._begin(turn, scope)
            stream = agent.run(stream=True, **arguments)
            return PlainStream(self._updates(turn, stream), lambda result: self._done(turn, result), scope.pop_all())

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
        """Build the agent of a run, and its arguments."""
        # Its executors run ahead of their events.
        await turn.begin()
        plan: Plan = turn.plan or Plan()
        agent: WorkflowAgent = self.native()
        self._install_history(agent)
        if self._binds:
            await bind(binding(agent, *agents_in(agent.workflow)), turn, scope)
        if self._history == "own":
            agent.context_providers[:] = await wrapped(agent.context_providers, turn)
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
        need_messages(turn.messages)
        self.check(turn.admitted.request)
        return agent, {**arguments, "messages": turn.messages}

    async def _save_pause(
        self, turn: TargetTurn, output: Sequence[Message] | Sequence[AgentResponseUpdate]
    ) -> list[Content]:
        """Save the pause, if the run has one; return the pending requests that are not in its output."""
        plan: Plan = turn.plan or Plan()
        events = [item.raw_representation for item in output]
        waiting = {str(event.request_id) for event in events if is_event(event) and event.type == "request_info"}
        shown = frozenset(waiting)
        if isinstance(plan.storage, PauseStorage):
            waiting |= plan.storage.pending
            try:
                await plan.storage.save_pause()
            except _NOT_WRITTEN as error:
                log.warning("the checkpoint of run %s could not be saved", turn.admitted.run_id, exc_info=error)
        if waiting:
            need_pause(self._resumption, plan, waiting)
        return [_content(request) for request_id, request in plan.pending.items() if request_id not in shown]

    def _done(self, turn: TargetTurn, response: AgentResponse[Any]) -> AgentResponse[Any]:
        if self._history == "provider":
            turn.staged = [*turn.messages, *_answered(response.messages)]
        return response


class _AfterRun(HistoryProvider):
    """Calls a provider after a resumed run, but not before it: the framework takes only answers as input then."""

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
    """Convert a request to the form that the host shows and stores; return false for anything else."""
    event = output.raw_representation
    if not is_event(event) or event.type != "request_info":
        return False
    output.contents = [_content(event)]
    return True


def _content(request: Request) -> Content:
    return request.data if is_approval(request) else request_content(request)


def _answered(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages after the last input: a workflow may output its whole conversation."""
    asked = [place for place, message in enumerate(messages) if message.role in ("user", "system")]
    return messages[asked[-1] + 1 :] if asked else messages
