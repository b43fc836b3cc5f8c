"""Answers one event: it is authorized, prepared by its channel and run, or refused, or recorded as cancelled."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial

from frontdesk.abc.events import AnswersEvents, SettlesAnswers
from frontdesk.data.delivery import CANCELLED, Delivery, InboxItem
from frontdesk.data.request import ChannelRequest
from frontdesk.delivery.push import can_push
from frontdesk.errors import (
    FrontdeskError,
    InternalError,
    LostEventError,
    RequestError,
    StoreUnavailableError,
    UnreadableRecordError,
)
from frontdesk.host.events.dependencies import EventDependencies
from frontdesk.host.events.finishing import Finishing
from frontdesk.host.events.gathering import merged
from frontdesk.host.events.held import HeldEvent, HeldEvents
from frontdesk.host.events.replies import EventReplies
from frontdesk.host.events.resumptions import Resumptions
from frontdesk.host.events.tries import MOST_TRIES, most_tries
from frontdesk.kit.aio.retry import until_available
from frontdesk.loggers import runs as log

_PAUSE = 0.5


class EventAnswering:
    """Brings events to their end, each in one transaction with what is said about it."""

    def __init__(self, given: EventDependencies, held: HeldEvents, replies: EventReplies, finishing: Finishing) -> None:
        self._store, self._channels, self._pipeline = given.store, given.channels, given.pipeline
        self._gate, self._aliases = given.gate, given.aliases
        self._planner, self._outbox, self._live = given.planner, given.outbox, given.live
        self._held = held
        self._replies = replies
        self._finishing = finishing
        self._resumptions = Resumptions(given.store, given.clock, given.planner, given.texts)

    async def attempt(self, held: HeldEvent) -> None:
        """Answer an event; one that was cancelled is recorded as that, and nothing is said."""
        item, lost = held.item, False
        if item.is_cancelled:
            return await self._record_cancelled(item)
        if item.attempts > most_tries(item):
            log.error("event %s of %s is given up: each time the process ended", item.event_id, item.channel)
            raise InternalError(code="given_up")
        try:
            if await held.answer(self._answer(held)):
                return
        except LostEventError:
            lost = True
        # A turn that was cancelled writes nothing else, and its event may not be finished yet.
        kept = await self._store.inbox.renew([held.item])
        if kept and kept[0].is_cancelled:
            await self._record_cancelled(kept[0])
        elif lost:
            raise LostEventError

    async def refuse(self, item: InboxItem, error: RequestError) -> None:
        """Answer an event with an error and end it; a run that failed has done both."""
        if error.run_id is not None:
            return
        log.warning("event %s of %s was not answered: %s", item.event_id, item.channel, error.code)
        left, rows = await self._live.left(item), await self._replies.collected_rows(item)
        rows += await self._failure_notice(item, error)
        if left is not None:
            rows = await left.end(rows, "failed")
        note = None
        if item.kind == "resume":
            note, told = await self._resumptions.failed(item, error)
            rows = [*rows, *told]
        try:
            async with self._store.transaction() as transaction:
                transaction.finish(item, error=error.code)
                if note is not None:
                    note(transaction)
                for delivery in rows:
                    transaction.add_delivery(delivery)
                if left is not None:
                    left.close(transaction)
        except LostEventError:
            kept = await self._store.inbox.renew([item])
            if kept and kept[0].is_cancelled:
                await self._record_cancelled(kept[0])
            return
        await self._outbox.wake(rows)

    async def _record_cancelled(self, item: InboxItem) -> None:
        """Finish an event that was cancelled; what came with it and was not cancelled is left to a turn of its own."""
        heard = {member.event_id for member in item.heard}
        for member in (member.replace(bundle=()) for member in item.members):
            if member.cancelled is None:
                await self._held.give_back(member)
            else:
                await self._finish_cancelled(member, was_heard=member.event_id in heard)

    async def _finish_cancelled(self, item: InboxItem, *, was_heard: bool) -> None:
        """Finish an event that was cancelled; the question of a message that was heard stays in the history."""
        if item.is_message and was_heard and item.attempts <= MOST_TRIES:
            try:
                await self._pipeline.record_cancelled(item)
            except (StoreUnavailableError, UnreadableRecordError):
                raise
            except RequestError as error:
                log.info("the question of cancelled event %s is not kept: %s", item.event_id, error.code)
        with suppress(LostEventError):
            async with self._store.transaction() as transaction:
                transaction.finish(item, error=CANCELLED)

    async def _answer(self, held: HeldEvent) -> bool:
        """Answer an event, and tell whether it is certain that it is done."""
        item = held.item
        if item.kind == "resume":
            await self._pipeline.answer(item, await self._aliases.inward_request(item.request))
            return True
        channel, is_heard = self._answering_channel(item), bool(item.heard)
        if channel is not None and is_heard:
            await self._authorize(item)
        request = await self._request(held, channel) if is_heard else None
        item = held.item
        if request is not None:
            request, shown = await self._aliases.inward_request(request), await self._aliases.outward(item)
            acknowledge = await self._write_replies(held)
            settle = partial(channel.settle_answers, shown) if isinstance(channel, SettlesAnswers) else None
            result = await self._pipeline.answer(item, request, settle, acknowledge)
            return result.run.status != "cancelled"
        if held.finished:
            return True
        finish, rows = await self._finishing.finished(item), await self._replies.rows(item, held.take_replies())
        async with self._store.transaction() as transaction:
            finish(transaction)
            for row in rows:
                transaction.add_delivery(row)
        await self._outbox.wake(rows)
        return True

    async def _write_replies(self, held: HeldEvent) -> Callable[[], Awaitable[None]] | None:
        """Write what was said to an event; return what only acknowledges it, for when the target takes it up.

        A platform takes one answer to a click: if the click is refused, that is the refusal.
        """
        item, replies = held.item, held.take_replies()
        silent = {number: reply for number, reply in replies.items() if reply.only_acknowledges}
        await self._replies.write(item, {number: reply for number, reply in replies.items() if number not in silent})
        if not silent:
            return None
        return partial(until_available, partial(self._replies.write, item, silent), pause=_PAUSE)

    async def _request(self, held: HeldEvent, channel: AnswersEvents | None) -> ChannelRequest | None:
        """Return what an event asks of the target, together with those that are answered with it."""
        first, *others = held.item.members
        if not others:
            return await self._prepare(first, channel)
        requests = {member.event_id: await self._prepare(member, channel) for member in held.item.heard}
        together = merged([(member.album_id, requests[member.event_id]) for member in held.item.heard])
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
        """Refuse a stranger before the channel types, fetches or shows anything for them."""
        if item.request.operation == "command":
            # One who has to link first may use the commands of linking; of the others `run_command` decides.
            decision = await self._gate.decide(item.caller, item.channel)
            self._gate.not_denied(decision, item.caller.identity)
        else:
            hooked = self._channels[item.channel].run_hook is not None
            await self._gate.authorize(item.caller, item.channel, hooked=hooked)

    def _answering_channel(self, item: InboxItem) -> AnswersEvents | None:
        channel = self._channels.get(item.channel)
        if channel is None:
            raise InternalError(code="no_channel")
        return channel if isinstance(channel, AnswersEvents) else None

    async def _failure_notice(self, item: InboxItem, error: RequestError) -> Sequence[Delivery]:
        channel = self._channels.get(item.channel)
        if channel is None or not item.heard or (item.kind == "resume" and not can_push(channel)):
            return ()
        if not isinstance(channel, AnswersEvents) or item.kind == "resume":
            run_id = "" if item.reply_by is None else item.run_id or ""
            rows = await self._planner.failure_notice(item.request, item.caller.identity, error, run_id=run_id)
            return self._planner.for_event(rows, item)
        try:
            replies = await channel.refuse(await self._aliases.outward(item), error)
            return await self._replies.refusal_rows(item, replies)
        except FrontdeskError as failure:
            log.warning("the sender of event %s of %s could not be notified: %s", item.event_id, item.channel, failure)
        return ()
