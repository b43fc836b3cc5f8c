"""Decides approvals: counts votes, records the decision, resumes the run and writes the audit log."""

from collections.abc import Awaitable, Callable, Sequence
from hmac import compare_digest
from typing import NamedTuple

from frontdesk.approvals.extraction import digest
from frontdesk.approvals.records import (
    CLAIM_SEAT,
    OPERATOR_SEAT,
    CountedVote,
    NewRunId,
    Resume,
    UpdatesApprovalMessages,
    Voter,
    audit_line,
    build_caller,
    build_resume_event,
    build_vote,
    find_seat,
    get_status,
    is_decided,
)
from frontdesk.approvals.voters import VoterLookup, check_unchanged
from frontdesk.clock import Clock
from frontdesk.errors import ConflictError, ForbiddenError, StoreError, UnreadableRecordError
from frontdesk.ids import new_secret
from frontdesk.interfaces.store import HostStateStore, StateTransaction
from frontdesk.interfaces.target import ShowsToolSchemas
from frontdesk.interfaces.telemetry import Span
from frontdesk.models.approval import (
    EXPIRED,
    ApprovalAnswer,
    ApprovalVote,
    ApproverTerms,
    AuditLine,
    Decision,
    PendingApproval,
)
from frontdesk.models.delivery import Delivery, InboxItem
from frontdesk.models.identity import Caller, ChannelIdentity, IdentityRecord
from frontdesk.telemetry.spans import NO_SPANS, Spans, classify_outcome

MAX_KEYS_OF_VOTER = 200
"""The number of keys that are stored with one vote. A person has about 40 at most, unless they link again and again."""


class Tally(NamedTuple):
    """A new vote. It may decide the question together with earlier valid votes."""

    question: PendingApproval
    vote: ApprovalVote
    enough: bool = True
    records: Sequence[IdentityRecord] = ()
    """The records of all voters, as they were read. The result is valid while they are unchanged."""
    reads_votes: bool = False
    """True if the result depends on earlier votes."""
    is_repeated: bool = False
    """True if a vote of the same person, under the same isolation key, is stored and still counts."""
    is_stored: bool = False
    """True if that vote is stored with all keys of the person."""


def check_tallies(transaction: StateTransaction, tallies: Sequence[Tally]) -> None:
    """Raise `StoreError` in a transaction if a vote, or the account of a voter, has changed since it was read."""
    check_unchanged(transaction, [record for tally in tallies for record in tally.records])
    for tally in tallies:
        if tally.reads_votes:
            question = tally.question
            transaction.count_vote(question.owner, question.approval_id, seen=question.voted)


class VoteCounter:
    """Creates votes and counts them together with earlier votes."""

    def __init__(self, store: HostStateStore, voters: VoterLookup) -> None:
        self._store = store
        self._voters = voters

    async def count(
        self, question: PendingApproval, answer: ApprovalAnswer, voter: Voter, at: float, *, operator: bool = False
    ) -> Tally | None:
        """Count a vote. Return None if the person currently has no right to vote. An operator decides alone."""
        terms = question.terms
        if operator or terms is None:
            seat = OPERATOR_SEAT if operator else "requester"
            return Tally(
                question, build_vote(question, answer, at, voter=voter.key, identity=voter.identity, seat=seat)
            )
        now, record = await self._voters.update_voter(voter, keeps_key=voter.key == question.owner)
        seat = None if now is None else await find_seat(question, terms, now, self._voters.fresh)
        if now is None or seat is None:
            return None
        votes = await self._store.approvals.votes(question.owner, question.approval_id)
        # A vote replaces the one under the same key, and keeps what that has proved about the person.
        replaced = next((given for given in votes if given.voter == now.key), None)
        person_keys = now.person_keys if replaced is None else now.person_keys.union(replaced.person_keys)
        if len(person_keys) > MAX_KEYS_OF_VOTER:
            return None
        vote = build_vote(
            question,
            answer,
            at,
            voter=now.key,
            identity=now.identity,
            seat=seat,
            person_keys=person_keys,
            claims=None if now.caller is None else now.caller.claims,
        )
        tally = Tally(question, vote, records=() if record is None else (record,))
        if not vote.approved or terms.votes <= 1:
            return tally
        return await self._count_with(votes, terms, tally)

    async def _count_with(self, votes: Sequence[ApprovalVote], terms: ApproverTerms, tally: Tally) -> Tally:
        vote, records, counted = tally.vote, list(tally.records), list[CountedVote]()
        for given in votes:
            one, record = await self._voters.evaluate_vote(tally.question, terms, given)
            if _may_be_same_person(given, (*votes, vote)):
                one = one._replace(counts=False)
            counted.append(one)
            if record is not None:
                records.append(record)
        tally = tally._replace(enough=is_decided(terms, counted, vote), records=records, reads_votes=True)
        same = next((one.vote for one in counted if one.vote.voter == vote.voter and _approves(one)), None)
        if same is None or tally.enough:
            return tally
        # The vote of the first account stays, because the right of another account of the person may end earlier.
        kept = same.replace(person_keys=vote.person_keys)
        return tally._replace(vote=kept, is_repeated=True, is_stored=set(same.person_keys) == set(vote.person_keys))


def _may_be_same_person(given: ApprovalVote, votes: Sequence[ApprovalVote]) -> bool:
    """Return True if a claim-based vote of an earlier version may come from the same person.

    This is the case if an account of the same name votes on another channel. Such a vote does not prove that these are
    two people, because its principal was not stored. The voter may vote again.
    """
    if given.person_keys or given.identity is None or not given.seat.startswith(CLAIM_SEAT):
        return False
    accounts = [one.identity for one in votes if one.identity is not None]
    return any(one.native_id == given.identity.native_id and one.channel != given.identity.channel for one in accounts)


def _approves(one: CountedVote) -> bool:
    return one.counts and one.vote.approved


NOT_YOURS = "You are not an approver of this call."
_MAX_TRIES = 100
"""The number of times that a vote is counted again because other votes, or links of voters, have changed meanwhile."""
NEEDS_MORE = "Your vote was recorded. More approvers are required."


class Decisions:
    def __init__(
        self,
        store: HostStateStore,
        clock: Clock,
        schemas: ShowsToolSchemas | None,
        settling: UpdatesApprovalMessages,
        spans: Spans = NO_SPANS,
        voters: VoterLookup | None = None,
        *,
        sees_tools: bool = True,
    ) -> None:
        """Configure the target's tool schemas, if visible, and the lookup of people and their rights.

        Without `sees_tools` there is no target here, and the resumed run compares the tool.
        """
        self._sees_tools = sees_tools
        self.voters = voters or VoterLookup(store)
        self._counter = VoteCounter(store, self.voters)
        self._spans = spans
        self._store = store
        self._clock = clock
        self._schemas = schemas
        self._settling = settling

    async def look(self, voter: Voter, approval_id: str) -> tuple[PendingApproval | None, str | None]:
        """Return a question visible to a person, and the seat in which they vote, or None if they may not vote.

        Only approvers learn of the existence of another person's question.
        """
        question = await self._store.approvals.get(voter.key, approval_id) if voter.key else None
        if question is None:
            question = await self._store.approvals.find(approval_id)
        if question is None:
            return None, None
        terms = question.terms
        if terms is None:
            return (question, "requester") if question.owner == voter.key else (None, None)
        seat = await self.find_seat(question, terms, voter)
        return (question if seat is not None or question.owner == voter.key else None), seat

    async def find_seat(self, question: PendingApproval, terms: ApproverTerms, voter: Voter) -> str | None:
        """Return the seat of a voter, or None if the vote does not count."""
        return await find_seat(question, terms, await self.voters.recognise(voter), self.voters)

    async def decide(
        self, voter: Voter, answer: ApprovalAnswer, seen: str | None, new_run_id: NewRunId, resume: Resume
    ) -> Decision:
        """Decide a question immediately. `seen` is the displayed digest, if the channel stores it.

        `resume` is called with the event that resumes the run, once the decision is written.
        """
        question, seat = await self.look(voter, answer.approval_id)
        if question is None or seat is None:
            return Decision(outcome="not_yours", approval=question)
        return await self._decide_traced(question, answer, voter, seen, new_run_id, resume)

    async def decide_as_operator(
        self, question: PendingApproval, answer: ApprovalAnswer, by: str, new_run_id: NewRunId, resume: Resume
    ) -> Decision:
        """Decide a question on behalf of an operator, regardless of the approvals it requires."""
        nobody = Voter(identity=ChannelIdentity(channel="operator", native_id=by), key=by)
        return await self._decide_traced(question, answer, nobody, None, new_run_id, resume, operator=True)

    async def _decide_traced(
        self,
        question: PendingApproval,
        answer: ApprovalAnswer,
        voter: Voter,
        seen: str | None,
        new_run_id: NewRunId,
        resume: Resume,
        *,
        operator: bool = False,
    ) -> Decision:
        span = self._spans.begin("approval", voter.identity.channel, question.trace)
        try:
            decision = await self._check_answer(question, answer, seen, new_run_id, resume)
            tries = 0
            while decision is None:
                if (tries := tries + 1) > _MAX_TRIES:
                    raise _busy()
                decision = await self._vote(question, answer, voter, new_run_id, resume, span, operator=operator)
        except BaseException as error:
            span.end(classify_outcome(error))
            raise
        span.end(get_status(answer) if decision.outcome == "recorded" else decision.outcome)
        return decision

    async def _vote(
        self,
        question: PendingApproval,
        answer: ApprovalAnswer,
        voter: Voter,
        new_run_id: NewRunId,
        resume: Resume,
        span: Span,
        *,
        operator: bool,
    ) -> Decision | None:
        """Write a vote, and the decision if the vote completes one. Return None if its preconditions have changed."""
        fresh = await self._store.approvals.get(question.owner, question.approval_id)
        if fresh is None or fresh.status != "pending":
            return Decision(outcome="late", approval=fresh)
        tally = await self._counter.count(fresh, answer, voter, self._clock.now(), operator=operator)
        if tally is None:
            return Decision(outcome="not_yours", approval=fresh if fresh.owner == voter.key else None)
        vote = tally.vote
        if not tally.enough:
            return await self._count(tally)
        # Of questions of earlier versions it is not known who asked: only that person could answer.
        requester = fresh.requester or build_caller(vote)
        if requester is None:
            raise ValueError("the vote has no account")
        decided = fresh.replace(status=get_status(answer), decided_at=vote.at, reason=answer.reason, begun=False)
        event = build_resume_event(decided, answer, requester, vote.at, new_run_id).replace(trace=span.carry())
        if await self._write(decided, event, resume, build_caller(vote), tally):
            return Decision(outcome="recorded", approval=decided, run_id=event.run_id)
        now = await self._store.approvals.get(question.owner, answer.approval_id)
        # Either another decision was earlier, or a voter or another vote has changed.
        return None if now is not None and now.status == "pending" else Decision(outcome="late", approval=now)

    async def _write(
        self,
        decided: PendingApproval,
        event: InboxItem,
        resume: Resume,
        by: Caller | None = None,
        tally: Tally | None = None,
    ) -> bool:
        """Write a decision with the event that resumes the run. Return True if it is the first.

        The decision is written only while the votes that it depends on are valid. Without a vote it is a rejection by
        timeout.
        """
        rows, at = await self._settling.rows(decided, by), decided.decided_at or self._clock.now()
        try:
            async with self._store.transaction() as transaction:
                if tally is not None:
                    check_tallies(transaction, [tally])
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
                if tally is not None:
                    self._note(transaction, decided, tally.vote)
                else:
                    transaction.add_audit(audit_line(decided, EXPIRED, at))
                for row in rows:
                    transaction.add_delivery(row)
                transaction.accept(event)
        except StoreError:
            return False
        await resume(event)
        await self._settling.wake(rows)
        await self._settling.settle_rest(decided, by, rows)
        return True

    async def _count(self, tally: Tally) -> Decision | None:
        """Write a vote that decides nothing. Return None if a concurrent vote may complete the decision."""
        question, vote = tally.question, tally.vote
        if tally.is_stored:
            return Decision(outcome="needs_more", approval=question)
        try:
            async with self._store.transaction() as transaction:
                check_tallies(transaction, [tally])
                transaction.add_vote(vote)
                if not tally.is_repeated:
                    transaction.add_audit(audit_line(question, "voted", vote.at, vote.voter, vote.reason))
        except StoreError:
            return None
        return Decision(outcome="needs_more", approval=question)

    async def _check_answer(
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

    async def require_eligible(self, question: PendingApproval, answer: ApprovalAnswer, voter: Voter) -> Tally | None:
        """Return the tally by which an HTTP answer decides, or None if no other approvals are required.

        Reject the answer of a person who may not vote, and an answer that other people still have to approve. The vote
        is recorded in the second case.
        """
        if question.terms is None or question.status != "pending":
            return None
        for _ in range(_MAX_TRIES):
            fresh = await self._store.approvals.get(question.owner, question.approval_id) or question
            tally = await self._counter.count(fresh, answer, voter, self._clock.now())
            if tally is None:
                raise ForbiddenError(NOT_YOURS, code="approval_not_yours", param="approvals")
            if tally.enough:
                return tally
            if await self._count(tally) is not None:
                raise ConflictError(NEEDS_MORE, code="approval_needs_more", param="approvals")
        raise _busy()

    def has_changed(self, question: PendingApproval) -> bool:
        """Return True if the call or its tool schema differs from what was displayed, or the tool is gone.

        For a question of an earlier version the schema is unknown.
        """
        if not compare_digest(question.digest, digest(question.request)):
            return True
        shown = question.schema_digest
        return self._sees_tools and shown is not None and not compare_digest(shown, self._schema(question.tool) or "")

    def _schema(self, tool: str) -> str | None:
        return None if self._schemas is None else self._schemas.tool_schema(tool)

    def complete(self, questions: Sequence[PendingApproval], lifetime: float | None) -> list[PendingApproval]:
        """Add the current tool schemas and the expiry time to questions."""
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
        """Return a transaction step for the votes, audit lines and deliveries of answers, and a follow-up.

        The step precedes the decisions, which are the first for the pending questions. A repeated answer that was not
        acted on yet has already written its lines. The reply to its event is the same delivery each time.
        """
        now, noted, rows = self._clock.now(), list[tuple[PendingApproval, ApprovalVote]](), list[Delivery]()
        tallies: list[Tally] = []
        for question, answer in zip(questions, answers, strict=True):
            decided = question.replace(status=get_status(answer), decided_at=now, reason=answer.reason)
            if event is not None:
                rows += await self._settling.confirmations(event, decided)
            if question.status == "pending":
                identity = None if caller is None else caller.identity
                vote = build_vote(question, answer, now, voter=question.owner, identity=identity)
                if question.terms is not None:
                    if caller is None:
                        raise ForbiddenError(NOT_YOURS, code="approval_not_yours", param="approvals")
                    # The votes of others are counted again: one of them may have lost the right meanwhile.
                    tally = await self.require_eligible(question, answer, Voter.of_owner(caller, question.owner))
                    if tally is not None:
                        tallies.append(tally)
                        vote = tally.vote
                noted.append((decided, vote))
                rows += await self._settling.rows(decided, caller)

        def add(transaction: StateTransaction) -> None:
            check_tallies(transaction, tallies)
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
        """Reject a question that was not answered in time, which resumes the run.

        A question that was decided meanwhile is unchanged. A question of an earlier version, which has no requester, is
        cancelled.
        """
        now = self._clock.now()
        if question.requester is None:
            await self._cancel(question, EXPIRED, audit_line(question, EXPIRED, now))
            return
        answer = ApprovalAnswer(approval_id=question.approval_id, approved=False, reason=EXPIRED)
        decided = question.replace(status=get_status(answer), decided_at=now, reason=EXPIRED, begun=False)
        event = build_resume_event(decided, answer, question.requester, now, new_run_id).replace(trace=question.trace)
        await self._write(decided, event, resume)

    async def cancel(self, question: PendingApproval, *, by: str, reason: str | None = None) -> bool:
        """Cancel a question on behalf of an operator. Return True if it was not decided before."""
        line = audit_line(question, "cancelled", self._clock.now(), by, reason)
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
        """Cancel pending questions because their context has ended. Decided questions are unchanged."""
        for question in questions:
            if question.status == "pending":
                await self._cancel(
                    question, reason, audit_line(question, "cancelled", self._clock.now(), reason=reason)
                )

    async def note_cancelled(
        self, owner: str, at: float, reason: str
    ) -> tuple[Callable[[StateTransaction], None], Callable[[], Awaitable[None]]]:
        """Return a transaction step that cancels all pending questions of an owner, and a follow-up.

        The messages that display the questions are updated in the same transaction.
        """
        cancelled = [
            question.replace(status="cancelled", decided_at=at, reason=reason)
            for question in await self._list_pending(owner)
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
        rows = await self._settling.rows_of_leavers(people)

        def add(transaction: StateTransaction) -> None:
            for row in rows:
                transaction.add_delivery(row)

        async def finish() -> None:
            if rows:
                await self._settling.wake(rows)

        return add, finish

    async def _list_pending(self, owner: str) -> Sequence[PendingApproval]:
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
        transaction.add_audit(audit_line(decided, decided.status, vote.at, vote.voter, vote.reason))


def _busy() -> ConflictError:
    return ConflictError(
        "Other approvers are answering this approval. Try again.", code="approval_busy", retry_after=1.0
    )
