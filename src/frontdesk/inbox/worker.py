"""Processes inbox events: in order within a conversation, each once, across processes.

An event is stored before it is acknowledged. The process that claims the first event of a conversation processes it.
The result of the turn, its deliveries, and the end of the event are written together. After a crash the turn runs
again, because its progress is unknown. From then on the event is quarantined: such events are retried one at a time. An
event that repeatedly crashes a process without other work is given up. An event that resumes a run after a decision is
retried far more often, with pauses in between: an approval must not be lost because hosts restart.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from enum import Enum
from functools import partial
from typing import Any, NamedTuple, Protocol

from frontdesk.access.visitors import UnlinkedVisitors
from frontdesk.clock import Clock, Moment
from frontdesk.concurrency.timeouts import RETRY_INTERVAL_SECONDS, Pauses
from frontdesk.errors import (
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
from frontdesk.ids import RandomIds
from frontdesk.inbox.awaited import AwaitedReplies
from frontdesk.inbox.batching import MessageBatcher
from frontdesk.inbox.claimed import ClaimedEvents, HeldEvent
from frontdesk.inbox.dependencies import TASKS, EventDependencies, EventFinisher, EventSchedule, task_id, task_payload
from frontdesk.inbox.groups import SenderGroups
from frontdesk.inbox.intake import EventIntake, EventLimiter
from frontdesk.inbox.processor import EventProcessor
from frontdesk.inbox.quarantine import Isolation, Quarantine
from frontdesk.inbox.replies import EventReplies
from frontdesk.inbox.retry import MAX_ATTEMPTS, is_given_up, own_tries, rest_before
from frontdesk.interfaces.runner import DurableTaskRunner
from frontdesk.interfaces.store import HostStateStore, StateTransaction
from frontdesk.loggers import runs as log
from frontdesk.models.delivery import Cancelled, EventKind, InboxItem, WaitingEvent
from frontdesk.models.reply import Reply
from frontdesk.models.session import SessionName
from frontdesk.telemetry.spans import NO_SPANS, Spans, classify_outcome

Conversation = tuple[str, str]
"""The channel and the id of a conversation."""
Sender = tuple[EventKind, tuple[str, str]]


class SenderSlots:
    """Counts the events in progress per sender, and queues conversations above the limit."""

    def __init__(self, most: dict[EventKind, int]) -> None:
        """`most` is the maximum number of concurrent events per sender and kind."""
        self._most = most
        self._taken: Counter[Sender] = Counter()
        self._waiting: dict[Sender, OrderedDict[Conversation, None]] = {}
        self._senders: dict[tuple[EventKind, Conversation], Sender] = {}

    def waits(self, kind: EventKind, conversation: Conversation) -> bool:
        """Return True if a conversation waits for a slot of the sender of its first event."""
        return (kind, conversation) in self._senders

    def enter(self, item: InboxItem) -> bool:
        """Take a slot for an event. If its sender has none left, queue its conversation."""
        sender, conversation = _sender(item), (item.channel, item.conversation_id)
        if self._taken[sender] < self._most[item.kind]:
            self._taken[sender] += 1
            return True
        self._waiting.setdefault(sender, OrderedDict())[conversation] = None
        self._senders[item.kind, conversation] = sender
        return False

    def leave(self, item: InboxItem) -> Conversation | None:
        """Free the slot of an event. Return the conversation that has waited longest for it."""
        sender = _sender(item)
        self._taken[sender] -= 1
        if not self._taken[sender]:
            del self._taken[sender]
        waiting = self._waiting.get(sender)
        if waiting is None:
            return None
        conversation, _ = waiting.popitem(last=False)
        self._end(item.kind, conversation, sender)
        return conversation

    def forget(self, kind: EventKind, conversation: Conversation) -> None:
        sender = self._senders.get((kind, conversation))
        if sender is not None:
            del self._waiting[sender][conversation]
            self._end(kind, conversation, sender)

    def _end(self, kind: EventKind, conversation: Conversation, sender: Sender) -> None:
        del self._senders[kind, conversation]
        if not self._waiting[sender]:
            del self._waiting[sender]


def _sender(item: InboxItem) -> Sender:
    return item.kind, item.caller.identity.key


MAX_CONCURRENT = 200
MAX_CONCURRENT_CONTROL = 50
MAX_PER_SENDER = 20
"""The number of turns that are answered at once for one sender, in all their conversations."""
MAX_CONTROL_PER_SENDER = 5
MAX_IN_A_ROW = 3
"""The number of events of a conversation after which it waits for a slot again."""
_PLACE_SECONDS = 30.0
"""The seconds after which a conversation is looked at again whose sender had no place, should nothing wake it up."""
_PAGE_ROWS = 500


class _Next(Enum):
    GO_ON = 1


class _Quarantined(NamedTuple):
    sender: tuple[str, str]


class InboxWorker:
    """Claims the events of the inbox and has them answered or retried."""

    def __init__(
        self,
        store: HostStateStore,
        clock: Clock,
        held: ClaimedEvents,
        gathering: MessageBatcher,
        awaited: AwaitedReplies,
        answering: EventProcessor,
        groups: SenderGroups,
        schedule: EventSchedule,
        spans: Spans = NO_SPANS,
    ) -> None:
        self._store = store
        self._clock = clock
        self._held = held
        self._gathering = gathering
        self._awaited = awaited
        self._answering = answering
        self._groups, self._schedule = groups, schedule
        self._spans = spans
        self._holder = ""
        self._places = SenderSlots(
            {"turn": MAX_PER_SENDER, "control": MAX_CONTROL_PER_SENDER, "resume": MAX_CONTROL_PER_SENDER}
        )
        self._quarantine = Quarantine(store, lambda: held.stopping)
        self._isolation = Isolation(store)
        self._paused: Pauses[tuple[EventKind, str, str]] = Pauses(clock)
        self._rested: OrderedDict[tuple[str, str], int] = OrderedDict()
        """The events that have rested before a try, by the number of that."""
        self._seen: dict[tuple[EventKind, str | None], int] = {}
        """The numbers up to which waiting events were read, by kind and channel; none before the first time."""

    def register(self, runner: DurableTaskRunner) -> None:
        """Register with the runner. Call once, before the runner starts."""
        groups = self._groups.task_groups()
        runner.register(TASKS["turn"], self._work, waiting=self._list_waiting, most=MAX_CONCURRENT, groups=groups)
        # With room of their own, control events never wait for the end of a turn.
        control, waiting = partial(self._work, kind="control"), partial(self._list_waiting, kind="control")
        runner.register(TASKS["control"], control, waiting=waiting, most=MAX_CONCURRENT_CONTROL, groups=groups)
        resume, waiting = partial(self._work, kind="resume"), partial(self._list_waiting, kind="resume")
        runner.register(TASKS["resume"], resume, waiting=waiting, most=MAX_CONCURRENT_CONTROL, groups=groups)

    async def start(self) -> None:
        # A new one at each start, so that the events of the last start are seen to have no holder.
        self._holder = RandomIds().new("host")
        self._seen.clear()
        self._held.start()

    async def halt(self) -> None:
        """Claim no more events. Those in progress continue."""
        self._held.halt()

    async def stop(self) -> None:
        """Stop renewing leases, after the runner has ended."""
        await self._held.stop()

    async def _list_waiting(self, kind: EventKind = "turn") -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        """Yield waiting events by channel, so that no channel waits behind the backlog of another."""
        for channel in (*self._groups.channels, None):
            async for event in self._claim_waiting(kind, channel):
                conversation = (event.channel, event.conversation_id)
                if self._paused.until((kind, *conversation)) is None and not self._is_queued(kind, conversation):
                    yield task_id(kind, event.channel, event.conversation_id), task_payload(event)

    def _is_queued(self, kind: EventKind, conversation: tuple[str, str]) -> bool:
        """Return True if a conversation will be woken once there is a slot for its next event."""
        return self._places.waits(kind, conversation) or self._quarantine.queue.waits(kind, conversation)

    async def _claim_waiting(self, kind: EventKind, channel: str | None) -> AsyncIterator[WaitingEvent]:
        """Yield all waiting events at the first call, later one page at a time because new events wake the runner.

        Without a channel, yield the events of channels that the host does not have.
        """
        cursor = (kind, channel)
        whole, after = cursor not in self._seen, self._seen.get(cursor, 0)
        channels, other = ([channel], False) if channel is not None else (self._groups.channels, True)
        while page := await self._store.inbox.waiting(
            self._holder, kind=kind, after=after, limit=_PAGE_ROWS, channels=channels, other=other
        ):
            for event in page:
                yield event
            after = page[-1].number
            if not whole:
                break
        self._seen[cursor] = after if page and len(page) == _PAGE_ROWS else 0

    async def _work(self, payload: Mapping[str, Any], kind: EventKind = "turn") -> float | None:
        """Answer the events of one conversation. Return the time of the next visit, or None if none is left."""
        conversation, answered = (payload["channel"], payload["conversation_id"]), 0
        self._places.forget(kind, conversation)
        while not self._held.stopping:
            if self._quarantine.queue.waits(kind, conversation):
                return self._clock.now() + _PLACE_SECONDS
            if answered == MAX_IN_A_ROW:
                # Those who wait for a slot come first.
                return self._clock.now()
            if (until := self._paused.until((kind, *conversation))) is not None:
                return until
            await self._isolation.join(kind)
            try:
                after = await self._answer_next(kind, conversation, again=answered > 0)
            finally:
                self._isolation.leave()
            if isinstance(after, _Quarantined):
                after = await self._answer_quarantined(kind, conversation, after.sender)
            if not isinstance(after, _Next):
                return after
            answered += 1
            if kind == "control":
                await self._end_quarantined_wait(conversation)
        return None

    async def _end_quarantined_wait(self, conversation: tuple[str, str]) -> None:
        """Have a conversation looked at that waits for the quarantine: its turn may have been cancelled."""
        if self._quarantine.queue.waits("turn", conversation):
            self._quarantine.queue.forget("turn", conversation)
            await self._wake("turn", conversation)

    async def _answer_next(
        self, kind: EventKind, conversation: tuple[str, str], *, again: bool
    ) -> "float | _Next | _Quarantined | None":
        claimed_at = self._held.moment()
        item = await self._claim(kind, conversation, again=again)
        if isinstance(item, InboxItem) and item.lost and not item.is_cancelled:
            await self._held.give_back(item)
            return _Quarantined(await self._groups.build_sender(item))
        # Another host may have tried the event for which it has waited.
        self._quarantine.queue.forget(kind, conversation)
        await self._serve_quarantined(kind)
        if not isinstance(item, InboxItem):
            return item
        if (seconds := self._rest(item)) is not None:
            await self._held.give_back(item)
            return self._paused.begin((kind, *conversation), seconds)
        return await self._answer_in_place(item, claimed_at)

    async def _answer_quarantined(
        self, kind: EventKind, conversation: tuple[str, str], sender: tuple[str, str]
    ) -> "float | _Next | None":
        """Answer the next event of a conversation once no other event is tried in quarantine on any host."""
        if not self._quarantine.queue.enter(kind, conversation, sender):
            return self._clock.now() + _PLACE_SECONDS

        async def leave() -> None:
            self._quarantine.queue.leave(kind)
            await self._serve_quarantined(kind)

        async with self._quarantine.hold(kind, leave) as hold:
            if hold is None:
                return None
            await self._isolation.join(kind)
            try:
                claimed_at = self._held.moment()
                item = await self._claim(kind, conversation)
                if not isinstance(item, InboxItem):
                    return item
                if (seconds := self._rest(item)) is not None:
                    await self._held.give_back(item)
                    return self._paused.begin((kind, *conversation), seconds)
                hold.limit(item)
                return await self._answer_in_place(item, claimed_at)
            finally:
                self._isolation.leave()

    async def _answer_in_place(self, item: InboxItem, claimed_at: Moment) -> "float | _Next":
        """Answer a claimed event, or release it if its sender has no free slot."""
        if not self._places.enter(item):
            await self._held.give_back(item)
            return self._clock.now() + _PLACE_SECONDS
        try:
            return await self._answer(item, claimed_at)
        finally:
            await self._free_place(item)

    async def _claim(
        self, kind: EventKind, conversation: tuple[str, str], *, again: bool = False
    ) -> InboxItem | float | None:
        try:
            return await self._gathering.claim(*conversation, self._holder, kind, again=again)
        except UnreadableRecordError:
            return self._paused.begin((kind, *conversation))

    async def _answer(self, item: InboxItem, claimed_at: Moment) -> "float | _Next":
        """Answer a claimed event. Return a time if it and all following events have to wait."""
        await self._groups.note_unknown(item)
        held = self._held.add(item, claimed_at)
        try:
            again = await self._process(held)
        finally:
            self._held.remove(item)
            self._awaited.notify(item)
        return _Next.GO_ON if again is None else again

    async def _serve_quarantined(self, kind: EventKind) -> None:
        """Wake the conversation that has waited longest for the quarantine."""
        waiting = self._quarantine.queue.next(kind)
        if waiting is not None:
            await self._wake(*waiting)

    async def _wake(self, kind: EventKind, conversation: tuple[str, str]) -> None:
        if not self._held.stopping:
            await self._schedule.wake_conversation(kind, *conversation)

    async def _free_place(self, item: InboxItem) -> None:
        """Wake the conversation that has waited for the slot of an event."""
        conversation = self._places.leave(item)
        if conversation is not None:
            await self._wake(item.kind, conversation)

    def _rest(self, item: InboxItem) -> float | None:
        """Return the delay in seconds before an event is retried in this process."""
        seconds, name = rest_before(item), (item.channel, item.event_id)
        if item.is_cancelled or not seconds or self._rested.pop(name, None) == item.attempts:
            return None
        self._rested[name] = item.attempts
        if len(self._rested) > _PAGE_ROWS:
            self._rested.popitem(last=False)
        return seconds

    async def _process(self, held: HeldEvent) -> float | None:
        """Answer or reject one event. Return a time if it and all following events have to wait."""
        span = self._spans.begin("event", held.item.channel, held.item.trace)
        trace = span.carry()
        if trace is not None:
            # In this process only: another one that takes it up begins a span of its own, in the same trace.
            held.item = held.item.replace(trace=trace)
        try:
            await self._held.confirm(held)
            if held.item.lost and not held.item.is_cancelled and not is_given_up(held.item):
                async with self._isolation.isolate(held):
                    await self._answering.attempt(held)
            else:
                await self._answering.attempt(held)
        except asyncio.CancelledError:
            span.end("cancelled")
            await self._held.give_back(held.item)
            raise
        except Exception as error:
            span.end(classify_outcome(error))
            return await self._after(held.item, error)
        span.end("ok")
        return None

    async def _after(self, item: InboxItem, failure: Exception) -> float | None:
        try:
            raise failure
        except UnreadableRecordError:
            # It is answered by a process that can read what it needs, before those that follow.
            await self._held.give_back(item)
            return self._paused.begin((item.kind, item.channel, item.conversation_id))
        except (StoreUnavailableError, TooManyRequestsError) as error:
            return await self._later(item, error.retry_after)
        except PushError as error:
            if not error.permanent and own_tries(item) < MAX_ATTEMPTS:
                return await self._later(item, error.retry_after, tried=True)
            await self._answering.refuse(item, InternalError(code=error.code))
        except StaleTurnError:
            log.warning(
                "session lease lost, processing the event again: event_id=%s channel=%s", item.event_id, item.channel
            )
            return await self._later(item, None)
        except LostEventError:
            log.warning("event taken over by another process: event_id=%s channel=%s", item.event_id, item.channel)
        except RunExistsError as error:
            # Another process may have recorded the event's run, and with it that the event is done.
            if own_tries(item) < MAX_ATTEMPTS:
                return await self._later(item, None, tried=True)
            await self._answering.refuse(item, error)
        except RequestError as error:
            await self._answering.refuse(item, error)
        except Exception as error:  # No code awaits this task, and the next event waits for it.
            log.error("event failed: event_id=%s channel=%s", item.event_id, item.channel, exc_info=error)
            await self._answering.refuse(item, InternalError())
        return None

    async def _later(self, item: InboxItem, after: float | None, *, tried: bool = False) -> float:
        await self._held.give_back(item, tried=tried)
        return self._clock.now() + (after or RETRY_INTERVAL_SECONDS)


class Abandoned(Protocol):
    """A session that abandons its questions, to be written with the event that requests it."""

    @property
    def questions(self) -> int: ...

    def note(self, transaction: StateTransaction) -> None: ...


Abandon = Callable[[], AbstractAsyncContextManager[Abandoned | None]]


class Cancellations:
    """Cancels turns, and notifies those in progress in this process."""

    def __init__(
        self, given: EventDependencies, held: ClaimedEvents, replies: EventReplies, finishing: EventFinisher
    ) -> None:
        self._store, self._ids = given.store, given.ids
        self._aliases, self._outbox = given.aliases, given.outbox
        self._held = held
        self._replies = replies
        self._finishing = finishing

    async def cancel_turns(
        self,
        item: InboxItem,
        *,
        anyone: bool = False,
        rotate: SessionName | None = None,
        reply: Callable[[Cancelled], Reply | str] | None = None,
        questions: Abandon | None = None,
    ) -> Cancelled:
        """Cancel the turns before an event, start a new session for a name, and finish the event with a reply.

        If there is no turn to cancel, the session abandons the `questions` that it waits for.
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
        held, rows = self._held.get(item), await self._replies.take_collected_rows(item)
        if reply is not None:
            rows += await self._replies.cancel_rows(item, reply(cancelled))
        finish = await self._finishing.build_finish(item)
        async with self._store.transaction() as transaction:
            transaction.cancel_earlier(item, anyone=anyone, session_id=left)
            if rotate is not None:
                transaction.name_session(rotate, self._ids.new("ses"))
            if abandoned is not None:
                abandoned.note(transaction)
            finish(transaction)
            for row in rows:
                transaction.add_delivery(row)
        if held is not None:
            held.finished = True
        await self._held.look(item)
        await self._outbox.wake(rows)
        return cancelled


class Events:
    """The components that handle events: `intake` and `cancellations` for channels, `worker` for the runner.

    Call `look_for_cancelled` after cancelling events by other means than an event.
    """

    def __init__(self, given: EventDependencies) -> None:
        store, channels, clock = given.store, given.channels, given.clock
        held = ClaimedEvents(store, given.active, clock)
        replies = EventReplies(store, given.planner, given.outbox, given.aliases, held)
        awaited = AwaitedReplies(store, channels, given.outbox, clock, given.aliases)
        gathering = MessageBatcher(store, channels, clock)
        finishing = EventFinisher(given.gate, given.presence)
        visitors = UnlinkedVisitors(store, channels)
        groups = SenderGroups(channels, visitors)
        limiter = EventLimiter(store, channels, clock, replies.add, given.texts, visitors)
        answering = EventProcessor(given, held, replies, finishing)
        self.intake = EventIntake(given, held, replies, awaited, gathering, limiter, groups)
        self.cancellations = Cancellations(given, held, replies, finishing)
        self.look_for_cancelled = held.look
        self.worker = InboxWorker(
            store, clock, held, gathering, awaited, answering, groups, given.schedule, given.spans
        )
        self.register = self.worker.register
