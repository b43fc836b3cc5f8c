"""Answers the events that platforms sent: in order within a conversation, each once, over processes.

An event is written before it is acknowledged. The process that claims the first one of a conversation answers it; the
result of the turn, its deliveries, and the end of the event are written together. A turn that a crash cuts off is run
again, because it is not known how far it came; an event that ends its process again and again is given up.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Any, Protocol

from frontdesk.abc.allowlist import Allowed
from frontdesk.abc.awaited import AwaitedReply
from frontdesk.abc.channel import Channel
from frontdesk.abc.events import AnswersEvents, SettlesAnswers
from frontdesk.abc.runner import DurableTaskRunner
from frontdesk.abc.store import HostStateStore, StateTransaction
from frontdesk.access.gate import Gate
from frontdesk.clock import Clock
from frontdesk.data.delivery import CANCELLED, Cancelled, Delivery, EventKind, InboxItem, WaitingEvent
from frontdesk.data.reply import Reply, as_reply
from frontdesk.data.request import ChannelRequest
from frontdesk.data.session import SessionName
from frontdesk.delivery.live.replies import LiveReplies
from frontdesk.delivery.outbox import Outbox
from frontdesk.delivery.plan import Planner
from frontdesk.delivery.presence import Presence
from frontdesk.delivery.push import can_push
from frontdesk.errors import (
    FrontdeskError,
    InternalError,
    LostEventError,
    PushError,
    RequestError,
    RunExistsError,
    StaleTurnError,
    StoreUnavailableError,
    TooManyRequestsError,
    UnreadableRecordError,
)
from frontdesk.host.awaited_replies import AwaitedReplies
from frontdesk.host.event_limits import EventLimiter
from frontdesk.host.event_replies import EventReplies
from frontdesk.host.gathering import Gathering, merged
from frontdesk.host.held_events import HeldEvent, HeldEvents
from frontdesk.host.resumptions import Resumptions
from frontdesk.ids import Ids, RandomIds
from frontdesk.kit.aio.pauses import Pauses
from frontdesk.kit.aio.retry import PAUSE, until_available
from frontdesk.kit.chat.aliases import Aliases
from frontdesk.kit.chat.texts import Texts
from frontdesk.loggers import runs as log
from frontdesk.pipeline import Pipeline
from frontdesk.sessions.active import ActiveRuns

TASKS: Mapping[EventKind, str] = {"turn": "answer", "control": "control", "resume": "resume"}
"""The names of the tasks that work through the events of each kind."""
MOST_AT_ONCE = 200
MOST_CONTROL_AT_ONCE = 50
MOST_TRIES = 3
_PAGE = 500
_LEFT_ALONE = 30.0
"""The seconds for which a conversation is left to processes that can read what it needs."""


class Abandoned(Protocol):
    """A session that gives up its questions, to be written with the event that asks for it."""

    @property
    def questions(self) -> int: ...

    def note(self, transaction: StateTransaction) -> None: ...


Abandon = Callable[[], AbstractAsyncContextManager[Abandoned | None]]


class InboxWorker:
    """Answers the events of the inbox."""

    def __init__(
        self,
        store: HostStateStore,
        pipeline: Pipeline,
        channels: Mapping[str, Channel],
        planner: Planner,
        outbox: Outbox,
        clock: Clock,
        gate: Gate,
        presence: Presence,
        active: ActiveRuns,
        ids: Ids,
        aliases: Aliases,
        texts: Texts,
        live: LiveReplies,
    ) -> None:
        self._store = store
        self._live = live
        self._pipeline = pipeline
        self._channels = channels
        self._planner = planner
        self._outbox = outbox
        self._clock = clock
        self._gate = gate
        self._presence = presence
        self._ids = ids
        self._aliases = aliases
        self._runner: DurableTaskRunner | None = None
        self._holder = ""
        self._held = HeldEvents(store, active)
        self._resumptions = Resumptions(store, clock)
        self._replies = EventReplies(store, planner, outbox, aliases)
        self._awaited = AwaitedReplies(store, channels, outbox, clock, aliases)
        self._gathering = Gathering(store, channels, clock)
        self._limiter = EventLimiter(store, channels, clock, self.reply, texts)
        store.listen(self._held.on_change)
        self._stopping = False
        self._paused: Pauses[tuple[EventKind, str, str]] = Pauses(clock, _LEFT_ALONE)
        self._seen: dict[EventKind, int] = {}
        """The numbers up to which waiting events were read, by kind; none before the first time."""

    def register(self, runner: DurableTaskRunner) -> None:
        """Register with the runner that calls this; once, before it starts."""
        runner.register(TASKS["turn"], self._work, waiting=self._waiting, most=MOST_AT_ONCE)
        # With room of their own, control events never wait for the end of a turn.
        control, waiting = partial(self._work, kind="control"), partial(self._waiting, kind="control")
        runner.register(TASKS["control"], control, waiting=waiting, most=MOST_CONTROL_AT_ONCE)
        resume, waiting = partial(self._work, kind="resume"), partial(self._waiting, kind="resume")
        runner.register(TASKS["resume"], resume, waiting=waiting, most=MOST_CONTROL_AT_ONCE)
        self._runner = runner

    async def start(self) -> None:
        """Start to take up events."""
        # A new one at each start, so that the events of the last start are seen to have no holder.
        self._holder = RandomIds().new("host")
        self._stopping = False
        self._seen.clear()
        self._held.start()

    async def halt(self) -> None:
        """Take up no more events; those that are being answered go on."""
        self._stopping = True

    async def stop(self) -> None:
        """Stop renewing leases, after the runner has ended."""
        await self._held.stop()

    async def accept(self, item: InboxItem) -> None:
        """Store an event; when this returns, it is written, or its sender is told that it is too much."""
        if await self._limiter.refuses(item):
            return
        item = self._gathering.postponed(self._with_run(await self._aliases.inward(item)))
        interrupts = item.is_message and self._interrupts(item.channel)
        async with self._store.transaction() as transaction:
            transaction.accept(item)
            if item.not_before is not None:
                transaction.postpone_earlier(item)
            if interrupts:
                transaction.interrupt_earlier(item)
        if interrupts:
            await self._held.look(item)
        await self.wake(item)

    async def wake(self, item: InboxItem) -> None:
        """Have an event that was written taken up."""
        if self._runner is not None:
            task_id = _task_id(item.kind, item.channel, item.conversation_id)
            await self._runner.schedule(TASKS[item.kind], _payload(item), task_id=task_id, at=item.not_before)

    def accept_and_wait(self, item: InboxItem, seconds: float) -> AbstractAsyncContextManager[AwaitedReply]:
        """Store an event and wait for its answer, which the block writes into the reply to the event."""
        return self._awaited.reply_to(self._with_run(item), seconds, self.accept)

    def _with_run(self, item: InboxItem) -> InboxItem:
        return item if item.run_id is not None else item.replace(run_id=self._gate.new_run_id(item.channel))

    async def reply(self, item: InboxItem, reply: Reply | str, number: int) -> None:
        """Keep a reply until the event is finished; write it at once if this process does not work on the event."""
        held = self._held.get(item)
        if held is None or held.replies is None:
            await self._replies.write(item, {number: as_reply(reply)})
        else:
            held.replies.setdefault(number, as_reply(reply))

    def _interrupts(self, channel: str) -> bool:
        return channel in self._channels and self._channels[channel].on_busy == "interrupt"

    async def cancel_turns(
        self,
        item: InboxItem,
        *,
        anyone: bool = False,
        rotate: SessionName | None = None,
        reply: Callable[[Cancelled], Reply | str] | None = None,
        questions: Abandon | None = None,
    ) -> Cancelled:
        """Cancel the turns before an event, start the session of a name anew, and finish the event with a reply.

        If there is no turn to cancel, the session gives up the `questions` with which it waits.
        """
        # The channel knows the conversation by its current name.
        item = await self._aliases.inward(item)
        cancelled = await self._store.inbox.count_earlier(item, anyone=anyone)
        if questions is None or cancelled.running or cancelled.dropped:
            return await self._cancel(item, cancelled, anyone, rotate, reply)
        async with questions() as abandoned:
            if abandoned is not None:
                cancelled = cancelled.replace(questions=abandoned.questions)
            return await self._cancel(item, cancelled, anyone, rotate, reply, abandoned)

    async def _cancel(
        self,
        item: InboxItem,
        cancelled: Cancelled,
        anyone: bool,
        rotate: SessionName | None,
        reply: Callable[[Cancelled], Reply | str] | None,
        abandoned: Abandoned | None = None,
    ) -> Cancelled:
        left = ""
        if rotate is not None and cancelled.running:
            left = await self._store.sessions.reserve(rotate, self._ids.new("ses"))
        held = self._held.get(item)
        rows = [] if held is None else await self._replies.rows(item, held.take_replies())
        if reply is not None:
            rows += await self._replies.cancel_rows(item, reply(cancelled))
        owner = await self._command_owner(item)
        async with self._store.transaction() as transaction:
            transaction.cancel_earlier(item, anyone=anyone, session_id=left)
            if rotate is not None:
                transaction.name_session(rotate, self._ids.new("ses"))
            if abandoned is not None:
                abandoned.note(transaction)
            self._note_finished(transaction, item, owner)
            for row in rows:
                transaction.add_delivery(row)
        if held is not None:
            held.finished = True
        await self._held.look(item)
        await self._outbox.wake(rows)
        return cancelled

    async def _waiting(self, kind: EventKind = "turn") -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        """Yield all waiting events at the first call; after that a page at a time, because new ones wake the runner."""
        whole, after = kind not in self._seen, self._seen.get(kind, 0)
        while page := await self._store.inbox.waiting(self._holder, kind=kind, after=after, limit=_PAGE):
            for event in page:
                if self._paused.until((kind, event.channel, event.conversation_id)) is None:
                    yield _task_id(kind, event.channel, event.conversation_id), _payload(event)
            after = page[-1].number
            if not whole:
                break
        self._seen[kind] = after if page and len(page) == _PAGE else 0

    async def _work(self, payload: Mapping[str, Any], kind: EventKind = "turn") -> float | None:
        """Answer the events of one conversation; return when to come back, or `None` if none is left."""
        conversation = (payload["channel"], payload["conversation_id"])
        while not self._stopping:
            if (until := self._paused.until((kind, *conversation))) is not None:
                return until
            try:
                item = await self._gathering.claim(*conversation, self._holder, kind)
            except UnreadableRecordError:
                return self._paused.begin((kind, *conversation))
            if item is None:
                return await self._gathering.due(*conversation, kind)
            held = self._held.add(item)
            try:
                again = await self._process(held)
            finally:
                self._held.remove(item)
                self._awaited.notify(item)
            if again is not None:
                return again
        return None

    async def _process(self, held: HeldEvent) -> float | None:
        """Answer one event, or refuse it; return a time if it has to wait, and all that follow with it."""
        try:
            await self._attempt(held)
        except asyncio.CancelledError:
            await self._give_back(held.item)
            raise
        except Exception as error:
            return await self._after(held.item, error)
        return None

    async def _after(self, item: InboxItem, failure: Exception) -> float | None:
        """Deal with an event that could not be answered, as its error asks for."""
        try:
            raise failure
        except UnreadableRecordError:
            # It is answered by a process that can read what it needs, before those that follow.
            await self._give_back(item)
            return self._paused.begin((item.kind, item.channel, item.conversation_id))
        except (StoreUnavailableError, TooManyRequestsError) as error:
            return await self._later(item, error.retry_after)
        except PushError as error:
            if not error.permanent and item.attempts < MOST_TRIES:
                return await self._later(item, error.retry_after, tried=True)
            await self._refuse(item, InternalError(code=error.code))
        except StaleTurnError:
            log.warning("event %s of %s lost its session, and is answered anew", item.event_id, item.channel)
            return await self._later(item, None)
        except LostEventError:
            log.warning("event %s of %s is answered by another", item.event_id, item.channel)
        except RunExistsError as error:
            # Another process may have recorded the event's run, and with it that the event is done.
            if item.attempts < MOST_TRIES:
                return await self._later(item, None, tried=True)
            await self._refuse(item, error)
        except RequestError as error:
            await self._refuse(item, error)
        except Exception as error:  # No code awaits this task, and the next event waits for it.
            log.error("event %s of %s could not be answered", item.event_id, item.channel, exc_info=error)
            await self._refuse(item, InternalError())
        return None

    async def _attempt(self, held: HeldEvent) -> None:
        """Answer an event; one that was cancelled is recorded as that, and nothing is said."""
        item, lost = held.item, False
        if item.is_cancelled:
            return await self._record_cancelled(item)
        if item.attempts > MOST_TRIES:
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

    async def _record_cancelled(self, item: InboxItem) -> None:
        """Finish an event that was cancelled; what came with it and was not cancelled is left to a turn of its own."""
        for member in (member.replace(bundle=()) for member in item.members):
            if member.cancelled is None:
                await self._give_back(member)
            else:
                await self._finish_cancelled(member)

    async def _finish_cancelled(self, item: InboxItem) -> None:
        """Finish an event that was cancelled; the question of a message stays in the history."""
        if item.is_message and item.attempts <= MOST_TRIES:
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
        channel = self._answering_channel(item)
        if channel is not None:
            await self._authorize(item)
        request = await self._request(held, channel)
        item = held.item
        if request is not None:
            request, shown = await self._aliases.inward_request(request), await self._aliases.outward(item)
            await self._replies.write(item, held.take_replies())
            settle = partial(channel.settle_answers, shown) if isinstance(channel, SettlesAnswers) else None
            result = await self._pipeline.answer(item, request, settle)
            return result.run.status != "cancelled"
        if held.finished:
            return True
        owner, rows = await self._command_owner(item), await self._replies.rows(item, held.take_replies())
        async with self._store.transaction() as transaction:
            self._note_finished(transaction, item, owner)
            for row in rows:
                transaction.add_delivery(row)
        await self._outbox.wake(rows)
        return True

    def _note_finished(self, transaction: StateTransaction, item: InboxItem, owner: str | None) -> None:
        if owner is not None:
            here = item.request.conversation_id
            self._presence.note_place(transaction, owner, item.caller.identity, here, item.received_at)
        transaction.finish(item)

    async def _request(self, held: HeldEvent, channel: AnswersEvents | None) -> ChannelRequest | None:
        """Return what an event asks of the target, together with those that are answered with it."""
        first, *others = held.item.members
        request = await self._prepare(first, channel)
        if not others:
            return request
        together = merged([request, *[await self._prepare(member, channel) for member in others]])
        if together is None:
            # Each of them has a turn of its own.
            held.item = first.replace(bundle=())
            for member in others:
                await self._give_back(member)
        return together or request

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

    async def _command_owner(self, item: InboxItem) -> str | None:
        """Return the owner of a command; `None` if the event was none, or of a stranger."""
        if item.request.operation != "command" or not self._presence.matters:
            return None
        decision = await self._gate.decide(item.caller, item.channel)
        return decision.isolation_key if isinstance(decision, Allowed) else None

    def _answering_channel(self, item: InboxItem) -> AnswersEvents | None:
        channel = self._channels.get(item.channel)
        if channel is None:
            raise InternalError(code="no_channel")
        return channel if isinstance(channel, AnswersEvents) else None

    async def _later(self, item: InboxItem, after: float | None, *, tried: bool = False) -> float:
        await self._give_back(item, tried=tried)
        return self._clock.now() + (after or PAUSE)

    async def _give_back(self, item: InboxItem, *, tried: bool = False) -> None:
        """Release an event for the next process to claim; before that is written, no other can."""

        async def write() -> None:
            async with self._store.transaction() as transaction:
                transaction.give_back(item, tried=tried)

        # When the host stops, it is given back by the end of its lease.
        with suppress(LostEventError, StoreUnavailableError):
            await until_available(write, give_up=lambda: self._stopping)

    async def _refuse(self, item: InboxItem, error: RequestError) -> None:
        """Answer an event with an error and end it; a run that failed has done both."""
        if error.run_id is not None:
            return
        log.warning("event %s of %s was not answered: %s", item.event_id, item.channel, error.code)
        held, left = self._held.get(item), await self._live.left(item)
        rows = [] if held is None else await self._replies.rows(item, held.take_replies())
        rows += await self._failure_notice(item, error)
        if left is not None:
            rows = await left.end(rows, "failed")
        note = await self._resumptions.failed(item, error) if item.kind == "resume" else None
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

    async def _failure_notice(self, item: InboxItem, error: RequestError) -> Sequence[Delivery]:
        channel = self._channels.get(item.channel)
        if channel is None or (item.kind == "resume" and not can_push(channel)):
            return ()
        if not isinstance(channel, AnswersEvents) or item.kind == "resume":
            run_id = "" if item.reply_by is None else item.run_id or ""
            rows = await self._planner.failure_notice(item.request, item.caller.identity, error.message, run_id=run_id)
            return self._planner.for_event(rows, item)
        try:
            replies = await channel.refuse(await self._aliases.outward(item), error)
            return await self._replies.refusal_rows(item, replies)
        except FrontdeskError as failure:
            log.warning("the sender of event %s of %s could not be notified: %s", item.event_id, item.channel, failure)
        return ()


def _task_id(kind: EventKind, channel: str, conversation_id: str) -> str:
    # The length keeps two conversations apart whatever is in their names.
    return f"{TASKS[kind]}:{len(channel)}:{channel}:{conversation_id}"


def _payload(item: InboxItem | WaitingEvent) -> Mapping[str, Any]:
    return {"channel": item.channel, "conversation_id": item.conversation_id}
