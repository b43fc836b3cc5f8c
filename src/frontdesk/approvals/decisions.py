"""Decides questions: the vote, the decision, the event that goes on with the run, and what the audit log says of it."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from hmac import compare_digest
from typing import Protocol

from frontdesk.abc.store import HostStateStore, StateTransaction
from frontdesk.abc.target import ShowsToolSchemas
from frontdesk.abc.telemetry import Span
from frontdesk.approvals.pending import digest
from frontdesk.clock import Clock
from frontdesk.data.approval import (
    EXPIRED,
    ApprovalAnswer,
    ApprovalRule,
    ApprovalStatus,
    ApprovalVote,
    AuditLine,
    Decision,
    PendingApproval,
    Resumption,
)
from frontdesk.data.delivery import Delivery, InboxItem
from frontdesk.data.identity import Caller
from frontdesk.data.request import ChannelRequest
from frontdesk.errors import StoreError, UnreadableRecordError
from frontdesk.ids import new_secret
from frontdesk.kit.telemetry import NO_SPANS, Spans, outcome_of

QUORUM: Mapping[ApprovalRule, int] = {"requester": 1}
"""How many people have to approve, by rule."""


class SettlesPlaces(Protocol):
    """Makes the deliveries that settle the messages in which a question is shown."""

    async def rows(self, question: PendingApproval, by: Caller | None) -> Sequence[Delivery]:
        """Return the deliveries for a question that was decided, for each place where it is shown."""
        ...

    async def confirmations(self, event: InboxItem, question: PendingApproval) -> Sequence[Delivery]:
        """Return the deliveries of what is said to an event about the question that it has decided."""
        ...

    async def wake(self, rows: Sequence[Delivery]) -> None:
        """Send deliveries that were written."""
        ...

    async def settle_rest(self, question: PendingApproval, by: Caller | None, rows: Sequence[Delivery]) -> None:
        """Settle the places that came to be known while a decision was written with the deliveries for the others."""
        ...


class NoPlaces:
    """Settles nothing, where there are no channels that could."""

    async def rows(self, question: PendingApproval, by: Caller | None) -> Sequence[Delivery]:
        return ()

    async def confirmations(self, event: InboxItem, question: PendingApproval) -> Sequence[Delivery]:
        return ()

    async def wake(self, rows: Sequence[Delivery]) -> None:
        """Do nothing: there are none."""

    async def settle_rest(self, question: PendingApproval, by: Caller | None, rows: Sequence[Delivery]) -> None:
        """Do nothing."""


class Decisions:
    """Writes decisions, each in one transaction with all that follows from it."""

    def __init__(
        self,
        store: HostStateStore,
        clock: Clock,
        schemas: ShowsToolSchemas | None,
        settling: SettlesPlaces,
        spans: Spans = NO_SPANS,
    ) -> None:
        """Take the target as `schemas`, if its tools can be seen."""
        self._spans = spans
        self._store = store
        self._clock = clock
        self._schemas = schemas
        self._settling = settling

    async def decide(
        self,
        caller: Caller,
        owner: str,
        answer: ApprovalAnswer,
        seen: str | None,
        new_run_id: Callable[[str], str],
        resume: Callable[[InboxItem], Awaitable[None]],
    ) -> Decision:
        """Decide a question at once; `seen` is the digest that the caller was shown, if the channel knows it.

        `resume` is called with the event that goes on with the run, when the decision is written.
        """
        question = await self._store.approvals.get(owner, answer.approval_id)
        if question is None:
            return Decision(outcome="not_yours")
        span = self._spans.begin("approval", caller.identity.channel, question.trace)
        try:
            decision = await self._decide(caller, question, answer, seen, new_run_id, resume, span)
        except BaseException as error:
            span.end(outcome_of(error))
            raise
        span.end(status_of(answer) if decision.outcome == "recorded" else decision.outcome)
        return decision

    async def _decide(
        self,
        caller: Caller,
        question: PendingApproval,
        answer: ApprovalAnswer,
        seen: str | None,
        new_run_id: Callable[[str], str],
        resume: Callable[[InboxItem], Awaitable[None]],
        span: Span,
    ) -> Decision:
        owner = question.owner
        refused = await self._refused(question, answer, seen)
        if refused is not None:
            return refused
        now = self._clock.now()
        vote = _vote(question, answer, owner, now)
        if not await self._is_enough(question, vote):
            async with self._store.transaction() as transaction:
                transaction.add_vote(vote)
            return Decision(outcome="needs_more", approval=question)
        decided = question.replace(status=status_of(answer), decided_at=now, reason=answer.reason, begun=False)
        event = _resuming(decided, answer, caller, now, new_run_id).replace(trace=span.carry())
        rows = await self._settling.rows(decided, caller)
        try:
            async with self._store.transaction() as transaction:
                transaction.decide_approval(
                    owner,
                    question.approval_id,
                    decided.status,
                    at=now,
                    reason=answer.reason,
                    attempt=new_secret(),
                    first=True,
                )
                self._note(transaction, decided, vote, rows)
                transaction.accept(event)
        except StoreError:
            # Another decision was a moment earlier.
            return Decision(outcome="late", approval=await self._store.approvals.get(owner, answer.approval_id))
        await resume(event)
        await self._settling.wake(rows)
        await self._settling.settle_rest(decided, caller, rows)
        return Decision(outcome="recorded", approval=decided, run_id=event.run_id)

    async def _refused(self, question: PendingApproval, answer: ApprovalAnswer, seen: str | None) -> Decision | None:
        if question.is_expired(self._clock.now()):
            await self.expire(question)
            return Decision(
                outcome="late", approval=await self._store.approvals.get(question.owner, question.approval_id)
            )
        if question.status != "pending":
            return Decision(outcome="late", approval=question)
        if (seen is not None and not compare_digest(seen.encode(), question.digest.encode())) or (
            answer.approved and self.has_changed(question)
        ):
            return Decision(outcome="changed", approval=question)
        return None

    async def _is_enough(self, question: PendingApproval, vote: ApprovalVote) -> bool:
        needed = QUORUM[question.rule]
        if not vote.approved or needed <= 1:
            # One no is enough.
            return True
        votes = await self._store.approvals.votes(question.owner, question.approval_id)
        return reaches(needed, {given.voter for given in votes if given.approved} | {vote.voter})

    def has_changed(self, question: PendingApproval) -> bool:
        """Tell whether the call, or what its tool takes, is no longer what was shown; a tool that is gone has changed.

        Of a question of an earlier version it is not known what its tool took.
        """
        if not compare_digest(question.digest, digest(question.request)):
            return True
        shown = question.schema_digest
        return shown is not None and not compare_digest(shown, self._schema(question.tool) or "")

    def _schema(self, tool: str) -> str | None:
        return None if self._schemas is None else self._schemas.tool_schema(tool)

    def complete(self, questions: Sequence[PendingApproval], lifetime: float | None) -> list[PendingApproval]:
        """Return questions with what their tools take at present, and with the end of their time."""
        expires_at = None if lifetime is None else self._clock.now() + lifetime
        return [
            question.replace(schema_digest=self._schema(question.tool), expires_at=expires_at) for question in questions
        ]

    async def note_answers(
        self,
        questions: Sequence[PendingApproval],
        answers: Sequence[ApprovalAnswer],
        caller: Caller | None,
        event: InboxItem | None = None,
    ) -> tuple[Callable[[StateTransaction], None], Callable[[], Awaitable[None]]]:
        """Return what adds the votes, audit lines and deliveries of answers to a transaction, and what is done then.

        An answer that is given again, because nothing was done with it yet, has left its lines before. What is said to
        the event that it came with is the same delivery each time.
        """
        now, noted, rows = self._clock.now(), list[tuple[PendingApproval, ApprovalVote]](), list[Delivery]()
        for question, answer in zip(questions, answers, strict=True):
            decided = question.replace(status=status_of(answer), decided_at=now, reason=answer.reason)
            if event is not None:
                rows += await self._settling.confirmations(event, decided)
            if question.status == "pending":
                noted.append((decided, _vote(question, answer, question.owner, now)))
                rows += await self._settling.rows(decided, caller)

        def add(transaction: StateTransaction) -> None:
            for decided, vote in noted:
                self._note(transaction, decided, vote)
            for row in rows:
                transaction.add_delivery(row)

        async def finish() -> None:
            for decided, _ in noted:
                channel = "" if caller is None else caller.identity.channel
                self._spans.begin("approval", channel, decided.trace).end(decided.status)
            if rows:
                await self._settling.wake(rows)
            for decided, _ in noted:
                await self._settling.settle_rest(decided, caller, rows)

        return add, finish

    async def expire(self, question: PendingApproval) -> None:
        """Cancel a question that nobody has answered in time; one that was decided meanwhile stays as it is."""
        await self._cancel(question, EXPIRED, _line(question, EXPIRED, self._clock.now()))

    async def cancel(self, question: PendingApproval, *, by: str, reason: str | None = None) -> bool:
        """Cancel a question because an operator says so; tell whether nobody decided it before."""
        line = _line(question, "cancelled", self._clock.now(), by, reason)
        return await self._cancel(question, reason, line)

    async def _cancel(self, question: PendingApproval, reason: str | None, line: AuditLine) -> bool:
        cancelled = question.replace(status="cancelled", decided_at=line.at, reason=reason)
        rows = await self._settling.rows(cancelled, None)
        try:
            async with self._store.transaction() as transaction:
                transaction.decide_approval(
                    question.owner, question.approval_id, "cancelled", at=line.at, reason=reason, first=True
                )
                transaction.add_audit(line)
                for row in rows:
                    transaction.add_delivery(row)
        except StoreError:
            return False
        await self._settling.wake(rows)
        await self._settling.settle_rest(cancelled, None, rows)
        return True

    async def note_cancelled(
        self, owner: str, at: float, reason: str
    ) -> tuple[Callable[[StateTransaction], None], Callable[[], Awaitable[None]]]:
        """Return what cancels all that waits for an owner in a transaction, and what is done then.

        The messages that show the questions are settled in the same transaction.
        """
        cancelled = [
            question.replace(status="cancelled", decided_at=at, reason=reason)
            for question in await self._pending(owner)
            if question.status == "pending"
        ]
        rows = [row for question in cancelled for row in await self._settling.rows(question, None)]

        def add(transaction: StateTransaction) -> None:
            transaction.cancel_approvals(owner, at=at, reason=reason)
            for row in rows:
                transaction.add_delivery(row)

        async def finish() -> None:
            if rows:
                await self._settling.wake(rows)
            for question in cancelled:
                await self._settling.settle_rest(question, None, rows)

        return add, finish

    async def _pending(self, owner: str) -> Sequence[PendingApproval]:
        try:
            return await self._store.approvals.pending(owner)
        except UnreadableRecordError:
            # Only a newer version knows what was asked; it is cancelled all the same.
            return ()

    def _note(
        self,
        transaction: StateTransaction,
        decided: PendingApproval,
        vote: ApprovalVote,
        rows: Sequence[Delivery] = (),
    ) -> None:
        transaction.add_vote(vote)
        transaction.add_audit(_line(decided, decided.status, vote.at, vote.voter, vote.reason))
        for row in rows:
            transaction.add_delivery(row)


def reaches(needed: int, voters: Collection[str]) -> bool:
    """Tell whether enough people have approved."""
    return len(voters) >= needed


def status_of(answer: ApprovalAnswer) -> ApprovalStatus:
    """Return the status of a question after an answer."""
    return "approved" if answer.approved else "rejected"


def _vote(question: PendingApproval, answer: ApprovalAnswer, voter: str, at: float) -> ApprovalVote:
    return ApprovalVote(
        owner=question.owner,
        approval_id=question.approval_id,
        voter=voter,
        approved=answer.approved,
        at=at,
        reason=answer.reason,
    )


def _line(question: PendingApproval, action: str, at: float, by: str = "", reason: str | None = None) -> AuditLine:
    return AuditLine(at=at, owner=question.owner, subject=question.approval_id, action=action, by=by, reason=reason)


def _resuming(
    question: PendingApproval,
    answer: ApprovalAnswer,
    caller: Caller,
    now: float,
    new_run_id: Callable[[str], str],
) -> InboxItem:
    """Make the event that goes on with a run, as the person who asked; of earlier versions that is not known."""
    requester = question.requester or caller
    request: ChannelRequest = question.resume or ChannelRequest(
        channel=requester.identity.channel, operation="approval"
    )
    # Until the tool begins, the run is begun again by itself; after that it fails as interrupted.
    request = request.replace(approvals=(answer,), background=True, on_interrupt="restart", identity=requester.identity)
    name = f"decided:{question.approval_id}"
    return InboxItem(
        channel=request.channel,
        event_id=name,
        # A queue of its own: it waits for its session, and for nothing else.
        conversation_id=name,
        caller=requester,
        request=request,
        received_at=now,
        payload=Resumption(approval_id=question.approval_id, owner=question.owner),
        run_id=new_run_id(request.channel),
        kind="resume",
    )
