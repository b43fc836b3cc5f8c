"""The host's calls for a channel: each is made for a caller, and sees only what is theirs."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from types import CoroutineType
from typing import Any, TypeVar

from frontdesk.abc.awaited import AwaitedReply
from frontdesk.abc.channel import AllowsOrigin, SettleAnswers
from frontdesk.abc.target import TargetInfo
from frontdesk.approvals.voting import Voter
from frontdesk.data.approval import ApprovalAnswer, Decision, PendingApproval, WaitingPage
from frontdesk.data.delivery import InboxItem
from frontdesk.data.identity import Caller
from frontdesk.data.reply import Reply
from frontdesk.data.request import AdmittedRequest, ChannelRequest
from frontdesk.data.result import HostedRunResult, HostedStreamResult
from frontdesk.data.run import FINAL, RunRecord
from frontdesk.errors import ConflictError, KeyReusedError, NotFoundError, RunExistsError
from frontdesk.host.context.command_calls import CommandCalls
from frontdesk.host.context.file_calls import FileCalls
from frontdesk.host.conversations.context import HostConversations
from frontdesk.host.parts import Parts
from frontdesk.host.wire_votes import WireVote, WireVotes
from frontdesk.kit.chat.texts_en import ENGLISH
from frontdesk.kit.hooks import show_result
from frontdesk.kit.http.idempotency import HEADER
from frontdesk.kit.lineage import continued_by, questions_of
from frontdesk.sessions.endings import replayed_stream

T = TypeVar("T")

LONGEST_WAIT = 120.0
"""The seconds for which an answer can be waited for on the wire; until then its conversation hears nothing else."""
_A_MOMENT = 0.01
_NO_EVENTS = "Only a run that was made with `background` and `stream` keeps its events."


class HostContext(CommandCalls, FileCalls):
    """The `ChannelContext` of one channel."""

    def __init__(
        self,
        channel: str,
        target: TargetInfo,
        parts: Parts,
        *,
        anonymous_allowed: bool,
        adopts_ids: bool = False,
        allows_origin: AllowsOrigin | None = None,
    ) -> None:
        super().__init__(channel, parts)
        self.conversations = HostConversations(channel, parts)
        self.target, self.texts = target, parts.texts
        self._votes = WireVotes(parts)
        self.anonymous_allowed = anonymous_allowed
        self.adopts_ids = adopts_ids
        self.allows_origin = allows_origin

    def new_id(self, prefix: str) -> str:
        return self._parts.ids.new(prefix)

    def now(self) -> float:
        return self._parts.clock.now()

    async def allow(self, caller: Caller) -> None:
        await self._allowed(caller)

    def run(
        self,
        request: ChannelRequest,
        caller: Caller,
        *,
        protocol_request: Any = None,
        settle: SettleAnswers | None = None,
    ) -> "CoroutineType[Any, Any, HostedRunResult[Any]]":
        if request.approvals:
            return self._run_answers(request, caller, protocol_request, settle)
        if request.idempotency_key is not None:
            return self._run_once(request, caller, protocol_request, settle)
        return self._parts.pipeline.run(request, caller, protocol_request, settle)

    async def _run_answers(
        self, request: ChannelRequest, caller: Caller, protocol_request: Any, settle: SettleAnswers | None
    ) -> HostedRunResult[Any]:
        """Record the answers to questions of others, or go on with the run that has asked."""
        vote = await self._votes.admit(request, caller)
        if vote is not None:
            return await self._voted(vote, caller)
        if request.idempotency_key is not None:
            return await self._run_once(request, caller, protocol_request, settle)
        return await self._parts.pipeline.run(request, caller, protocol_request, settle)

    async def _voted(self, vote: WireVote, caller: Caller) -> HostedRunResult[Any]:
        if vote.admitted.request.idempotency_key is None:
            return await self._votes.record(vote)
        outcome = await self._once(vote.admitted, lambda _: self._votes.record(vote))
        return outcome if isinstance(outcome, HostedRunResult) else HostedRunResult(result=outcome.result, run=outcome)

    async def _run_once(
        self, request: ChannelRequest, caller: Caller, protocol_request: Any, settle: SettleAnswers | None
    ) -> HostedRunResult[Any]:
        """Run the target, or return the result of an earlier request under the same key."""
        pipeline = self._parts.pipeline
        outcome = await self._once(await pipeline.admit(request, caller, protocol_request, settle), pipeline.proceed)
        if isinstance(outcome, HostedRunResult):
            return outcome
        ended = outcome if outcome.background else await self._parts.background.followers.ended(outcome)
        shown = await self._shown(ended, caller)
        return HostedRunResult(result=shown.result, run=shown)

    async def _once(
        self, admitted: AdmittedRequest, proceed: Callable[[AdmittedRequest], Awaitable[T]]
    ) -> T | RunRecord:
        """Process a request, or return the run of an earlier one under the same key; refuse another with the key."""
        while True:
            run = await self._run(admitted.owner, admitted.run_id)
            if run is not None and run.request_hash != admitted.request.request_hash:
                raise KeyReusedError(param=HEADER)
            if run is not None:
                return run
            try:
                return await proceed(admitted)
            except RunExistsError:
                # Another request at the same time is being written, or refused.
                await asyncio.sleep(_A_MOMENT)

    async def stream(
        self,
        request: ChannelRequest,
        caller: Caller,
        *,
        protocol_request: Any = None,
        settle: SettleAnswers | None = None,
    ) -> HostedStreamResult[Any]:
        pipeline = self._parts.pipeline
        if request.approvals and (vote := await self._votes.admit(request, caller)) is not None:
            return replayed_stream(await self._voted(vote, caller))
        admitted = await pipeline.admit(request, caller, protocol_request, settle)
        if request.idempotency_key is not None:
            return await self._stream_once(admitted, caller)
        return self._live(await pipeline.proceed_stream(admitted), caller)

    async def _stream_once(self, admitted: AdmittedRequest, caller: Caller) -> HostedStreamResult[Any]:
        outcome = await self._once(admitted, self._parts.pipeline.proceed_stream)
        if isinstance(outcome, HostedStreamResult):
            return self._live(outcome, caller)
        if outcome.background and outcome.stream:
            return self._followed(outcome, caller)
        return self._parts.background.followers.replay(outcome, lambda ended: self._shown(ended, caller))

    def _live(self, stream: HostedStreamResult[Any], caller: Caller) -> HostedStreamResult[Any]:
        if stream.run.status == "queued" and stream.run.stream:
            return self._followed(stream.run, caller)
        return stream

    async def submit(self, request: ChannelRequest, caller: Caller, *, protocol_request: Any = None) -> RunRecord:
        hosted = await self.run(request.replace(background=True), caller, protocol_request=protocol_request)
        return hosted.run

    async def accept(self, item: InboxItem) -> bool:
        return await self._parts.events.intake.accept(item)

    def accept_and_wait(self, item: InboxItem, seconds: float) -> AbstractAsyncContextManager[AwaitedReply]:
        if not 0 < seconds <= LONGEST_WAIT:
            raise ValueError(f"seconds must be above 0 and at most {LONGEST_WAIT:g}, not {seconds!r}")
        return self._parts.events.intake.accept_and_wait(item, seconds)

    async def reply(self, item: InboxItem, reply: Reply | str, *, number: int = 0) -> None:
        await self._parts.events.intake.reply(item, reply, number)

    async def get_run(self, caller: Caller, run_id: str) -> RunRecord:
        record = await self._readable(caller, lambda owner: self._run(owner, run_id))
        if record is None:
            raise NotFoundError("There is no such run.")
        return await self._shown(record.replace(continued_by=await continued_by(self._store, record)), caller)

    async def _run(self, owner: str, run_id: str) -> RunRecord | None:
        active = self._parts.active
        before = active.get(owner, run_id)
        if before is not None and self._store.lease_seconds is None:
            return before.record
        # If this process stood still, another may have ended a run that is still listed as active here.
        stored = await self._store.runs.get(owner, run_id)
        if before is None or (stored is not None and stored.status in FINAL):
            return stored
        # A run that has ended here meanwhile is stored by now.
        return before.record if active.get(owner, run_id) is before else await self._store.runs.get(owner, run_id)

    async def _shown(self, record: RunRecord, caller: Caller) -> RunRecord:
        """Return the run as this channel shows it: what its response hook hides stays hidden when fetched later."""
        channel = self._parts.channels.get(self.channel)
        if channel is None or channel.response_hook is None or record.result is None:
            return record
        request = ChannelRequest(
            channel=self.channel,
            input=record.input,
            identity=caller.identity,
            run_id=record.run_id,
            stream=record.stream,
            background=record.background,
            metadata=record.metadata,
            attributes=record.details,
        )
        recorded = HostedRunResult(result=record.result, run=record)
        return record.replace(result=(await show_result(channel, recorded, request, caller.identity)).result)

    async def cancel_run(self, caller: Caller, run_id: str) -> RunRecord:
        owner = await self._owner(caller)
        active = self._parts.active.get(owner, run_id)
        if active is not None and not active.record.background:
            await self._parts.active.cancel(active)
        elif active is not None or await self._store.runs.get(owner, run_id) is not None:
            await self._parts.background.cancel(owner, run_id)
        record = await self._run(owner, run_id)
        if record is None:
            raise NotFoundError("There is no such run.")
        asked = await questions_of(self._store, record)
        await self._parts.decisions.close(asked, reason=ENGLISH["reason.run_cancelled"])
        return await self._shown(record, caller)

    async def delete_run(self, caller: Caller, run_id: str) -> None:
        record = await self.cancel_run(caller, run_id)
        async with self._store.transaction() as transaction:
            transaction.delete_run(record.owner, run_id)

    async def follow(self, caller: Caller, run_id: str) -> HostedStreamResult[Any]:
        record = await self._readable(caller, lambda owner: self._store.runs.get(owner, run_id))
        if record is None:
            raise NotFoundError("There is no such run.")
        if not (record.background and record.stream):
            raise ConflictError(_NO_EVENTS, param="stream", code="no_events")
        return self._followed(record, caller)

    def _followed(self, record: RunRecord, caller: Caller) -> HostedStreamResult[Any]:
        return self._parts.background.followers.stream(record, lambda ended: self._shown(ended, caller))

    async def pending_approvals(self, caller: Caller) -> Sequence[PendingApproval]:
        return await self._store.approvals.pending(await self._owner(caller))

    async def waiting_approvals(self, caller: Caller, *, after: str | None = None, limit: int = 100) -> WaitingPage:
        if caller.anonymous:
            await self._allowed(caller)
            return WaitingPage()
        return await self._votes.waiting(await self._voter(caller), after, limit)

    async def get_approval(self, caller: Caller, approval_id: str) -> PendingApproval:
        approval, _ = await self._parts.decisions.look(await self._voter(caller), approval_id)
        if approval is None:
            raise NotFoundError("There is no such approval.")
        return approval

    async def may_decide(self, caller: Caller, approval_id: str) -> bool:
        _, seat = await self._parts.decisions.look(await self._voter(caller), approval_id)
        return seat is not None

    async def _voter(self, caller: Caller) -> Voter:
        """Return a caller as one who answers questions, with the claims that were proved of them."""
        allowed = await self._allowed(caller)
        return Voter(identity=caller.identity, key=allowed.isolation_key or "", claims=allowed.verified_claims)

    async def decide(
        self,
        caller: Caller,
        approval_id: str,
        approved: bool,
        *,
        digest: str | None = None,
        reason: str | None = None,
    ) -> Decision:
        voter, decisions = await self._voter(caller), self._parts.decisions
        answer = ApprovalAnswer(approval_id=approval_id, approved=approved, reason=reason)
        if not voter.key:
            # An approver who was never here before gets a key with the first vote; nobody else does.
            question, seat = await decisions.look(voter, approval_id)
            if question is None or seat is None or caller.anonymous:
                return Decision(outcome="not_yours")
            voter = voter.replace(key=await self._parts.gate.issue(caller.identity) or "")
            if not voter.key:
                return Decision(outcome="not_yours")
        new_run_id, wake = self._parts.gate.new_run_id, self._parts.events.intake.wake
        return await decisions.decide(voter, answer, digest, new_run_id, wake)

    async def vote(self, caller: Caller, approval_id: str, approved: bool) -> Decision | None:
        # All others are answered behind the gate, where a hook can say who the caller is.
        if await self._store.approvals.find(approval_id) is None:
            return None
        return await self.decide(caller, approval_id, approved)

    async def approval_request(self, caller: Caller, answers: Sequence[ApprovalAnswer]) -> ChannelRequest:
        hooked = self._parts.channels[self.channel].run_hook is not None
        await self._parts.gate.authorize(caller, self.channel, hooked=hooked)
        return ChannelRequest(channel=self.channel, operation="approval", approvals=tuple(answers))
