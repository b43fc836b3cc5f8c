"""Updates the messages that show decided approvals, and expires approvals."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from frontdesk.access.gate import Authorizer
from frontdesk.approvals.answers import Expire
from frontdesk.approvals.names import PersonNames
from frontdesk.approvals.records import audit_line, has_claim
from frontdesk.approvals.requester import ApprovalRequester
from frontdesk.chat.aliases import Aliases
from frontdesk.chat.i18n.en import ENGLISH
from frontdesk.clock import Clock
from frontdesk.delivery.outbox import OutboxSchedule
from frontdesk.delivery.plan import Planner
from frontdesk.delivery.push import encode_content
from frontdesk.delivery.reply_rows import ReplyRows
from frontdesk.errors import StoreError, StoreUnavailableError, UnreadableRecordError
from frontdesk.identifiers import digest
from frontdesk.interfaces.access import Allowed
from frontdesk.interfaces.channel import Channel
from frontdesk.interfaces.chat import ShowsQuestions
from frontdesk.interfaces.context import ConfirmsAnswers
from frontdesk.interfaces.runner import DurableTaskRunner
from frontdesk.interfaces.store import HostStateStore
from frontdesk.loggers import deliveries as log
from frontdesk.models.approval import ApprovalPlace, PendingApproval, name_people, person_key
from frontdesk.models.delivery import Delivery, InboxItem
from frontdesk.models.identity import Caller, ChannelIdentity

TASK = "expire"
"""The name of the task that decides questions whose time is over."""
ESCALATE = "escalate"
"""The name of the task that asks more people."""
_MAX_CONCURRENT = 10
_PAGE_ROWS = 100


class ApprovalMessageUpdater:
    """Creates the deliveries that update the messages of a decided question."""

    def __init__(
        self,
        store: HostStateStore,
        channels: Mapping[str, Channel],
        clock: Clock,
        schedule: OutboxSchedule,
        planner: Planner,
        aliases: Aliases,
        authorizer: Authorizer,
        names: PersonNames,
    ) -> None:
        self._authorizer = authorizer
        self._names = names
        self._replies = ReplyRows(planner, aliases)
        self._aliases = aliases
        self._store = store
        self._channels = channels
        self._clock = clock
        self._schedule = schedule

    async def rows(self, question: PendingApproval, by: Caller | None) -> Sequence[Delivery]:
        """Return one delivery for each message of a question on a channel that supports updates.

        A message has the same delivery each time, so that it is updated once.
        """
        places = await self._store.approvals.places(question.owner, question.approval_id)
        if not places:
            return []
        question = await self._names.with_decider(question, by)
        return [row for place in places if (row := self._row(question, place, by)) is not None]

    async def rows_at(self, place: ApprovalPlace) -> Sequence[Delivery]:
        """Return a delivery for a newly known message, if its question is already decided."""
        try:
            question = await self._store.approvals.get(place.owner, place.approval_id)
        except UnreadableRecordError:
            # Only a newer version knows what was asked; that it was shown is recorded all the same.
            return ()
        if question is None:
            return ()
        if question.status == "pending":
            return () if await self._may_answer(question, place.identity) else self._close(question, [place])
        by = await self._names.decider(question)
        row = self._row(await self._names.with_decider(question, by), place, by)
        return () if row is None else (row,)

    async def rows_of_leavers(self, people: Sequence[ChannelIdentity]) -> Sequence[Delivery]:
        rows: list[Delivery] = []
        for person in people:
            after = None
            while page := await self._list_waiting(person, after):
                for question in page:
                    if not await self._stays(question, person):
                        places = await self._store.approvals.places(question.owner, question.approval_id)
                        rows += self._close(question, [place for place in places if place.identity.key == person.key])
                after = page[-1].approval_id
        return rows

    async def _list_waiting(self, person: ChannelIdentity, after: str | None) -> Sequence[PendingApproval]:
        try:
            return await self._store.approvals.waiting_for([person_key(person)], after=after, limit=_PAGE_ROWS)
        except UnreadableRecordError:
            # Only a newer version knows what was asked; who presses a button is told that it is not theirs.
            return ()

    async def _stays(self, question: PendingApproval, person: ChannelIdentity) -> bool:
        """Return True if a person may still answer a question without a link."""
        if not _is_named(question, person):
            return False
        # An anonymous caller has no link.
        unlinked = Caller(identity=person, anonymous=True)
        return isinstance(await self._authorizer.decide(unlinked, person.channel), Allowed)

    async def _may_answer(self, question: PendingApproval, person: ChannelIdentity) -> bool:
        """Return True if a person who is shown a question because of a claim still has the claim."""
        terms = question.terms
        holders = () if terms is None else (*terms.asked, *terms.escalate_asked)
        if terms is None or all(holder.key != person.key for holder in holders):
            return True
        link = await self._store.identities.link(person)
        return link is not None and has_claim((*terms.claims, *terms.escalate_claims), link.claims)

    def _close(self, question: PendingApproval, places: Sequence[ApprovalPlace]) -> list[Delivery]:
        """Return deliveries that close a question for people who are no longer approvers."""
        shown = question.replace(status="cancelled", reason=ENGLISH["reason.not_asked"])
        return [row for place in places if (row := self._row(shown, place, None)) is not None]

    def _row(self, question: PendingApproval, place: ApprovalPlace, by: Caller | None) -> Delivery | None:
        channel = self._channels.get(place.channel)
        if channel is None or not isinstance(channel, ShowsQuestions):
            return None
        # Where a group must not see the arguments, the direct chats of the approvers have shown them.
        shown = _with_arguments(question) if place.conversation_id is None else question
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
            payload=encode_content(channel, channel.settled_question(shown, None if by is None else by.identity)),
            action="settle",
            trace=question.trace,
            replaces=place.handle,
            created_at=now,
            queued_at=now,
            due_at=now,
        )

    async def confirmations(self, event: InboxItem, question: PendingApproval) -> Sequence[Delivery]:
        """Return the deliveries with the channel's confirmation of a decision made by an event."""
        channel = self._channels.get(event.channel)
        if not isinstance(channel, ConfirmsAnswers):
            return ()
        question = await self._names.with_decider(question, event.caller)
        replies = channel.confirm_answer(await self._aliases.outward(event), question)
        return await self._replies.confirmation_rows(event, question.approval_id, replies)

    async def wake(self, rows: Sequence[Delivery]) -> None:
        await self._schedule.wake(rows)

    async def settle_rest(self, question: PendingApproval, by: Caller | None, rows: Sequence[Delivery]) -> None:
        known = {row.delivery_id for row in rows}
        try:
            late = [row for row in await self.rows(question, by) if row.delivery_id not in known]
            if late:
                async with self._store.transaction() as transaction:
                    for row in late:
                        transaction.add_delivery(row)
                await self._schedule.wake(late)
        except StoreUnavailableError:
            # The decision is written, and counts all the same.
            log.warning("failed to look up other messages of an approval: approval_id=%s", question.approval_id)


class ApprovalExpiry:
    """Decides expired questions and asks more people about escalated ones, as tasks of the runner."""

    def __init__(
        self, store: HostStateStore, expire: Expire, clock: Clock, asking: ApprovalRequester, schedule: OutboxSchedule
    ) -> None:
        self._store = store
        self._decide = expire
        self._clock = clock
        self._asking = asking
        self._schedule = schedule

    def register(self, runner: DurableTaskRunner) -> None:
        """Register the task handlers. Must be called once, before the runner starts."""
        runner.register(TASK, self._expire, waiting=self._list_expired, most=_MAX_CONCURRENT)
        runner.register(ESCALATE, self._escalate, waiting=self._to_escalate, most=_MAX_CONCURRENT)

    async def _list_expired(self) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        for question in await self._store.approvals.expired(self._clock.now(), limit=_PAGE_ROWS):
            yield _task(TASK, question)

    async def _expire(self, payload: Mapping[str, Any]) -> None:
        question = await self._store.approvals.get(payload["owner"], payload["approval_id"])
        if question is not None and question.is_expired(self._clock.now()):
            await self._decide(question)

    async def _to_escalate(self) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        for question in await self._store.approvals.to_escalate(self._clock.now(), limit=_PAGE_ROWS):
            yield _task(ESCALATE, question)

    async def _escalate(self, payload: Mapping[str, Any]) -> None:
        """Ask more people, in the transaction that records the escalation."""
        question = await self._store.approvals.get(payload["owner"], payload["approval_id"])
        if question is None or question.terms is None or not question.is_to_escalate(self._clock.now()):
            return
        people = (*question.terms.escalate_to, *question.terms.escalate_asked)
        rows = await self._asking.rows_for(question.replace(escalated=True), people)
        try:
            async with self._store.transaction() as transaction:
                transaction.escalate_approval(question.owner, question.approval_id)
                transaction.add_audit(audit_line(question, "escalated", self._clock.now(), reason=name_people(people)))
                for row in rows:
                    transaction.add_delivery(row)
        except StoreError:
            # Another host has asked them, or it was decided meanwhile.
            return
        await self._schedule.wake(rows)


def _with_arguments(question: PendingApproval) -> PendingApproval:
    terms = question.terms
    return question if terms is None else question.replace(rule=terms.replace(shows_arguments=True))


def _is_named(question: PendingApproval, person: ChannelIdentity) -> bool:
    terms = question.terms
    return terms is not None and any(named.key == person.key for named in (*terms.approvers, *terms.escalate_to))


def _task(name: str, question: PendingApproval) -> tuple[str, Mapping[str, Any]]:
    about = {"owner": question.owner, "approval_id": question.approval_id}
    return f"{name}:{len(question.owner)}:{question.owner}:{question.approval_id}", about
