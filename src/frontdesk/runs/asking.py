"""Asks people about the tool calls of others: finds who decides, and makes the deliveries of the question."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from frontdesk.abc.channel import Channel
from frontdesk.abc.push import AsksApprovers
from frontdesk.abc.store import HostStateStore
from frontdesk.access.gate import Gate
from frontdesk.approvals.answers import ApprovalAnswers
from frontdesk.approvals.binding import RuleBinder, name_of_person
from frontdesk.approvals.voting import FindKey, Voter, has_claim, is_requester
from frontdesk.data.approval import ApproverClaim, ApproverTerms, PendingApproval, QuestionView
from frontdesk.data.delivery import Delivery
from frontdesk.data.identity import Caller, ChannelIdentity
from frontdesk.delivery.plan import Planner
from frontdesk.errors import ForbiddenError, LinkRequiredError, NobodyToAskError
from frontdesk.kit.chat.commands import locale_of_person
from frontdesk.kit.framework.approval_ids import note_waiting
from frontdesk.kit.names import digest
from frontdesk.loggers import runs as log
from frontdesk.sessions.turn import Turn

MayDeliver = Callable[[str, str], Awaitable[bool]]
"""Tells whether the link policy lets messages of one channel go to another."""


class Asking:
    """Binds new questions to the people who decide them, and asks those."""

    def __init__(
        self,
        *,
        store: HostStateStore,
        channels: Mapping[str, Channel],
        gate: Gate,
        planner: Planner,
        answers: ApprovalAnswers,
        binder: RuleBinder,
        find_key: FindKey,
        may_deliver: MayDeliver,
    ) -> None:
        self._store, self._gate, self._planner, self._answers = store, gate, planner, answers
        self._binder, self._find_key, self._may_deliver = binder, find_key, may_deliver
        self._asking = {name for name, channel in channels.items() if isinstance(channel, AsksApprovers)}

    async def bind(
        self, turn: Turn, asked: Sequence[PendingApproval], result: Any
    ) -> tuple[Sequence[PendingApproval], Sequence[PendingApproval]]:
        """Return the questions of a result that are new, and all of them that others than the requester decide.

        The requests of the result get the names of those whom they wait for.
        """
        ids = turn.approval_ids or {}
        fresh = self._answers.complete(await self._answers.new(turn.record, asked, ids))
        new = [await self._bound(question) for question in fresh]
        known = {question.approval_id: question for question in new}
        shared: list[PendingApproval] = []
        for question in asked:
            name = ids.get(question.target_id, question.approval_id)
            stored = known.get(name) or await self._store.approvals.get(question.owner, name)
            if stored is not None and stored.terms is not None:
                shared.append(stored)
        note_waiting(result, {question.approval_id: question.terms.names for question in shared if question.terms})
        return new, shared

    async def _bound(self, question: PendingApproval) -> PendingApproval:
        if question.requester is None:
            return question
        group = question.resume is not None and question.resume.group
        terms = await self._binder.terms(question, question.requester, group=group)
        return question if terms is None else question.replace(rule=await self._reachable(question, terms))

    async def _reachable(self, question: PendingApproval, terms: ApproverTerms) -> ApproverTerms:
        """Return terms with the people who can be asked; without enough of them nothing could be decided."""
        approvers = await self._askable(question, terms, terms.approvers)
        escalate_to = await self._askable(question, terms, terms.escalate_to)
        asked = await self._holders(question, terms, terms.claims, approvers)
        escalate_asked = await self._holders(question, terms, terms.escalate_claims, (*approvers, *escalate_to))
        everyone = (*approvers, *asked, *escalate_to, *escalate_asked)
        reached = {await self._find_key(person) or person.key for person in everyone}
        if not everyone and not terms.asks_requester:
            log.error("nobody can be asked whether %s may run", question.tool)
            raise NobodyToAskError
        if len(reached) + terms.asks_requester < terms.votes and not (terms.claims or terms.escalate_claims):
            log.error("%s needs %d votes, and %d people can be asked", question.tool, terms.votes, len(reached))
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
        """Return people who can be asked because a link has proved that they have a claim, but for those known."""
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
        """Return those of some people who may vote, can be asked, and may come in where they are asked."""
        source = "" if question.requester is None else question.requester.identity.channel
        askable: list[ChannelIdentity] = []
        for listed in people:
            if listed.channel not in self._asking:
                log.warning("approver %s can't be asked on %s", listed.native_id, listed.channel)
                continue
            person = await self._planner.with_attributes(listed)
            voter = Voter(identity=person, key=await self._find_key(person) or "")
            if terms.exclude_requester and await is_requester(question, voter, self._find_key):
                continue
            if person.channel != source and not await self._may_deliver(source, person.channel):
                log.warning("a question of %s may not go to %s by the link policy", source, person.channel)
                continue
            try:
                await self._gate.authorize(Caller(identity=person), person.channel)
            except (ForbiddenError, LinkRequiredError) as error:
                log.warning("approver %s may not come in on %s: %s", person.native_id, person.channel, error.code)
                continue
            askable.append(person)
        return askable

    async def rows(self, questions: Sequence[PendingApproval]) -> list[Delivery]:
        """Return the deliveries that ask the approvers of new questions."""
        return [
            row
            for question in questions
            if question.terms is not None
            for row in self.rows_for(question, (*question.terms.approvers, *question.terms.asked))
        ]

    def rows_for(self, question: PendingApproval, people: Sequence[ChannelIdentity]) -> list[Delivery]:
        """Return the deliveries that ask some people; a person has the same ones each time."""
        plan = self._planner.question
        return [row for person in people for row in plan(view_of(question, person), person, _key(question, person))]


def view_of(question: PendingApproval, person: ChannelIdentity) -> QuestionView:
    """Return a question as a person is asked it."""
    requester = question.requester
    return QuestionView(
        approval=question,
        asker="" if requester is None else name_of_person(requester.identity),
        channel="" if requester is None else requester.identity.channel,
        group=question.resume is not None and question.resume.group,
        locale=locale_of_person(person),
    )


def _key(question: PendingApproval, person: ChannelIdentity) -> str:
    names = ("ask", question.owner, question.approval_id, person.channel, person.native_id)
    return digest("".join(f"{len(name)}:{name}" for name in names))[:32]
