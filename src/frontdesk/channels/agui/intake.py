"""Builds the request of a run from its input and from what the server has stored of the thread."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from agent_framework import Message

from frontdesk.channels.agui.config import AGUIConfig
from frontdesk.channels.agui.events import TOOLS
from frontdesk.channels.agui.interrupts import describe_wait
from frontdesk.channels.agui.parse import (
    MAX_NEW_MESSAGES,
    parse_state,
    parse_tools,
    request_digest,
    to_answer,
    to_context,
    to_message,
    to_output,
)
from frontdesk.channels.agui.schema import ResumeEntry, RunInput, UserMessage
from frontdesk.channels.agui.thread import (
    Continuation,
    KnownMessages,
    New,
    branch_key,
    continue_thread,
    is_of_thread,
    list_named_runs,
)
from frontdesk.channels.agui.threads import Threads, read_page
from frontdesk.concurrency.offload import run_sized
from frontdesk.errors import ConflictError, ForbiddenError, InvalidRequestError, NotFoundError
from frontdesk.framework.workflow_requests import REQUEST_INFO
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.models.approval import ApprovalAnswer, PendingApproval
from frontdesk.models.conversation import TranscriptMessage
from frontdesk.models.identity import Caller
from frontdesk.models.request import ChannelRequest, ChannelSession, ClientOutput
from frontdesk.models.run import RunChain

_RECENT_TURNS = 20
_PAGE_TURNS = 100
MAX_PAGES = 10
"""The number of pages of a thread that are read to find the last message that a client knows."""
NOT_RUN = "The client has not run this tool."
_UNKNOWN = "Interrupt not found: its id is wrong, it has expired, or it belongs to another caller."
_INCOMPLETE = "`resume` must answer every open interrupt of the thread."


class FollowRun(NamedTuple):
    """The answer to questions that were decided elsewhere: the runs that continue the run that asked."""

    run_id: str


class ReplayRun(NamedTuple):
    """The answer to a run that is sent again after the client has received a part of its answer."""

    run_id: str


class CancelRun(NamedTuple):
    """The answer to questions that the client cancels."""

    run_id: str


Asked = ChannelRequest | FollowRun | ReplayRun | CancelRun


class Resume(NamedTuple):
    """The entries of `resume`, sorted by what they are about."""

    answers: Sequence[ApprovalAnswer] = ()
    outputs: Sequence[ClientOutput] = ()
    decided: Sequence[PendingApproval] = ()
    """The approvals that were decided before, by other people or on another channel."""
    cancelled_run: str | None = None
    """The run whose workflow questions the client cancels."""


class Thread(NamedTuple):
    """The session of a thread that a client continues."""

    key: str
    known: KnownMessages


class Intake:
    def __init__(self, channel: str, config: AGUIConfig, context: ChannelContext, threads: Threads) -> None:
        self._channel, self._config, self._context, self._threads = channel, config, context, threads

    async def read(self, caller: Caller, body: RunInput, size: int) -> Asked:
        """Return the request of a run, or what is done instead of a run. `size` is that of the body in bytes."""
        thread = await self._thread(caller, body)
        continuation = await run_sized(size, continue_thread, body.messages, thread.known)
        if body.resume and continuation.branches:
            # The client repeats its transcript with the answers. It asks nothing again.
            continuation = Continuation()
        if len(continuation.new) > MAX_NEW_MESSAGES:
            raise InvalidRequestError(f"A run can have at most {MAX_NEW_MESSAGES} new messages.", param="messages")
        resume = await self._resume(caller, body, thread) if body.resume else Resume()
        if resume.answers or resume.outputs:
            return await self._build_answer_request(body, thread, continuation, resume, size)
        if body.resume and not continuation.new:
            # Nothing is left to run: the questions were decided elsewhere, or are left open.
            if resume.decided:
                return FollowRun(resume.decided[-1].run_id)
            if resume.cancelled_run is not None:
                return CancelRun(resume.cancelled_run)
            raise ConflictError("The open questions wait for other people.", param="resume", code="waits_for_others")
        if resume.cancelled_run is not None:
            await self._context.runs.cancel_chain(caller, resume.cancelled_run)
        if not continuation.new:
            return await self._build_replay(caller, body)
        return await self._build_request(caller, body, thread, continuation, size)

    async def _build_replay(self, caller: Caller, body: RunInput) -> ReplayRun:
        with suppress(NotFoundError):
            run = await self._context.runs.get(caller, body.run_id)
            if run.request_hash == request_digest(body):
                return ReplayRun(run.run_id)
        raise InvalidRequestError("The thread has all of these messages.", param="messages", code="no_new_message")

    async def _thread(self, caller: Caller, body: RunInput) -> Thread:
        """Return the thread, or the branch of it that has the last answer that the client knows."""
        key = body.thread_id
        messages, before = await self._read(caller, key, None, _RECENT_TURNS)
        run_id = next(list_named_runs(body.messages), None)
        known = KnownMessages(messages)
        if run_id is None and messages and not any(known.find(message) is not None for message in body.messages):
            # A page without history continues the branch that it would be shown.
            newest = (await self._threads.list_newest(caller, key))[:1]
            run_id = newest[0].run_id if newest else None
        if run_id is None or any(one.run_id == run_id for one in messages):
            return Thread(key, known)
        try:
            run = await self._context.runs.get(caller, run_id)
        except NotFoundError:
            return Thread(key, known)
        if run.session_key is None or not is_of_thread(run.session_key, body.thread_id):
            return Thread(key, known)
        if run.session_key != key:
            key = run.session_key
            messages, before = await self._read(caller, key, None, _RECENT_TURNS)
        for _ in range(MAX_PAGES):
            if before is None or any(one.run_id == run_id for one in messages):
                break
            earlier, before = await self._read(caller, key, before, _PAGE_TURNS)
            messages = [*earlier, *messages]
        return Thread(key, KnownMessages(messages))

    async def _read(
        self, caller: Caller, key: str, before: int | None, turns: int
    ) -> tuple[Sequence[TranscriptMessage], int | None]:
        page = await read_page(self._context, caller, key, before, turns)
        return page.messages, page.before

    async def _build_request(
        self, caller: Caller, body: RunInput, thread: Thread, continuation: Continuation, size: int
    ) -> ChannelRequest:
        """Return the request of a run with new messages."""
        request = await run_sized(size, self._request, body, thread, continuation)
        outputs = await self._find_missing_outputs(caller, thread, continuation, request.client_outputs)
        key, previous = thread.key, None
        if continuation.branches:
            key, previous = branch_key(body.thread_id, body.run_id), continuation.previous_run_id
        return request.replace(
            session=ChannelSession(key=key),
            previous_run_id=previous,
            client_outputs=(*request.client_outputs, *outputs),
        )

    async def _build_answer_request(
        self, body: RunInput, thread: Thread, continuation: Continuation, resume: Resume, size: int
    ) -> ChannelRequest:
        """Return the request of a run that answers questions, and perhaps has new messages."""
        request = await run_sized(size, self._request, body, thread, continuation)
        return request.replace(
            operation="approval" if resume.answers else "message",
            # The answers name the session that asked.
            session=None if resume.answers else ChannelSession(key=thread.key),
            approvals=tuple(resume.answers),
            client_outputs=(*request.client_outputs, *resume.outputs),
        )

    def _request(self, body: RunInput, thread: Thread, continuation: Continuation) -> ChannelRequest:
        messages, outputs = self._inputs(body, thread, continuation.new)
        tools = parse_tools(body, self._context.target.tool_names)
        details: Mapping[str, Any] = {TOOLS: [tool.name for tool in tools]} if tools else {}
        return ChannelRequest(
            channel=self._channel,
            input=messages or None,
            stream=True,
            background=self._config.detached,
            client_tools=tools,
            client_outputs=tuple(outputs),
            client_state=parse_state(body, self._config.max_state_bytes),
            forwarded_props=body.forwarded_props or {},
            details=details,
            run_id=body.run_id,
            idempotency_key=body.run_id,
            request_hash=request_digest(body),
        )

    def _inputs(self, body: RunInput, thread: Thread, new: Sequence[New]) -> tuple[list[Message], list[ClientOutput]]:
        messages, outputs = list[Message](), list[ClientOutput]()
        for message, place in new:
            if isinstance(message, UserMessage):
                messages.append(to_message(message, place))
            else:
                output = to_output(message, place)
                outputs.append(ClientOutput(call_id=message.tool_call_id, output=output, after=len(messages)))
        if messages and self._context.target.kind == "agent":
            context = to_context(body, [known.message for known in thread.known.messages])
            if context is not None:
                messages.insert(0, context)
                outputs = [output.replace(after=output.after and output.after + 1) for output in outputs]
        return messages, outputs

    async def _find_missing_outputs(
        self, caller: Caller, thread: Thread, continuation: Continuation, given: Sequence[ClientOutput]
    ) -> list[ClientOutput]:
        """Return outputs for frontend tools that the client has not run, for example because its page was closed."""
        if not thread.known.calls:
            return []
        runs = (known.run_id for known in reversed(thread.known.messages))
        run_id = continuation.previous_run_id if continuation.branches else next(filter(None, runs), None)
        if run_id is None:
            return []
        with suppress(NotFoundError):
            run = await self._context.runs.get(caller, run_id)
            known = {output.call_id for output in given}
            calls = [call for call in run.client_calls if call.name != REQUEST_INFO and call.call_id not in known]
            return [ClientOutput(call_id=call.call_id, output=NOT_RUN) for call in calls]
        return []

    async def _resume(self, caller: Caller, body: RunInput, thread: Thread) -> Resume:
        answers, outputs = list[ApprovalAnswer](), list[ClientOutput]()
        decided, cancelled, chains = list[PendingApproval](), None, dict[str, RunChain | None]()
        named = set[str]()
        for place, entry in enumerate(body.resume or ()):
            where = f"resume[{place}]"
            if entry.interrupt_id in named:
                raise InvalidRequestError("An interrupt is answered twice.", param=where)
            named.add(entry.interrupt_id)
            approval = await self._approval(caller, entry)
            if approval is None:
                run_id = thread.known.find_asking_run(entry.interrupt_id)
                if run_id is None:
                    raise NotFoundError(_UNKNOWN, param=where)
                if entry.status == "cancelled":
                    cancelled = run_id
                else:
                    outputs.append(ClientOutput(call_id=entry.interrupt_id, output=entry.payload))
                continue
            await self._check_thread(caller, body, approval, chains, where)
            if await self._is_decided(caller, approval):
                decided.append(approval)
            elif await self._context.approvals.may_decide(caller, approval.approval_id):
                answers.append(to_answer(entry, where))
            elif entry.status == "resolved":
                names = () if approval.terms is None else approval.terms.names
                raise ForbiddenError(describe_wait(approval.tool, names), code="approval_not_yours", param=where)
        if cancelled is not None:
            outputs = []
        self._require_all(chains, named)
        return Resume(answers, outputs, decided, cancelled)

    async def _approval(self, caller: Caller, entry: ResumeEntry) -> PendingApproval | None:
        try:
            return await self._context.approvals.get(caller, entry.interrupt_id)
        except NotFoundError:
            return None

    async def _check_thread(
        self,
        caller: Caller,
        body: RunInput,
        approval: PendingApproval,
        chains: dict[str, RunChain | None],
        where: str,
    ) -> None:
        """Reject an approval of another thread. One of another person is a vote, which belongs to no thread."""
        if approval.chain_id in chains:
            return
        try:
            chain = await self._context.runs.chain(caller, approval.run_id)
        except NotFoundError:
            chain = None
        chains[approval.chain_id] = chain
        if chain is not None and not is_of_thread(chain.newest.session_key, body.thread_id):
            raise NotFoundError(_UNKNOWN, param=where)

    async def _is_decided(self, caller: Caller, approval: PendingApproval) -> bool:
        """Return True if an answer has no effect any more. An expired approval is rejected by that."""
        if approval.is_expired(self._context.now()):
            await self._context.approvals.decide(caller, approval.approval_id, False)
            return True
        # Without a run of its own, an answer that nothing was done with may be repeated.
        return approval.status != "pending" and (approval.begun or approval.resumed_by is not None)

    def _require_all(self, chains: Mapping[str, RunChain | None], named: set[str]) -> None:
        for chain in chains.values():
            waiting = () if chain is None else chain.waiting
            if any(question.approval_id not in named for question in waiting):
                raise InvalidRequestError(_INCOMPLETE, param="resume", code="interrupts_open")
