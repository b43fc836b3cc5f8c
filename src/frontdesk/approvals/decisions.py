"""Decides questions: the vote, the decision, the event that goes on with the run, and what the audit log says of it."""

from collections.abc import Awaitable, Callable, Sequence
from hmac import compare_digest

from frontdesk.abc.store import HostStateStore, StateTransaction
from frontdesk.abc.target import ShowsToolSchemas
from frontdesk.abc.telemetry import Span
from frontdesk.approvals.pending import digest
from frontdesk.approvals.places import SettlesPlaces
from frontdesk.approvals.records import (
    OPERATOR_SEAT,
    NewRunId,
    Resume,
    caller_of,
    line_of,
    resuming,
    status_of,
    vote_of,
)
from frontdesk.approvals.voting import FindKey, Voter, is_decided, seat_of
from frontdesk.clock import Clock
from frontdesk.data.approval import (
    EXPIRED,
    ApprovalAnswer,
    ApprovalVote,
    AuditLine,
    Decision,
    PendingApproval,
)
from frontdesk.data.delivery import Delivery, InboxItem
from frontdesk.data.identity import Caller, ChannelIdentity
from frontdesk.errors import ConflictError, ForbiddenError, StoreError, UnreadableRecordError
from frontdesk.ids import new_secret
from frontdesk.kit.telemetry import NO_SPANS, Spans, outcome_of

NOT_YOURS = "Others have to answer this question."
NEEDS_MORE = "Your answer was noted. Others have to agree."


class Decisions:
    """Writes decisions, each in one transaction with all that follows from it."""

    def __init__(
        self,
        store: HostStateStore,
        clock: Clock,
        schemas: ShowsToolSchemas | None,
        settling: SettlesPlaces,
        spans: Spans = NO_SPANS,
        find_key: FindKey | None = None,
        *,
        sees_tools: bool = True,
    ) -> None:
        """Take the target as `schemas`, if its tools can be seen; `find_key` knows which accounts are linked.

        Without `sees_tools` there is no target here, and the run that goes on compares the tool.
        """
        self._sees_tools = sees_tools
        self.find_key = find_key or self._stored_key
        self._spans = spans
        self._store = store
        self._clock = clock
        self._schemas = schemas
        self._settling = settling

    async def _stored_key(self, identity: ChannelIdentity) -> str | None:
        record = await self._store.identities.find(identity)
        return None if record is None else record.isolation_key

    async def look(self, voter: Voter, approval_id: str) -> tuple[PendingApproval | None, str | None]:
        """Return a question that a person may see, and the seat in which they vote; no seat if they may not vote.

        Of a question of somebody else, only its approvers know that there is one.
        """
        question = await self._store.approvals.get(voter.key, approval_id) if voter.key else None
        if question is None:
            question = await self._store.approvals.find(approval_id)
        if question is None:
            return None, None
        terms = question.terms
        if terms is None:
            return (question, "requester") if question.owner == voter.key else (None, None)
        seat = await seat_of(question, terms, voter, self.find_key)
        return (question if seat is not None or question.owner == voter.key else None), seat

    async def decide(
        self, voter: Voter, answer: ApprovalAnswer, seen: str | None, new_run_id: NewRunId, resume: Resume
    ) -> Decision:
        """Decide a question at once; `seen` is the digest that the person was shown, if the channel knows it.

        `resume` is called with the event that goes on with the run, when the decision is written.
        """
        question, seat = await self.look(voter, answer.approval_id)
        if question is None or seat is None:
            return Decision(outcome="not_yours", approval=question)
        vote = self._vote_of(question, answer, voter, seat)
        return await self._spanned(question, answer, vote, seen, new_run_id, resume)

    async def decide_as_operator(
        self, question: PendingApproval, answer: ApprovalAnswer, by: str, new_run_id: NewRunId, resume: Resume
    ) -> Decision:
        """Decide a question because an operator says so, whoever else would have to agree."""
        nobody = Voter(identity=ChannelIdentity(channel="operator", native_id=by), key=by)
        vote = self._vote_of(question, answer, nobody, OPERATOR_SEAT)
        return await self._spanned(question, answer, vote, None, new_run_id, resume)

    def _vote_of(self, question: PendingApproval, answer: ApprovalAnswer, voter: Voter, seat: str) -> ApprovalVote:
        now = self._clock.now()
        return vote_of(question, answer, now, voter=voter.key, identity=voter.identity, seat=seat)

    async def _spanned(
        self,
        question: PendingApproval,
        answer: ApprovalAnswer,
        vote: ApprovalVote,
        seen: str | None,
        new_run_id: NewRunId,
        resume: Resume,
    ) -> Decision:
        channel = "" if vote.identity is None else vote.identity.channel
        span = self._spans.begin("approval", channel, question.trace)
        try:
            decision = await self._refused(question, answer, seen, new_run_id, resume)
            while decision is None:
                decision = await self._vote(question, answer, vote, new_run_id, resume, span)
        except BaseException as error:
            span.end(outcome_of(error))
            raise
        span.end(status_of(answer) if decision.outcome == "recorded" else decision.outcome)
        return decision

    async def _vote(
        self,
        question: PendingApproval,
        answer: ApprovalAnswer,
        vote: ApprovalVote,
        new_run_id: NewRunId,
        resume: Resume,
        span: Span,
    ) -> Decision | None:
        """Write a vote, and the decision if it makes one; `None` if another vote was written at the same moment."""
        fresh = await self._store.approvals.get(question.owner, question.approval_id)
        if fresh is None or fresh.status != "pending":
            return Decision(outcome="late", approval=fresh)
        if not await self.is_enough(fresh, vote):
            return await self._count(fresh, vote)
        # Of questions of earlier versions it is not known who asked: only that person could answer.
        requester = fresh.requester or caller_of(vote)
        if requester is None:
            raise ValueError("a vote has the account with which it was given")
        decided = fresh.replace(status=status_of(answer), decided_at=vote.at, reason=answer.reason, begun=False)
        event = resuming(decided, answer, requester, vote.at, new_run_id).replace(trace=span.carry())
        if not await self._write(decided, event, resume, caller_of(vote), vote):
            # Another decision was a moment earlier.
            late = await self._store.approvals.get(question.owner, answer.approval_id)
            return Decision(outcome="late", approval=late)
        return Decision(outcome="recorded", approval=decided, run_id=event.run_id)

    async def _write(
        self,
        decided: PendingApproval,
        event: InboxItem,
        resume: Resume,
        by: Caller | None = None,
        vote: ApprovalVote | None = None,
    ) -> bool:
        """Write a decision with the event that goes on with the run; tell whether it is the first.

        Without a vote nobody has decided, and it is a no because the time is over.
        """
        rows, at = await self._settling.rows(decided, by), decided.decided_at or self._clock.now()
        try:
            async with self._store.transaction() as transaction:
                transaction.decide_approval(
                    decided.owner,
                    decided.approval_id,
                    decided.status,
                    at=at,
                    reason=decided.reason,
                    attempt=new_secret(),
                    first=True,
                    resumed_by=event.run_id,
                )
                if vote is not None:
                    self._note(transaction, decided, vote)
                else:
                    transaction.add_audit(line_of(decided, EXPIRED, at))
                for row in rows:
                    transaction.add_delivery(row)
                transaction.accept(event)
        except StoreError:
            return False
        await resume(event)
        await self._settling.wake(rows)
        await self._settling.settle_rest(decided, by, rows)
        return True

    async def _count(self, question: PendingApproval, vote: ApprovalVote) -> Decision | None:
        """Write a vote that decides nothing; `None` if another was written at the same moment, which may be enough."""
        votes = await self._store.approvals.votes(question.owner, question.approval_id)
        if any(given.voter == vote.voter and given.approved == vote.approved for given in votes):
            return Decision(outcome="needs_more", approval=question)
        try:
            async with self._store.transaction() as transaction:
                transaction.count_vote(question.owner, question.approval_id, seen=question.voted)
                transaction.add_vote(vote)
                transaction.add_audit(line_of(question, "voted", vote.at, vote.voter, vote.reason))
        except StoreError:
            return None
        return Decision(outcome="needs_more", approval=question)

    async def _refused(
        self,
        question: PendingApproval,
        answer: ApprovalAnswer,
        seen: str | None,
        new_run_id: NewRunId,
        resume: Resume,
    ) -> Decision | None:
        if question.is_expired(self._clock.now()):
            await self.expire(question, new_run_id, resume)
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

    async def is_enough(self, question: PendingApproval, vote: ApprovalVote) -> bool:
        """Tell whether a vote decides a question, with those that were given before."""
        terms = question.terms
        if terms is None or vote.seat == OPERATOR_SEAT or not vote.approved or terms.votes <= 1:
            return True
        return is_decided(terms, await self._store.approvals.votes(question.owner, question.approval_id), vote)

    async def need_deciding(self, question: PendingApproval, answer: ApprovalAnswer, voter: Voter) -> None:
        """Refuse an answer on a wire that does not decide: of a person who may not, or before others have agreed.

        The vote is recorded all the same.
        """
        terms = question.terms
        if terms is None or question.status != "pending":
            return
        seat = await seat_of(question, terms, voter, self.find_key)
        if seat is None:
            raise ForbiddenError(NOT_YOURS, code="approval_not_yours", param="approvals")
        while True:
            fresh = await self._store.approvals.get(question.owner, question.approval_id) or question
            vote = self._vote_of(fresh, answer, voter, seat)
            if await self.is_enough(fresh, vote):
                return
            if await self._count(fresh, vote) is not None:
                raise ConflictError(NEEDS_MORE, code="approval_needs_more", param="approvals")

    def has_changed(self, question: PendingApproval) -> bool:
        """Tell whether the call, or what its tool takes, is no longer what was shown; a tool that is gone has changed.

        Of a question of an earlier version it is not known what its tool took.
        """
        if not compare_digest(question.digest, digest(question.request)):
            return True
        shown = question.schema_digest
        return self._sees_tools and shown is not None and not compare_digest(shown, self._schema(question.tool) or "")

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
                identity = None if caller is None else caller.identity
                noted.append((decided, vote_of(question, answer, now, voter=question.owner, identity=identity)))
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

    async def expire(self, question: PendingApproval, new_run_id: NewRunId, resume: Resume) -> None:
        """Decide a question that nobody has answered in time as a no, with which the run goes on.

        One that was decided meanwhile stays as it is. One of an earlier version, which does not tell who asked, is
        cancelled.
        """
        now = self._clock.now()
        if question.requester is None:
            await self._cancel(question, EXPIRED, line_of(question, EXPIRED, now))
            return
        answer = ApprovalAnswer(approval_id=question.approval_id, approved=False, reason=EXPIRED)
        decided = question.replace(status=status_of(answer), decided_at=now, reason=EXPIRED, begun=False)
        event = resuming(decided, answer, question.requester, now, new_run_id).replace(trace=question.trace)
        await self._write(decided, event, resume)

    async def cancel(self, question: PendingApproval, *, by: str, reason: str | None = None) -> bool:
        """Cancel a question because an operator says so; tell whether nobody decided it before."""
        line = line_of(question, "cancelled", self._clock.now(), by, reason)
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

    async def close(self, questions: Sequence[PendingApproval], *, reason: str) -> None:
        """Cancel questions that wait, because what they belong to has ended; others stay as they are."""
        for question in questions:
            if question.status == "pending":
                await self._cancel(question, reason, line_of(question, "cancelled", self._clock.now(), reason=reason))

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

    async def note_left(
        self, people: Sequence[ChannelIdentity]
    ) -> tuple[Callable[[StateTransaction], None], Callable[[], Awaitable[None]]]:
        """Return what settles the questions of others that people can't answer any more once they are unlinked."""
        rows = await self._settling.rows_of_leavers(people)

        def add(transaction: StateTransaction) -> None:
            for row in rows:
                transaction.add_delivery(row)

        async def finish() -> None:
            if rows:
                await self._settling.wake(rows)

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
    ) -> None:
        transaction.add_vote(vote)
        transaction.add_audit(line_of(decided, decided.status, vote.at, vote.voter, vote.reason))
