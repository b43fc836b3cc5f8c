"""Takes answers to the questions of other people that come over a wire, where no run of the caller's goes on."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent_framework import AgentResponse, Content, Message

from frontdesk.access.gate import identify
from frontdesk.approvals.answers import refused, unknown
from frontdesk.approvals.decisions import NEEDS_MORE
from frontdesk.approvals.records import status_of
from frontdesk.approvals.voting import Voter, is_requester, seat_of
from frontdesk.data.approval import ApprovalAnswer, Decision, PendingApproval, WaitingPage
from frontdesk.data.approver_keys import claim_keys, person_key
from frontdesk.data.identity import Caller
from frontdesk.data.noun import Value
from frontdesk.data.request import AdmittedRequest, ChannelRequest
from frontdesk.data.result import HostedRunResult
from frontdesk.data.run import DECISIONS, RunRecord
from frontdesk.errors import InvalidRequestError
from frontdesk.host.parts import Parts
from frontdesk.kit.framework.messages import stamped
from frontdesk.runs.asking import view_of

_ALONE = "An answer to somebody else's question is sent by itself: it goes on with no conversation of yours."
_MIXED = "Answers to your own questions and to those of others are sent in requests of their own."


class WireVote(Value, frozen=True, kw_only=True):
    """A request whose answers are votes about questions of others."""

    admitted: AdmittedRequest
    """The request, without its answers."""
    answers: tuple[ApprovalAnswer, ...]
    claims: Mapping[str, Any]


class WireVotes:
    """Finds requests that answer questions of others, and records their votes."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def admit(self, request: ChannelRequest, caller: Caller) -> WireVote | None:
        """Admit a request that answers questions of others; `None` for any other, of which nothing is told.

        An approver who was never here before is known from then on; nobody else is.
        """
        if caller.anonymous:
            return None
        gate, claimed = self._parts.gate, identify(request, caller)
        hooked = self._parts.channels[claimed.channel].run_hook is not None
        allowed = await gate.authorize(caller, claimed.channel, hooked=hooked)
        voter = Voter(identity=caller.identity, key=allowed.isolation_key or "", claims=allowed.verified_claims)
        others = [await self._is_vote(voter, answer) for answer in claimed.approvals]
        if not any(others):
            return None
        if not all(others):
            await self._refuse_mixed(voter, claimed.approvals)
        if claimed.input or claimed.client_outputs or claimed.session is not None or claimed.previous_run_id:
            raise InvalidRequestError(_ALONE, param="input")
        alone = claimed.replace(approvals=())
        admitted = await gate.admit(alone, caller, alone, allowed)
        return WireVote(admitted=admitted, answers=claimed.approvals, claims=allowed.verified_claims)

    async def _is_vote(self, voter: Voter, answer: ApprovalAnswer) -> bool:
        """Tell whether an answer of a person counts for a question of somebody else."""
        question, _ = await self._parts.decisions.look(voter, answer.approval_id)
        return question is not None and await self._is_asked(voter, question)

    async def waiting(self, voter: Voter, after: str | None, limit: int) -> WaitingPage:
        """Return questions of others that a person may answer, which are found by their accounts and claims."""
        store, now = self._parts.store, self._parts.clock.now()
        accounts = await store.identities.of_owner(voter.key) if voter.key else ()
        approvers = [*map(person_key, (voter.identity, *accounts)), *claim_keys(voter.claims)]
        found = await store.approvals.waiting_for(approvers, after=after, limit=limit)
        asked = [
            question for question in found if not question.is_expired(now) and await self._is_asked(voter, question)
        ]
        views = tuple(view_of(question, voter.identity) for question in asked)
        return WaitingPage(questions=views, after=found[-1].approval_id if len(found) == limit else None)

    async def _is_asked(self, voter: Voter, question: PendingApproval) -> bool:
        find_key, terms = self._parts.decisions.find_key, question.terms
        if terms is None or await is_requester(question, voter, find_key):
            return False
        return await seat_of(question, terms, voter, find_key) is not None

    async def _refuse_mixed(self, voter: Voter, answers: Sequence[ApprovalAnswer]) -> None:
        for answer in answers:
            question, _ = await self._parts.decisions.look(voter, answer.approval_id)
            if question is None:
                raise unknown()
        raise InvalidRequestError(_MIXED, param="approvals")

    async def record(self, vote: WireVote) -> HostedRunResult[Any]:
        """Record votes, each at once, and return a run that says what became of them; an error if none was recorded."""
        voter = Voter(identity=vote.admitted.identity, key=vote.admitted.owner, claims=vote.claims)
        made = [(answer, await self._decide(voter, answer)) for answer in vote.answers]
        if all(refused(decision) is not None for _, decision in made):
            raise refused(made[0][1]) or unknown()
        run = self._run(vote.admitted, made)
        if run.stored:
            async with self._parts.store.transaction() as transaction:
                transaction.save_run(run, new=vote.admitted.request.idempotency_key is not None)
        return HostedRunResult(result=run.result, run=run)

    async def _decide(self, voter: Voter, answer: ApprovalAnswer) -> Decision:
        parts = self._parts
        wake = parts.events.intake.wake
        decision = await parts.decisions.decide(voter, answer, None, parts.gate.new_run_id, wake)
        question = decision.approval
        if decision.outcome != "late" or question is None or question.status != status_of(answer):
            return decision
        # A client that has lost the response sends the request again, and its vote has decided.
        votes = await parts.store.approvals.votes(question.owner, question.approval_id)
        repeated = any(given.voter == voter.key and given.approved == answer.approved for given in votes)
        return decision.replace(outcome="recorded") if repeated else decision

    def _run(self, admitted: AdmittedRequest, made: Sequence[tuple[ApprovalAnswer, Decision]]) -> RunRecord:
        request, parts = admitted.request, self._parts
        text = "\n".join(self._said(answer, decision) for answer, decision in made)
        hosting = {"channel": request.channel}
        message = stamped(Message("assistant", [Content.from_text(text)]), hosting, parts.ids.new("msg"))
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
            finished_at=parts.clock.now(),
            background=request.background,
            stored=request.store,
            stream=request.stream,
            result=AgentResponse(messages=[message]),
            metadata=request.metadata,
            details={**request.details, DECISIONS: recorded},
            request_hash=request.request_hash,
        )

    def _said(self, answer: ApprovalAnswer, decision: Decision) -> str:
        tool = _tool(decision.approval)
        if (error := refused(decision)) is not None:
            return f"{tool}: {error.message}"
        if decision.outcome == "needs_more":
            return f"{tool}: {NEEDS_MORE}"
        return self._parts.texts.say(f"approval.{status_of(answer)}", None, tool=tool)


def _tool(question: PendingApproval | None) -> str:
    return "" if question is None else question.tool
