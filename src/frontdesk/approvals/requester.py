"""Requests approvals from other people: finds the approvers and creates the deliveries."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from frontdesk.access.gate import Gate
from frontdesk.approvals.answers import ApprovalAnswers
from frontdesk.approvals.names import PersonNames
from frontdesk.approvals.policy import RuleBinder
from frontdesk.approvals.records import Voter, has_claim, is_requester
from frontdesk.approvals.voters import VoterLookup
from frontdesk.chat.commands import locale_of_person
from frontdesk.concurrency.offload import run_rendering
from frontdesk.delivery.plan import Planner
from frontdesk.display.person_names import build_label, build_unverified_name, list_awaited
from frontdesk.errors import ForbiddenError, LinkRequiredError, NobodyToAskError
from frontdesk.framework.approval_ids import note_waiting
from frontdesk.identifiers import digest
from frontdesk.interfaces.channel import Channel
from frontdesk.interfaces.chat import AsksApprovers
from frontdesk.interfaces.store import HostStateStore
from frontdesk.loggers import runs as log
from frontdesk.models.approval import ApproverClaim, ApproverTerms, PendingApproval, QuestionView, owner_key
from frontdesk.models.delivery import Delivery
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.sessions.turn import Turn

MayDeliver = Callable[[str, str], Awaitable[bool]]
"""Tells whether the link policy lets messages of one channel go to another."""


class ApprovalRequester:
    """Binds new questions to their approvers and asks them."""

    def __init__(
        self,
        *,
        store: HostStateStore,
        channels: Mapping[str, Channel],
        gate: Gate,
        planner: Planner,
        answers: ApprovalAnswers,
        binder: RuleBinder,
        voters: VoterLookup,
        names: PersonNames,
        may_deliver: MayDeliver,
    ) -> None:
        self._store, self._gate, self._planner, self._answers = store, gate, planner, answers
        self._binder, self._voters, self._may_deliver = binder, voters, may_deliver
        self._names = names
        self._asking = {name for name, channel in channels.items() if isinstance(channel, AsksApprovers)}

    async def bind(
        self, turn: Turn, asked: Sequence[PendingApproval], result: Any
    ) -> tuple[Sequence[PendingApproval], Sequence[PendingApproval]]:
        """Return the new questions of a result, and all questions that others than the requester decide.

        The requests of the result receive the names of their approvers.
        """
        ids = turn.approval_ids or {}
        fresh = self._answers.complete(await self._answers.new(turn.record, asked, ids))
        new = [await self._bind(question) for question in fresh]
        known = {question.approval_id: question for question in new}
        shared: list[PendingApproval] = []
        for question in asked:
            name = ids.get(question.target_id, question.approval_id)
            stored = known.get(name) or await self._store.approvals.get(question.owner, name)
            if stored is not None and stored.terms is not None:
                shared.append(stored)
        note_waiting(result, {question.approval_id: list_awaited(question.terms) for question in shared})
        return new, shared

    async def _bind(self, question: PendingApproval) -> PendingApproval:
        if question.requester is None:
            return question
        group = question.resume is not None and question.resume.group
        requester = question.requester
        terms = await self._binder.terms(question, requester, group=group)
        question = question.replace(requester_name=await self._names.find(requester.identity, requester.claims))
        if terms is None:
            return question
        # Until the decision the requester may be unlinked, and come back with another account.
        person_keys = await self._voters.find_person_keys(requester) | {owner_key(question.owner)}
        question = question.replace(requester_keys=tuple(sorted(person_keys)))
        return question.replace(rule=await self._reachable(question, terms))

    async def _reachable(self, question: PendingApproval, terms: ApproverTerms) -> ApproverTerms:
        """Return terms with the people who can be asked. With too few of them, nothing could be decided."""
        approvers = await self._askable(question, terms, terms.approvers)
        escalate_to = await self._askable(question, terms, terms.escalate_to)
        asked = await self._holders(question, terms, terms.claims, approvers)
        escalate_asked = await self._holders(question, terms, terms.escalate_claims, (*approvers, *escalate_to))
        everyone = (*approvers, *asked, *escalate_to, *escalate_asked)
        reached = {await self._voters.find_key(person) or person.key for person in everyone}
        if not everyone and not terms.asks_requester:
            log.error("no approver can be asked: tool=%s", question.tool)
            raise NobodyToAskError
        if len(reached) + terms.asks_requester < terms.votes and not (terms.claims or terms.escalate_claims):
            log.error(
                "too few approvers can be asked: tool=%s required_votes=%d approvers=%d",
                question.tool,
                terms.votes,
                len(reached),
            )
            raise NobodyToAskError
        return terms.replace(
            approvers=tuple(approvers),
            escalate_to=tuple(escalate_to),
            asked=tuple(asked),
            escalate_asked=tuple(escalate_asked),
        )

    async def _holders(
        self,
        question: PendingApproval,
        terms: ApproverTerms,
        claims: Sequence[ApproverClaim],
        known: Sequence[ChannelIdentity],
    ) -> list[ChannelIdentity]:
        """Return people who can be asked because a link has verified their claim, except known ones."""
        most, keys = self._binder.max_holders, [key for needed in claims for key in needed.keys]
        if not keys or not most:
            return []
        channels, named = sorted(self._asking), {person.key for person in known}
        links = await self._store.identities.holders(keys, channels=channels, limit=most)
        # Rows of an earlier version may be of claims that the link has no more.
        people = [link.identity for link in links if has_claim(claims, link.claims)]
        return await self._askable(question, terms, [person for person in people if person.key not in named])

    async def _askable(
        self, question: PendingApproval, terms: ApproverTerms, people: Sequence[ChannelIdentity]
    ) -> list[ChannelIdentity]:
        """Return the people who may vote, can be asked, and are allowed on the channel where they are asked."""
        requester, resume = question.requester, question.resume
        source = "" if requester is None else requester.identity.channel
        if requester is not None and resume is not None:
            source = self._planner.seen_on(requester.identity, resume.channel).channel
        askable: list[ChannelIdentity] = []
        for listed in people:
            if listed.channel not in self._asking:
                log.warning("approver cannot be asked: identity=%s channel=%s", listed.native_id, listed.channel)
                continue
            person = await self._planner.with_attributes(listed)
            voter = await self._voters.recognise(Voter(identity=person, key=await self._voters.find_key(person) or ""))
            if terms.exclude_requester and await is_requester(question, voter, self._voters):
                continue
            if person.channel != source and not await self._may_deliver(source, person.channel):
                log.warning(
                    "approval request refused by the link policy: channel=%s approver_channel=%s",
                    source,
                    person.channel,
                )
                continue
            try:
                await self._gate.authorize(Caller(identity=person), person.channel)
            except (ForbiddenError, LinkRequiredError) as error:
                log.warning(
                    "approver denied by the allowlist: identity=%s channel=%s: %s",
                    person.native_id,
                    person.channel,
                    error.code,
                )
                continue
            askable.append(person)
        return askable

    async def rows(self, questions: Sequence[PendingApproval]) -> list[Delivery]:
        """Return the deliveries that ask the approvers of new questions."""
        return [
            row
            for question in questions
            if question.terms is not None
            for row in await self.rows_for(question, (*question.terms.approvers, *question.terms.asked))
        ]

    async def rows_for(self, question: PendingApproval, people: Sequence[ChannelIdentity]) -> list[Delivery]:
        """Return the deliveries that ask some people. Repeated calls return the same deliveries for a person."""
        plan = self._planner.question
        rows: list[Delivery] = []
        for person in people:
            view = build_view(question, person)
            rows += await run_rendering(question.request, plan, view, person, _key(question, person))
        return rows


def build_view(question: PendingApproval, person: ChannelIdentity) -> QuestionView:
    requester = question.requester
    shown = question.requester_name or (None if requester is None else build_unverified_name(requester.identity))
    return QuestionView(
        approval=question,
        asker="" if shown is None else build_label(shown),
        requester=shown,
        channel="" if requester is None else requester.identity.channel,
        group=question.resume is not None and question.resume.group,
        locale=locale_of_person(person),
    )


def _key(question: PendingApproval, person: ChannelIdentity) -> str:
    names = ("ask", question.owner, question.approval_id, person.channel, person.native_id)
    return digest("".join(f"{len(name)}:{name}" for name in names))[:32]
