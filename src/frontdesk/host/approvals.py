"""Settles the messages in which decided questions are shown, and decides questions whose time is over."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from frontdesk.abc.allowlist import Allowed
from frontdesk.abc.channel import Channel
from frontdesk.abc.events import ConfirmsAnswers
from frontdesk.abc.push import ShowsQuestions
from frontdesk.abc.runner import DurableTaskRunner
from frontdesk.abc.store import HostStateStore
from frontdesk.access.gate import Gate
from frontdesk.approvals.answers import Expire
from frontdesk.approvals.records import caller_of, line_of
from frontdesk.approvals.voting import has_claim
from frontdesk.clock import Clock
from frontdesk.data.approval import ApprovalPlace, PendingApproval, named_people
from frontdesk.data.approver_keys import person_key
from frontdesk.data.delivery import Delivery, InboxItem
from frontdesk.data.identity import Caller, ChannelIdentity
from frontdesk.delivery.outbox import OutboxSender
from frontdesk.delivery.plan import Planner
from frontdesk.delivery.push import encode_content
from frontdesk.errors import StoreError, StoreUnavailableError, UnreadableRecordError
from frontdesk.host.events.replies import ReplyRows
from frontdesk.kit.chat.aliases import Aliases
from frontdesk.kit.chat.texts_en import ENGLISH
from frontdesk.kit.names import digest
from frontdesk.loggers import deliveries as log
from frontdesk.runs.asking import Asking

TASK = "expire"
"""The name of the task that decides questions whose time is over."""
ESCALATE = "escalate"
"""The name of the task that asks more people."""
_MOST_AT_ONCE = 10
_PAGE = 100


class PlaceSettler:
    """Makes the deliveries that settle the messages of a decided question."""

    def __init__(
        self,
        store: HostStateStore,
        channels: Mapping[str, Channel],
        clock: Clock,
        outbox: OutboxSender,
        planner: Planner,
        aliases: Aliases,
        gate: Gate,
    ) -> None:
        self._gate = gate
        self._replies = ReplyRows(planner, aliases)
        self._aliases = aliases
        self._store = store
        self._channels = channels
        self._clock = clock
        self._outbox = outbox

    async def rows(self, question: PendingApproval, by: Caller | None) -> Sequence[Delivery]:
        """Return a delivery for each place where a question is shown, on a channel that can settle it.

        A place has the same delivery each time, so that it is settled once.
        """
        places = await self._store.approvals.places(question.owner, question.approval_id)
        return [row for place in places if (row := self._row(question, place, by)) is not None]

    async def rows_at(self, place: ApprovalPlace) -> Sequence[Delivery]:
        """Return a delivery for a place that comes to be known, if its question was decided before that."""
        try:
            question = await self._store.approvals.get(place.owner, place.approval_id)
        except UnreadableRecordError:
            # Only a newer version knows what was asked; that it was shown is recorded all the same.
            return ()
        if question is None:
            return ()
        if question.status == "pending":
            return () if await self._may_answer(question, place.identity) else self._closed(question, [place])
        by = None if question.status == "cancelled" else await self._decider(question)
        row = self._row(question, place, by)
        return () if row is None else (row,)

    async def rows_of_leavers(self, people: Sequence[ChannelIdentity]) -> Sequence[Delivery]:
        """Return the deliveries for people who are asked and may not answer any more once they are unlinked."""
        rows: list[Delivery] = []
        for person in people:
            after = None
            while page := await self._waiting_for(person, after):
                for question in page:
                    if not await self._stays(question, person):
                        places = await self._store.approvals.places(question.owner, question.approval_id)
                        rows += self._closed(question, [place for place in places if place.identity.key == person.key])
                after = page[-1].approval_id
        return rows

    async def _waiting_for(self, person: ChannelIdentity, after: str | None) -> Sequence[PendingApproval]:
        try:
            return await self._store.approvals.waiting_for([person_key(person)], after=after, limit=_PAGE)
        except UnreadableRecordError:
            # Only a newer version knows what was asked; who presses a button is told that it is not theirs.
            return ()

    async def _stays(self, question: PendingApproval, person: ChannelIdentity) -> bool:
        """Tell whether a person still may answer a question without a link."""
        if not _is_named(question, person):
            return False
        # An anonymous caller has no link.
        unlinked = Caller(identity=person, anonymous=True)
        return isinstance(await self._gate.decide(unlinked, person.channel), Allowed)

    async def _may_answer(self, question: PendingApproval, person: ChannelIdentity) -> bool:
        """Tell whether a person who is shown a question as one who has a claim still has it."""
        terms = question.terms
        holders = () if terms is None else (*terms.asked, *terms.escalate_asked)
        if terms is None or all(holder.key != person.key for holder in holders):
            return True
        link = await self._store.identities.link(person)
        return link is not None and has_claim((*terms.claims, *terms.escalate_claims), link.claims)

    def _closed(self, question: PendingApproval, places: Sequence[ApprovalPlace]) -> list[Delivery]:
        """Return the deliveries that close a question for people who are not asked any more."""
        shown = question.replace(status="cancelled", reason=ENGLISH["reason.not_asked"])
        return [row for place in places if (row := self._row(shown, place, None)) is not None]

    async def _decider(self, question: PendingApproval) -> Caller | None:
        """Return who has decided a question: the requester, or the last of those who voted."""
        if question.terms is None:
            return question.requester
        votes = await self._store.approvals.votes(question.owner, question.approval_id)
        last = [vote for vote in votes if vote.approved == (question.status == "approved")]
        return caller_of(last[-1]) if last else None

    def _row(self, question: PendingApproval, place: ApprovalPlace, by: Caller | None) -> Delivery | None:
        channel = self._channels.get(place.channel)
        if channel is None or not isinstance(channel, ShowsQuestions):
            return None
        now, names = self._clock.now(), (place.owner, place.approval_id, place.channel, place.place, place.handle)
        key = digest("".join(f"{len(name)}:{name}" for name in ("settle", *names)))[:32]
        return Delivery(
            delivery_id=f"dlv_{key}",
            answer_id=f"ans_{key}",
            run_id=question.run_id,
            owner=question.owner,
            channel=place.channel,
            identity=place.identity,
            conversation_id=place.conversation_id,
            reference=place.reference,
            queue=place.queue,
            part=0,
            payload=encode_content(channel, channel.settled_question(question, None if by is None else by.identity)),
            action="settle",
            trace=question.trace,
            replaces=place.handle,
            created_at=now,
            queued_at=now,
            due_at=now,
        )

    async def confirmations(self, event: InboxItem, question: PendingApproval) -> Sequence[Delivery]:
        """Return the deliveries of what the channel of an event says about the question that it has decided."""
        channel = self._channels.get(event.channel)
        if not isinstance(channel, ConfirmsAnswers):
            return ()
        replies = channel.confirm_answer(await self._aliases.outward(event), question)
        return await self._replies.confirmation_rows(event, question.approval_id, replies)

    async def wake(self, rows: Sequence[Delivery]) -> None:
        """Send deliveries that were written."""
        await self._outbox.wake(rows)

    async def settle_rest(self, question: PendingApproval, by: Caller | None, rows: Sequence[Delivery]) -> None:
        """Settle the places that came to be known while a decision was written with the deliveries for the others."""
        known = {row.delivery_id for row in rows}
        try:
            late = [row for row in await self.rows(question, by) if row.delivery_id not in known]
            if late:
                async with self._store.transaction() as transaction:
                    for row in late:
                        transaction.add_delivery(row)
                await self._outbox.wake(late)
        except StoreUnavailableError:
            # The decision is written, and counts all the same.
            log.warning("it is not known whether question %s is shown elsewhere", question.approval_id)


class ApprovalExpiry:
    """Decides questions whose time is over, and asks more people about those that escalate, as tasks of the runner."""

    def __init__(
        self, store: HostStateStore, expire: Expire, clock: Clock, asking: Asking, outbox: OutboxSender
    ) -> None:
        self._store = store
        self._decide = expire
        self._clock = clock
        self._asking = asking
        self._outbox = outbox

    def register(self, runner: DurableTaskRunner) -> None:
        """Register with the runner that calls this; once, before it starts."""
        runner.register(TASK, self._expire, waiting=self._expired, most=_MOST_AT_ONCE)
        runner.register(ESCALATE, self._escalate, waiting=self._to_escalate, most=_MOST_AT_ONCE)

    async def _expired(self) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        for question in await self._store.approvals.expired(self._clock.now(), limit=_PAGE):
            yield _task(TASK, question)

    async def _expire(self, payload: Mapping[str, Any]) -> None:
        question = await self._store.approvals.get(payload["owner"], payload["approval_id"])
        if question is not None and question.is_expired(self._clock.now()):
            await self._decide(question)

    async def _to_escalate(self) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        for question in await self._store.approvals.to_escalate(self._clock.now(), limit=_PAGE):
            yield _task(ESCALATE, question)

    async def _escalate(self, payload: Mapping[str, Any]) -> None:
        """Ask more people, in the transaction that notes it."""
        question = await self._store.approvals.get(payload["owner"], payload["approval_id"])
        if question is None or question.terms is None or not question.is_to_escalate(self._clock.now()):
            return
        people = (*question.terms.escalate_to, *question.terms.escalate_asked)
        rows = self._asking.rows_for(question.replace(escalated=True), people)
        try:
            async with self._store.transaction() as transaction:
                transaction.escalate_approval(question.owner, question.approval_id)
                transaction.add_audit(line_of(question, "escalated", self._clock.now(), reason=named_people(people)))
                for row in rows:
                    transaction.add_delivery(row)
        except StoreError:
            # Another host has asked them, or it was decided meanwhile.
            return
        await self._outbox.wake(rows)


def _is_named(question: PendingApproval, person: ChannelIdentity) -> bool:
    terms = question.terms
    return terms is not None and any(named.key == person.key for named in (*terms.approvers, *terms.escalate_to))


def _task(name: str, question: PendingApproval) -> tuple[str, Mapping[str, Any]]:
    about = {"owner": question.owner, "approval_id": question.approval_id}
    return f"{name}:{len(question.owner)}:{question.owner}:{question.approval_id}", about
