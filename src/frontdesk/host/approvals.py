"""Settles the messages in which decided questions are shown, and cancels questions whose time is over."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from frontdesk.abc.channel import Channel
from frontdesk.abc.events import ConfirmsAnswers
from frontdesk.abc.push import ShowsQuestions
from frontdesk.abc.runner import DurableTaskRunner
from frontdesk.abc.store import HostStateStore
from frontdesk.approvals.decisions import Decisions
from frontdesk.clock import Clock
from frontdesk.data.approval import ApprovalPlace, PendingApproval
from frontdesk.data.delivery import Delivery, InboxItem
from frontdesk.data.identity import Caller
from frontdesk.delivery.outbox import Outbox
from frontdesk.delivery.plan import Planner
from frontdesk.delivery.push import encode_content
from frontdesk.host.event_replies import EventReplies
from frontdesk.ids import Ids
from frontdesk.kit.chat.aliases import Aliases

TASK = "expire"
"""The name of the task that cancels questions whose time is over."""
_MOST_AT_ONCE = 10
_PAGE = 100


class PlaceSettler:
    """Makes the deliveries that settle the messages of a decided question."""

    def __init__(
        self,
        store: HostStateStore,
        channels: Mapping[str, Channel],
        clock: Clock,
        ids: Ids,
        outbox: Outbox,
        planner: Planner,
        aliases: Aliases,
    ) -> None:
        self._replies = EventReplies(store, planner, outbox, aliases)
        self._aliases = aliases
        self._store = store
        self._channels = channels
        self._clock = clock
        self._ids = ids
        self._outbox = outbox

    async def rows(self, question: PendingApproval, by: Caller | None) -> Sequence[Delivery]:
        """Return a delivery for each place where a question is shown, on a channel that can settle it."""
        places = await self._store.approvals.places(question.owner, question.approval_id)
        return [row for place in places if (row := self._row(question, place, by)) is not None]

    def _row(self, question: PendingApproval, place: ApprovalPlace, by: Caller | None) -> Delivery | None:
        channel = self._channels.get(place.channel)
        if channel is None or not isinstance(channel, ShowsQuestions):
            return None
        now = self._clock.now()
        return Delivery(
            delivery_id=self._ids.new("dlv"),
            answer_id=self._ids.new("ans"),
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


class ApprovalExpiry:
    """Cancels questions whose time is over, as a task of the runner."""

    def __init__(self, store: HostStateStore, decisions: Decisions, clock: Clock) -> None:
        self._store = store
        self._decisions = decisions
        self._clock = clock

    def register(self, runner: DurableTaskRunner) -> None:
        """Register with the runner that calls this; once, before it starts."""
        runner.register(TASK, self._expire, waiting=self._expired, most=_MOST_AT_ONCE)

    async def _expired(self) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        for question in await self._store.approvals.expired(self._clock.now(), limit=_PAGE):
            name = {"owner": question.owner, "approval_id": question.approval_id}
            yield f"{TASK}:{len(question.owner)}:{question.owner}:{question.approval_id}", name

    async def _expire(self, payload: Mapping[str, Any]) -> None:
        question = await self._store.approvals.get(payload["owner"], payload["approval_id"])
        if question is not None and question.is_expired(self._clock.now()):
            await self._decisions.expire(question)
