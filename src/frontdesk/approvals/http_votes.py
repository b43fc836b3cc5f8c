"""Accepts votes over HTTP on approvals of other people. Does not resume a run of the caller."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent_framework import AgentResponse, Content, Message

from frontdesk.access.gate import Gate, identify
from frontdesk.access.identify import IdentityKeys
from frontdesk.approvals.answers import find_error, unknown
from frontdesk.approvals.decisions import NEEDS_MORE, Decisions
from frontdesk.approvals.records import Resume, Voter, get_status, owns_question
from frontdesk.approvals.requester import build_view
from frontdesk.chat.i18n.texts import Texts
from frontdesk.clock import Clock
from frontdesk.errors import InvalidRequestError
from frontdesk.framework.contents import stamp
from frontdesk.ids import Ids
from frontdesk.interfaces.channel import Channel
from frontdesk.interfaces.storage.pages import MAX_PAGE_BYTES
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.approval import (
    ApprovalAnswer,
    Decision,
    PendingApproval,
    QuestionView,
    WaitingPage,
    claim_keys,
    person_key,
)
from frontdesk.models.base import FrozenStruct
from frontdesk.models.identity import Caller
from frontdesk.models.request import AdmittedRequest, ChannelRequest
from frontdesk.models.result import HostedRunResult
from frontdesk.models.run import DECISIONS, RunRecord

_ALONE = "An answer to another person's approval can't be combined with a session or other input."
_MIXED = "Send answers to your own approvals and to those of others in separate requests."


class HttpVote(FrozenStruct, frozen=True, kw_only=True):
    """A request whose answers are votes on questions of other people."""

    admitted: AdmittedRequest
    """The request, without its answers."""
    answers: tuple[ApprovalAnswer, ...]
    claims: Mapping[str, Any]


class HttpVotes:
    """Finds requests that answer questions of other people, and records their votes."""

    def __init__(
        self,
        *,
        store: HostStateStore,
        channels: Mapping[str, Channel],
        gate: Gate,
        keys: IdentityKeys,
        decisions: Decisions,
        clock: Clock,
        ids: Ids,
        texts: Texts,
        resume: Resume,
    ) -> None:
        self._store, self._channels, self._gate, self._keys = store, channels, gate, keys
        self._decisions, self._clock, self._ids, self._texts, self._resume = decisions, clock, ids, texts, resume

    async def admit(self, request: ChannelRequest, caller: Caller) -> HttpVote | None:
        """Admit a request that answers questions of others. Return None for all other requests and reveal nothing.

        A new approver is stored from then on. Other new callers are not.
        """
        if caller.anonymous:
            return None
        gate, claimed = self._gate, identify(request, caller)
        hooked = self._channels[claimed.channel].run_hook is not None
        allowed = await gate.authorize(caller, claimed.channel, hooked=hooked)
        key, claims = allowed.isolation_key or "", allowed.verified_claims
        voter = Voter(identity=caller.identity, key=key, claims=claims, caller=caller)
        others = [await self._is_vote(voter, answer) for answer in claimed.approvals]
        if not any(others):
            return None
        if not all(others):
            await self._refuse_mixed(voter, claimed.approvals)
        if claimed.input or claimed.client_outputs or claimed.session is not None or claimed.previous_run_id:
            raise InvalidRequestError(_ALONE, param="input")
        alone = claimed.replace(approvals=())
        admitted = await gate.admit(alone, caller, alone, allowed)
        return HttpVote(admitted=admitted, answers=claimed.approvals, claims=allowed.verified_claims)

    async def _is_vote(self, voter: Voter, answer: ApprovalAnswer) -> bool:
        """Return True if an answer is a valid vote on another person's question."""
        question, _ = await self._decisions.look(voter, answer.approval_id)
        return question is not None and await self._is_asked(voter, question)

    async def list_waiting(self, voter: Voter, after: str | None, limit: int) -> WaitingPage:
        """Return a person's own questions, and those they may answer, found by accounts and claims."""
        store, now = self._store, self._clock.now()
        accounts = await store.identities.of_owner(voter.key) if voter.key else ()
        names = [name for one in (voter.identity, *accounts) for name in self._keys.list_names(one)]
        approvers = [*map(person_key, names), *claim_keys(voter.claims)]
        found = await store.approvals.waiting_for(
            approvers, owner=voter.key or None, after=after, limit=limit, max_bytes=MAX_PAGE_BYTES
        )
        is_followed = len(found) == limit
        if found and not is_followed:
            # A page of large questions has fewer of them.
            seen = found[-1].approval_id
            is_followed = bool(
                await store.approvals.waiting_for(
                    approvers, owner=voter.key or None, after=seen, limit=1, max_bytes=MAX_PAGE_BYTES
                )
            )
        views: list[QuestionView] = []
        for question in found:
            own = question.owner == voter.key
            if not question.is_expired(now) and (own or await self._is_asked(voter, question)):
                views.append(build_view(question, voter.identity).replace(own=own))
        return WaitingPage(questions=tuple(views), after=found[-1].approval_id if is_followed else None)

    async def _is_asked(self, voter: Voter, question: PendingApproval) -> bool:
        decisions, terms = self._decisions, question.terms
        if terms is None or await owns_question(question, voter, decisions.voters):
            return False
        return await decisions.find_seat(question, terms, voter) is not None

    async def _refuse_mixed(self, voter: Voter, answers: Sequence[ApprovalAnswer]) -> None:
        for answer in answers:
            question, _ = await self._decisions.look(voter, answer.approval_id)
            if question is None:
                raise unknown()
        raise InvalidRequestError(_MIXED, param="approvals")

    async def record(self, vote: HttpVote) -> HostedRunResult[Any]:
        """Record votes independently, and return a run that reports their outcome. Raise if none was recorded."""
        admitted = vote.admitted
        voter = Voter(identity=admitted.identity, key=admitted.owner, claims=vote.claims, caller=admitted.caller)
        made = [(answer, await self._decide(voter, answer)) for answer in vote.answers]
        if all(find_error(decision) is not None for _, decision in made):
            raise find_error(made[0][1]) or unknown()
        run = self._run(vote.admitted, made)
        if run.stored:
            async with self._store.transaction() as transaction:
                transaction.save_run(run, new=vote.admitted.request.idempotency_key is not None)
        return HostedRunResult(result=run.result, run=run)

    async def _decide(self, voter: Voter, answer: ApprovalAnswer) -> Decision:
        decision = await self._decisions.decide(voter, answer, None, self._gate.new_run_id, self._resume)
        question = decision.approval
        if decision.outcome != "late" or question is None or question.status != get_status(answer):
            return decision
        # A client that has lost the response sends the request again, and its vote has decided.
        votes = await self._store.approvals.votes(question.owner, question.approval_id)
        repeated = any(given.voter == voter.key and given.approved == answer.approved for given in votes)
        return decision.replace(outcome="recorded") if repeated else decision

    def _run(self, admitted: AdmittedRequest, made: Sequence[tuple[ApprovalAnswer, Decision]]) -> RunRecord:
        request = admitted.request
        text = "\n".join(self._describe(answer, decision) for answer, decision in made)
        hosting = {"channel": request.channel}
        message = stamp(Message("assistant", [Content.from_text(text)]), hosting, self._ids.new("msg"))
        recorded = [
            {
                "id": answer.approval_id,
                "outcome": decision.outcome,
                "status": None if decision.approval is None else decision.approval.status,
            }
            for answer, decision in made
        ]
        return RunRecord(
            run_id=admitted.run_id,
            owner=admitted.owner,
            channel=request.channel,
            status="completed",
            created_at=admitted.admitted_at,
            finished_at=self._clock.now(),
            background=request.background,
            stored=request.store,
            stream=request.stream,
            result=AgentResponse(messages=[message]),
            metadata=request.metadata,
            details={**request.details, DECISIONS: recorded},
            request_hash=request.request_hash,
        )

    def _describe(self, answer: ApprovalAnswer, decision: Decision) -> str:
        tool = _tool(decision.approval)
        if (error := find_error(decision)) is not None:
            return f"{tool}: {error.message}"
        if decision.outcome == "needs_more":
            return f"{tool}: {NEEDS_MORE}"
        return self._texts.say(f"approval.{get_status(answer)}", None, tool=tool)


def _tool(question: PendingApproval | None) -> str:
    return "" if question is None else question.tool
