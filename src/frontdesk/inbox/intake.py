"""Accepts events and receipts from channels, within limits."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

from frontdesk.access.visitors import UnlinkedVisitors
from frontdesk.chat.commands import parse_locale
from frontdesk.chat.i18n.texts import Texts
from frontdesk.clock import Clock
from frontdesk.errors import TooManyRequestsError
from frontdesk.http.limits import HttpLimits, Limiter
from frontdesk.inbox.awaited import AwaitedReplies
from frontdesk.inbox.batching import MessageBatcher
from frontdesk.inbox.claimed import ClaimedEvents
from frontdesk.inbox.dependencies import EventDependencies
from frontdesk.inbox.groups import SenderGroups
from frontdesk.inbox.replies import EventReplies
from frontdesk.interfaces.channel import Channel
from frontdesk.interfaces.context import AwaitedReply
from frontdesk.interfaces.store import HostStateStore
from frontdesk.loggers import runs as log
from frontdesk.models.delivery import EventKind, InboxItem
from frontdesk.models.identity import Caller
from frontdesk.models.operations import DEFAULT_EVENT_LIMITS, EventLimits
from frontdesk.models.reply import Reply
from frontdesk.telemetry.spans import classify_outcome

NOTICE_SECONDS = 60
"""The seconds in which a person is told once that they send too much."""
_MAX_NOTIFIED = 10_000
_MAX_COUNTS = 10_000


class EventLimiter:
    """Rate limiter for the events of users. The number of counters is bounded."""

    def __init__(
        self,
        store: HostStateStore,
        channels: Mapping[str, Channel],
        clock: Clock,
        reply: Callable[[InboxItem, str, int], Awaitable[None]],
        texts: Texts,
        visitors: UnlinkedVisitors,
    ) -> None:
        self._store, self._clock, self._reply, self._texts = store, clock, reply, texts
        self._visitors = visitors
        self._limits: dict[str, EventLimits] = {
            name: channel.event_limits or DEFAULT_EVENT_LIMITS for name, channel in channels.items()
        }
        self._waiting_of_senders = _Backlogs()
        self._waiting_on_channels = _Backlogs()
        self._texts_of_unlinked: dict[str, _ByteRate] = {}
        self._rates: dict[tuple[str, EventKind, bool], Limiter] = {}
        self._told: OrderedDict[tuple[str, str], int] = OrderedDict()
        """The people who were told, with the minute; beyond the bound the store knows it."""

    async def refuses(self, item: InboxItem) -> bool:
        """Return True if an event must be rejected. Its sender is notified at most once a minute."""
        limits = self._limits.get(item.channel)
        if limits is None or (
            self._is_in_rate(limits, (item.channel, item.kind, item.addressed), item.caller)
            and await self._has_capacity(item, limits)
        ):
            return False
        if item.addressed:
            await self._tell(item)
        return True

    def take_rate(self, channel: str, caller: Caller) -> None:
        """Count an event that is not stored. Raise `TooManyRequestsError` above the limit of its sender."""
        limits = self._limits.get(channel)
        if limits is not None and not self._is_in_rate(limits, (channel, "control", True), caller):
            raise TooManyRequestsError

    def _is_in_rate(self, limits: EventLimits, name: tuple[str, EventKind, bool], caller: Caller) -> bool:
        if limits.per_caller is None:
            return True
        # Counted separately, so that a person at the limit of messages can still cancel, and what was not meant for us
        # takes nothing of what they may say to us.
        limiter = self._rates.get(name)
        if limiter is None:
            given = HttpLimits(per_caller=limits.per_caller, max_callers=limits.max_callers)
            limiter = self._rates[name] = Limiter(given)
        try:
            limiter.take(caller)
        except TooManyRequestsError:
            return False
        return True

    async def _has_capacity(self, item: InboxItem, limits: EventLimits) -> bool:
        if item.kind == "control":
            return True
        inbox, sender = self._store.inbox, item.caller.identity.key
        most = limits.max_waiting_per_caller
        if most is not None and not await self._waiting_of_senders.add(sender, most, lambda: inbox.count_waiting(item)):
            return False
        if limits.max_waiting_for_unlinked is None and limits.max_text_bytes_per_hour_for_unlinked is None:
            return True
        if not await self._visitors.includes(item.caller):
            return True
        return self._has_bytes(item, limits) and await self._can_wait(item, limits)

    async def _can_wait(self, item: InboxItem, limits: EventLimits) -> bool:
        most = limits.max_waiting_for_unlinked
        return most is None or await self._waiting_on_channels.add(
            (item.channel, ""), most, lambda: self._store.inbox.count_waiting_on(item.channel)
        )

    def _has_bytes(self, item: InboxItem, limits: EventLimits) -> bool:
        most = limits.max_text_bytes_per_hour_for_unlinked
        if most is None:
            return True
        rate = self._texts_of_unlinked.setdefault(item.channel, _ByteRate(most))
        return rate.take(_text_bytes(item), self._clock.steady())

    async def _tell(self, item: InboxItem) -> None:
        who, minute = item.caller.identity.key, int(self._clock.now() // NOTICE_SECONDS)
        if self._told.get(who) == minute:
            return
        self._told[who] = minute
        self._told.move_to_end(who)
        if len(self._told) > _MAX_NOTIFIED:
            self._told.popitem(last=False)
        log.warning("sender exceeded the limits of the channel: channel=%s", item.channel)
        # All replicas make the same name of it, so that the person gets one reply.
        native_id = item.caller.identity.native_id
        text = self._texts.say("limits.too_many", parse_locale(item.request, item.caller.identity))
        await self._reply(item.replace(event_id=f"limit:{minute}:{native_id}"), text, 0)


class _ByteRate:
    """A number of bytes for each hour, of which each second gives back its share."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._used = 0.0
        self._seen = 0.0

    def take(self, size: int, now: float) -> bool:
        """Count some bytes. Return False, and count nothing, if they are too many."""
        self._used = max(self._used - (now - self._seen) * self._most / 3600, 0.0)
        self._seen = now
        if self._used + size > self._most:
            return False
        self._used += size
        return True


class _Backlogs:
    """Counts waiting messages. Reads the count from the store only when the limit may be reached.

    A count only grows here. Messages answered since are only considered at the next store query. A sender below the
    limit therefore costs one query per as many messages as the limit allows.
    """

    def __init__(self) -> None:
        self._counts: OrderedDict[tuple[str, str], tuple[int, int]] = OrderedDict()
        """The messages that wait at most, and the number of those that were allowed so far."""

    async def add(self, name: tuple[str, str], most: int, count: Callable[[], Awaitable[int]]) -> bool:
        """Count one more message. Return False if `most` are already waiting."""
        waiting, allowed = self._counts.get(name, (most, 0))
        if waiting >= most:
            before, stored = allowed, await count()
            _, allowed = self._counts.get(name, (most, before))
            # The store may not have those that were allowed meanwhile.
            waiting = stored + allowed - before
        more = int(waiting < most)
        self._counts[name] = (waiting + more, allowed + more)
        self._counts.move_to_end(name)
        if len(self._counts) > _MAX_COUNTS:
            self._counts.popitem(last=False)
        return bool(more)


class EventIntake:
    """Stores events before they are acknowledged and schedules their processing."""

    def __init__(
        self,
        given: EventDependencies,
        held: ClaimedEvents,
        replies: EventReplies,
        awaited: AwaitedReplies,
        gathering: MessageBatcher,
        limiter: EventLimiter,
        groups: SenderGroups,
    ) -> None:
        self._store, self._channels = given.store, given.channels
        self._gate, self._aliases, self._spans = given.gate, given.aliases, given.spans
        self.wake = given.schedule.wake
        self._held = held
        self._replies = replies
        self._awaited = awaited
        self._gathering = gathering
        self._limiter = limiter
        self._groups = groups

    async def accept(self, item: InboxItem) -> bool:
        """Store an event. Return False if it exceeds a limit. Its sender is notified then."""
        span = self._spans.begin("accept", item.channel, item.trace)
        trace = span.carry()
        try:
            accepted = await self._store_event(item if trace is None else item.replace(trace=trace))
        except BaseException as error:
            span.end(classify_outcome(error))
            raise
        span.end("ok" if accepted else TooManyRequestsError.code)
        return accepted

    async def _store_event(self, item: InboxItem) -> bool:
        """Store an event. Return False if it exceeds a limit."""
        if await self._limiter.refuses(item):
            return False
        item = self._gathering.postpone(self._with_run(await self._aliases.inward(item)))
        interrupts = item.is_message and item.addressed and self._interrupts(item.channel)
        # The messages of an album don't interrupt each other.
        others = await self._store.inbox.outside_album(item) if interrupts and item.waits_for_album else None
        owner = await self._gate.find_key(item.caller.identity) if _has_data(item) else None
        async with self._store.transaction() as transaction:
            transaction.accept(item, owner=owner or "")
            if item.not_before is not None:
                transaction.postpone_earlier(item)
            if interrupts:
                transaction.interrupt_earlier(item, only=others)
        if interrupts:
            await self._held.look(item)
        await self._groups.note(item)
        await self.wake(item)
        return True

    def take_rate(self, channel: str, caller: Caller) -> None:
        """Count an event that is not stored. Raise `TooManyRequestsError` above the limit of its sender."""
        self._limiter.take_rate(channel, caller)

    def accept_and_wait(self, item: InboxItem, seconds: float) -> AbstractAsyncContextManager[AwaitedReply]:
        """Store an event and wait for its answer, which the block writes into the reply to the event."""
        return self._awaited.reply_to(self._with_run(item), seconds, self.accept)

    async def reply(self, item: InboxItem, reply: Reply | str, number: int) -> None:
        """Keep a reply until the event is finished. Written immediately if this process does not work on the event."""
        await self._replies.add(item, reply, number)

    def _with_run(self, item: InboxItem) -> InboxItem:
        return item if item.run_id is not None else item.replace(run_id=self._gate.new_run_id(item.channel))

    def _interrupts(self, channel: str) -> bool:
        return channel in self._channels and self._channels[channel].on_busy == "interrupt"


def _has_data(item: InboxItem) -> bool:
    """Return True if an event has images or documents. They are stored as files of its sender."""
    return any(content.type == "data" for content in _contents(item))


def _text_bytes(item: InboxItem) -> int:
    given: Any = item.request.input
    texts = [given] if isinstance(given, str) else [content.text for content in _contents(item)]
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts if isinstance(text, str))


def _contents(item: InboxItem) -> Iterator[Any]:
    given: Any = item.request.input
    for message in cast("list[Any]", given) if isinstance(given, list) else [given]:
        yield from getattr(message, "contents", ())
