"""Refuses what one person sends beyond the limits of a chat channel, and says so now and then."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping

from frontdesk.abc.channel import Channel
from frontdesk.abc.store import HostStateStore
from frontdesk.clock import Clock
from frontdesk.data.delivery import EventKind, InboxItem
from frontdesk.data.limits import EventLimits
from frontdesk.errors import TooManyRequestsError
from frontdesk.kit.chat.commands import locale_of
from frontdesk.kit.chat.texts import Texts
from frontdesk.kit.http.limits import Limiter, Limits
from frontdesk.loggers import runs as log

NOTICE_SECONDS = 60
"""The seconds in which a person is told once that they send too much."""
_MOST_TOLD = 10_000


class EventLimiter:
    """Counts the events of people, and keeps no more than a bounded number of counts."""

    def __init__(
        self,
        store: HostStateStore,
        channels: Mapping[str, Channel],
        clock: Clock,
        reply: Callable[[InboxItem, str, int], Awaitable[None]],
        texts: Texts,
    ) -> None:
        self._store, self._clock, self._reply, self._texts = store, clock, reply, texts
        self._limits: dict[str, EventLimits] = {
            name: channel.event_limits for name, channel in channels.items() if channel.event_limits is not None
        }
        self._rates: dict[tuple[str, EventKind, bool], Limiter] = {}
        self._told: OrderedDict[tuple[str, str], int] = OrderedDict()
        """The people who were told, with the minute; beyond the bound the store knows it."""

    async def refuses(self, item: InboxItem) -> bool:
        """Tell whether an event is not to be kept; its sender is told once a minute."""
        limits = self._limits.get(item.channel)
        if limits is None or (self._is_in_rate(item, limits) and await self._has_room(item, limits)):
            return False
        if item.addressed:
            await self._tell(item)
        return True

    def _is_in_rate(self, item: InboxItem, limits: EventLimits) -> bool:
        if limits.per_caller is None:
            return True
        # Counted separately, so that a person at the limit of messages can still cancel, and what was not meant for us
        # takes nothing of what they may say to us.
        name = (item.channel, item.kind, item.addressed)
        limiter = self._rates.get(name)
        if limiter is None:
            given = Limits(per_caller=limits.per_caller, max_callers=limits.max_callers)
            limiter = self._rates[name] = Limiter(given)
        try:
            limiter.take(item.caller)
        except TooManyRequestsError:
            return False
        return True

    async def _has_room(self, item: InboxItem, limits: EventLimits) -> bool:
        most = limits.max_waiting_per_caller
        return most is None or item.kind == "control" or await self._store.inbox.count_waiting(item) < most

    async def _tell(self, item: InboxItem) -> None:
        who, minute = item.caller.identity.key, int(self._clock.now() // NOTICE_SECONDS)
        if self._told.get(who) == minute:
            return
        self._told[who] = minute
        self._told.move_to_end(who)
        if len(self._told) > _MOST_TOLD:
            self._told.popitem(last=False)
        log.warning("a person on %s sends more than the limits of the channel allow", item.channel)
        # All replicas make the same name of it, so that the person gets one reply.
        native_id = item.caller.identity.native_id
        text = self._texts.say("limits.too_many", locale_of(item.request, item.caller.identity))
        await self._reply(item.replace(event_id=f"limit:{minute}:{native_id}"), text, 0)
