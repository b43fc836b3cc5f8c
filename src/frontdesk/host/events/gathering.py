"""Messages that one person sends in quick succession, answered as one turn."""

from collections.abc import Mapping, Sequence

from frontdesk.abc.channel import Channel
from frontdesk.abc.store import HostStateStore
from frontdesk.clock import Clock
from frontdesk.data.delivery import EventKind, InboxItem
from frontdesk.data.request import ChannelRequest
from frontdesk.kit.framework.messages import as_messages

MOST_TOGETHER = 50
"""How many messages are answered in one turn."""
_LONGEST = 5
"""After how many times `gather_seconds` a message is answered, however many follow it."""


class Gathering:
    """Lets messages wait for those that follow, and takes them up together."""

    def __init__(self, store: HostStateStore, channels: Mapping[str, Channel], clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._seconds = {name: channel.gather_seconds for name, channel in channels.items() if channel.gather_seconds}

    def postponed(self, item: InboxItem) -> InboxItem:
        """Return an event that comes in, with the time until which more is waited for."""
        seconds = self._seconds.get(item.channel)
        if seconds is None or not item.is_message or item.reply_by is not None:
            # Who waits on the wire has no time for more.
            return item
        now = self._clock.now()
        return item.replace(not_before=now + seconds, due_by=now + _LONGEST * seconds)

    async def claim(self, channel: str, conversation_id: str, holder: str, kind: EventKind) -> InboxItem | None:
        """Take up the next event of a conversation, if it is due."""
        seconds = self._seconds.get(channel)
        if seconds is None or kind == "control":
            return await self._store.inbox.claim(channel, conversation_id, holder, kind=kind)
        now, longest = self._clock.now(), _LONGEST * seconds
        return await self._store.inbox.claim_bundle(
            channel, conversation_id, holder, now=now, longest=longest, limit=MOST_TOGETHER
        )

    async def due(self, channel: str, conversation_id: str, kind: EventKind) -> float | None:
        """Return when the next turn of a conversation is due, if it waits for more."""
        if kind == "control" or channel not in self._seconds:
            return None
        first = await self._store.inbox.next(channel, conversation_id)
        if first is None or first.not_before is None or first.due_by is None:
            return None
        due = min(first.not_before, first.due_by)
        return due if due > self._clock.now() else None


def merged(requests: Sequence[ChannelRequest | None]) -> ChannelRequest | None:
    """Make one request of those of several messages; `None` if one asks nothing, or they can't be put together.

    Texts become the lines of one text. All else is that of the last, so that a reply is one to the last message.
    """
    given = [request for request in requests if request is not None]
    if len(given) < len(requests):
        return None
    texts = [request.input for request in given if isinstance(request.input, str)]
    if len(texts) == len(given):
        return given[-1].replace(input="\n".join(texts))
    messages = [as_messages(request.input) for request in given]
    if any(many is None for many in messages):
        return None
    return given[-1].replace(input=[message for many in messages for message in many or ()])
