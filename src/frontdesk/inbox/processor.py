"""Processes one event: authorizes, prepares and runs it, or rejects it, or records its cancellation."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from frontdesk.access.stored_requests import is_stored_request
from frontdesk.approvals.records import audit_line
from frontdesk.chat.commands import locale_of_person
from frontdesk.chat.i18n.texts import Texts
from frontdesk.clock import Clock
from frontdesk.concurrency.timeouts import until_available
from frontdesk.delivery.plan import Planner
from frontdesk.delivery.push import can_push
from frontdesk.errors import (
    EventBegunError,
    FrontdeskError,
    InternalError,
    LinkRequiredError,
    LostEventError,
    RequestError,
    StoreError,
    StoreUnavailableError,
    UnreadableRecordError,
)
from frontdesk.inbox.batching import merge
from frontdesk.inbox.claimed import ClaimedEvents, HeldEvent
from frontdesk.inbox.dependencies import EventDependencies, EventFinisher
from frontdesk.inbox.replies import EventReplies
from frontdesk.inbox.retry import is_given_up
from frontdesk.interfaces.channel import SettleAnswers
from frontdesk.interfaces.context import AnswersEvents, SettlesAnswers
from frontdesk.interfaces.store import HostStateStore, StateTransaction
from frontdesk.loggers import runs as log
from frontdesk.models.approval import PendingApproval, Resumption
from frontdesk.models.delivery import CANCELLED, Delivery, InboxItem
from frontdesk.models.request import ChannelRequest
from frontdesk.models.result import HostedRunResult
from frontdesk.models.run import INTERRUPTED, RunFailure, RunRecord


class Resumptions:
    """Records the runs of rejected decisions: the requester has lost access, or the tool no longer exists."""

    def __init__(self, store: HostStateStore, clock: Clock, planner: Planner, texts: Texts) -> None:
        self._store, self._clock, self._planner, self._texts = store, clock, planner, texts

    async def build_failure(
        self, item: InboxItem, error: RequestError
    ) -> tuple[Callable[[StateTransaction], None], Sequence[Delivery]]:
        """Return the write that fails the run of an event and consumes its decision, and the approvers' notices.

        The channel of the event notifies the requester.
        """
        resumed: Resumption = item.payload
        question = await self._store.approvals.get(resumed.owner, resumed.approval_id)
        run = RunRecord(
            run_id=item.run_id or "",
            owner=resumed.owner,
            channel=item.channel,
            status="failed",
            failure=RunFailure(code=error.code, message=error.message),
            created_at=item.received_at,
            finished_at=self._clock.now(),
            background=True,
            session_id=None if question is None else question.session_id,
            details=item.request.details,
            root_run_id=None if question is None else question.chain_id,
        )

        def note(transaction: StateTransaction) -> None:
            transaction.save_run(run)
            if question is not None:
                transaction.add_audit(audit_line(question, "failed", self._clock.now(), reason=error.code))
            if question is not None and question.attempt is not None and not question.begun:
                transaction.begin_approval(question.owner, question.approval_id, question.attempt)

        return note, () if question is None else await self._build_notices(question, error)

    async def _build_notices(self, question: PendingApproval, error: RequestError) -> Sequence[Delivery]:
        """Return the notices to the approvers of a call that does not run."""
        if question.terms is None or question.status != "approved":
            return ()
        rows: list[Delivery] = []
        for vote in await self._store.approvals.votes(question.owner, question.approval_id):
            if vote.approved and vote.identity is not None and vote.identity.channel in self._planner.pushing:
                locale = locale_of_person(vote.identity)
                text = self._texts.say("approval.not_run", locale, tool=question.tool, reason=error.message)
                rows += self._planner.notice(vote.identity, text, owner=question.owner)
        return rows


_RETRY_INTERVAL_SECONDS = 0.5


class EventProcessor:
    """Processes events. Each is finished in one transaction with its replies."""

    def __init__(
        self, given: EventDependencies, held: ClaimedEvents, replies: EventReplies, finishing: EventFinisher
    ) -> None:
        self._store, self._channels = given.store, given.channels
        self._pipeline, self._deferral = given.pipeline, given.deferral
        self._runs, self._finisher = given.runs, given.finisher
        self._gate, self._aliases, self._stored_requests = given.gate, given.aliases, given.stored_requests
        self._planner, self._outbox, self._live = given.planner, given.outbox, given.live
        self._held = held
        self._replies = replies
        self._finishing = finishing
        self._resumptions = Resumptions(given.store, given.clock, given.planner, given.texts)

    async def attempt(self, held: HeldEvent) -> None:
        """Answer an event. A cancelled event is recorded as cancelled without a reply."""
        item, lost = held.item, False
        if item.is_cancelled:
            return await self._record_cancelled(item)
        if is_given_up(item):
            await self._keep_others(held)
            log.error(
                "event failed permanently, the process ended during each attempt: event_id=%s channel=%s",
                item.event_id,
                item.channel,
            )
            raise InternalError(code="given_up")
        try:
            if await held.answer(self._answer(held)):
                return
        except EventBegunError:
            return await self._finish_begun(held)
        except LostEventError:
            lost = True
        # A turn that was cancelled writes nothing else, and its event may not be finished yet.
        kept = await self._store.inbox.renew([held.item])
        if kept and kept[0].is_cancelled:
            await self._record_cancelled(kept[0])
        elif lost:
            raise LostEventError

    async def _keep_others(self, held: HeldEvent) -> None:
        """Release the messages that were batched with an abandoned one and did not end as many processes."""
        item = held.item
        held.item = item.replace(bundle=tuple(member for member in item.bundle if is_given_up(member)))
        for member in item.bundle:
            if not is_given_up(member):
                await self._held.give_back(member)

    async def _finish_begun(self, held: HeldEvent) -> None:
        """Finish an event whose tool has started in an earlier attempt. The next claimant ends its run as failed.

        Its sender is notified then.
        """
        item, rows = held.item, await self._replies.rows(held.item, held.take_replies())
        log.warning("earlier attempt had begun a tool, not repeating it: event_id=%s", item.event_id)
        async with self._store.transaction() as transaction:
            transaction.finish(item, error=INTERRUPTED)
            for row in rows:
                transaction.add_delivery(row)
        await self._outbox.wake(rows)

    async def refuse(self, item: InboxItem, error: RequestError) -> None:
        """Answer an event with an error and finish it. A failed run has already done both."""
        if error.run_id is not None:
            return
        log.warning("event not answered: event_id=%s channel=%s: %s", item.event_id, item.channel, error.code)
        left, rows = await self._live.take_over_event(item), await self._replies.take_collected_rows(item)
        rows += await self._failure_notice(item, error)
        if left is not None:
            rows = await left.end(rows, "failed")
        note = None
        if item.kind == "resume":
            note, told = await self._resumptions.build_failure(item, error)
            rows = [*rows, *told]

        def write(transaction: StateTransaction) -> None:
            transaction.finish(item, error=error.code)
            if note is not None:
                note(transaction)
            for delivery in rows:
                transaction.add_delivery(delivery)
            if left is not None:
                left.close(transaction)

        try:
            await self._finish_refused(item, error, write)
        except LostEventError:
            kept = await self._store.inbox.renew([item])
            if kept and kept[0].is_cancelled:
                await self._record_cancelled(kept[0])
            return
        await self._outbox.wake(rows)

    async def _finish_refused(
        self, item: InboxItem, error: RequestError, write: Callable[[StateTransaction], None]
    ) -> None:
        """Write a refusal. The request of a sender who has to link first may be stored in the same transaction."""
        grant = await self._stored_requests.prepare(item) if isinstance(error, LinkRequiredError) else None
        if grant is not None:
            try:
                async with self._store.transaction() as transaction:
                    write(transaction)
                    self._stored_requests.add(transaction, grant)
                return await self._stored_requests.release_if_linked(item)
            except LostEventError:
                raise
            except StoreError:
                log.info("request not stored until the link, another was first: event_id=%s", item.event_id)
        async with self._store.transaction() as transaction:
            write(transaction)

    async def _record_cancelled(self, item: InboxItem) -> None:
        """Finish a cancelled event. Messages batched with it that were not cancelled get a separate turn."""
        heard = {member.event_id for member in item.heard}
        for member in (member.replace(bundle=()) for member in item.members):
            if member.cancelled is None:
                await self._held.give_back(member)
            else:
                await self._finish_cancelled(member, was_heard=member.event_id in heard)

    async def _finish_cancelled(self, item: InboxItem, *, was_heard: bool) -> None:
        """Finish a cancelled event. If the target has received its message, the message stays in the history."""
        if item.is_message and was_heard and not is_given_up(item):
            try:
                admitted = await self._pipeline.admit(item.request, item.caller, item.payload, run_id=item.run_id)
                await self._finisher.cancel(admitted, item)
            except (StoreUnavailableError, UnreadableRecordError):
                raise
            except RequestError as error:
                log.info("approval request of a cancelled event not stored: event_id=%s: %s", item.event_id, error.code)
        with suppress(LostEventError):
            async with self._store.transaction() as transaction:
                transaction.finish(item, error=CANCELLED)

    async def _answer(self, held: HeldEvent) -> bool:
        """Answer an event. Return True if it is certainly done."""
        item = held.item
        if item.kind == "resume":
            request = await self._aliases.inward_request(item.request)
            await self._run(item, request, confirm=partial(self._held.confirm, held))
            return True
        channel, is_heard = self._find_channel(item), bool(item.heard)
        if channel is not None and is_heard:
            await self._authorize(item)
        request = await self._request(held, channel) if is_heard else None
        item = held.item
        if request is not None:
            request, shown = await self._aliases.inward_request(request), await self._aliases.outward(item)
            acknowledge = await self._write_replies(held)
            settle = partial(channel.settle_answers, shown) if isinstance(channel, SettlesAnswers) else None
            confirm = partial(self._held.confirm, held)
            result = await self._run(item, request, settle, acknowledge, confirm)
            return result.run.status != "cancelled"
        if held.finished:
            return True
        finish, rows = await self._finishing.build_finish(item), await self._replies.rows(item, held.take_replies())
        async with self._store.transaction() as transaction:
            finish(transaction)
            for row in rows:
                transaction.add_delivery(row)
        await self._outbox.wake(rows)
        return True

    async def _run(
        self,
        event: InboxItem,
        request: ChannelRequest,
        settle: SettleAnswers | None = None,
        acknowledge: Callable[[], Awaitable[None]] | None = None,
        confirm: Callable[[], Awaitable[None]] | None = None,
    ) -> HostedRunResult[Any]:
        """Run the request of an event. The answer is sent as a delivery, and recording it finishes the event.

        `acknowledge` is called when processing starts, and not if the event is refused. `confirm` is called before
        that, when the session is free.
        """
        resumes = event.kind == "resume"
        shown = None if resumes else event.protocol_request
        again = event.kind == "turn" and event.fence > 1
        admitted = await self._pipeline.admit(
            request, event.caller, shown, settle, run_id=event.run_id, trace=event.trace, again=again
        )
        if not (resumes or is_stored_request(event)) or can_push(self._channels[request.channel]):
            admitted = admitted.with_push()
        queued = await self._deferral.queue_event_if_needed(admitted, event)
        if queued is not None:
            if acknowledge is not None:
                await acknowledge()
            return queued
        live = await self._live.of(admitted, event)
        try:
            return await self._runs.run(
                admitted, waits=True, event=event, live=live, acknowledge=acknowledge, confirm=confirm
            )
        finally:
            if live is not None:
                await live.stop_typing()

    async def _write_replies(self, held: HeldEvent) -> Callable[[], Awaitable[None]] | None:
        """Write the replies to an event. Return the write of a mere acknowledgement, to run when the target starts.

        A platform accepts one response to a click. If the click is rejected, that response is the rejection.
        """
        item, replies = held.item, held.take_replies()
        silent = {number: reply for number, reply in replies.items() if reply.only_acknowledges}
        await self._replies.write(item, {number: reply for number, reply in replies.items() if number not in silent})
        if not silent:
            return None
        return partial(until_available, partial(self._replies.write, item, silent), pause=_RETRY_INTERVAL_SECONDS)

    async def _request(self, held: HeldEvent, channel: AnswersEvents | None) -> ChannelRequest | None:
        """Return the target request of an event, merged with the events that are answered with it."""
        first, *others = held.item.members
        if not others:
            return await self._prepare(first, channel)
        requests = {member.event_id: await self._prepare(member, channel) for member in held.item.heard}
        together = merge([(member.album_id, requests[member.event_id]) for member in held.item.heard])
        if together is not None:
            return together
        # Each of them has a turn of its own.
        held.item = first.replace(bundle=())
        for member in others:
            await self._held.give_back(member)
        return requests.get(first.event_id)

    async def _prepare(self, item: InboxItem, channel: AnswersEvents | None) -> ChannelRequest | None:
        return item.request if channel is None else await channel.prepare(await self._aliases.outward(item))

    async def _authorize(self, item: InboxItem) -> None:
        """Reject a sender without access before the channel types, fetches or shows anything for them."""
        if item.request.operation == "command":
            # One who has to link first may use the commands of linking; of the others `run_command` decides.
            decision = await self._gate.decide(item.caller, item.channel)
            self._gate.not_denied(decision, item.caller.identity)
        else:
            hooked = self._channels[item.channel].run_hook is not None
            await self._gate.authorize(item.caller, item.channel, hooked=hooked)

    def _find_channel(self, item: InboxItem) -> AnswersEvents | None:
        channel = self._channels.get(item.channel)
        if channel is None:
            raise InternalError(code="no_channel")
        return channel if isinstance(channel, AnswersEvents) else None

    async def _failure_notice(self, item: InboxItem, error: RequestError) -> Sequence[Delivery]:
        channel = self._channels.get(item.channel)
        if channel is None or not item.heard or (_has_no_chat(item) and not can_push(channel)):
            return ()
        if not isinstance(channel, AnswersEvents) or item.kind == "resume":
            run_id = "" if item.reply_by is None else item.run_id or ""
            rows = await self._planner.failure_notice(item.request, item.caller.identity, error, run_id=run_id)
            return self._planner.for_event(rows, item)
        try:
            replies = await channel.refuse(await self._aliases.outward(item), error)
            return await self._replies.refusal_rows(item, replies)
        except FrontdeskError as failure:
            log.warning("failed to notify the sender: event_id=%s channel=%s: %s", item.event_id, item.channel, failure)
        return ()


def _has_no_chat(item: InboxItem) -> bool:
    """Return True if an event may be of a channel that cannot push."""
    return item.kind == "resume" or is_stored_request(item)
