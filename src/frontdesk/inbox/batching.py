"""Merges quick successive messages of one sender, and the messages of an album, into one turn."""

from collections.abc import Mapping, Sequence

from agent_framework import Message

from frontdesk.clock import Clock
from frontdesk.framework.contents import as_messages
from frontdesk.interfaces.channel import Channel
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.delivery import EventKind, InboxItem
from frontdesk.models.request import ChannelRequest

MAX_BATCH_SIZE = 50
"""The most messages that are answered in one turn."""
_MAX_EXTENSIONS = 5
"""After how many times `gather_seconds`, or `album_seconds`, a message is answered, however many follow it."""


class MessageBatcher:
    """Delays messages to batch them with the following ones."""

    def __init__(self, store: HostStateStore, channels: Mapping[str, Channel], clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._seconds = {name: channel.gather_seconds for name, channel in channels.items() if channel.gather_seconds}
        self._album_seconds = {
            name: channel.album_seconds for name, channel in channels.items() if channel.album_seconds
        }

    def postpone(self, item: InboxItem) -> InboxItem:
        """Return an incoming event with the end of its batching delay."""
        seconds = self._seconds.get(item.channel, 0.0)
        if item.album_id is not None:
            seconds = max(seconds, self._album_seconds.get(item.channel, 0.0))
        if not seconds or not item.is_message or item.reply_by is not None:
            # Who waits on the wire has no time for more.
            return item
        now = self._clock.now()
        return item.replace(not_before=now + seconds, due_by=now + _MAX_EXTENSIONS * seconds)

    async def claim(
        self, channel: str, conversation_id: str, holder: str, kind: EventKind, *, again: bool = False
    ) -> InboxItem | float | None:
        """Claim the next event of a conversation, or return the time at which it is due if it is delayed.

        `again` is True directly after an answered event. Usually the queue is empty then, and a look is cheaper than a
        claim.
        """
        gathers, has_albums = channel in self._seconds, channel in self._album_seconds
        if kind != "turn" or not (gathers or has_albums):
            return await self._store.inbox.claim(channel, conversation_id, holder, kind=kind)
        now = self._clock.now()
        if again:
            due = await self._due(channel, conversation_id)
            if due is None or due > now:
                return due
        longest = _MAX_EXTENSIONS * max(self._seconds.get(channel, 0.0), self._album_seconds.get(channel, 0.0))
        item = await self._store.inbox.claim_bundle(
            channel,
            conversation_id,
            holder,
            now=now,
            longest=longest,
            limit=MAX_BATCH_SIZE,
            albums_only=not gathers,
        )
        if item is not None:
            return item
        due = await self._due(channel, conversation_id)
        return due if due is not None and due > now else None

    async def _due(self, channel: str, conversation_id: str) -> float | None:
        """Return the due time of the next turn of a conversation. 0 if it is not delayed, None if there is none."""
        first = await self._store.inbox.next(channel, conversation_id)
        if first is None:
            return None
        if first.not_before is None or first.due_by is None:
            return 0.0
        return min(first.not_before, first.due_by)


def merge(requests: Sequence[tuple[str | None, ChannelRequest | None]]) -> ChannelRequest | None:
    """Merge the requests of several messages. None if one requests nothing, or if they can't be merged.

    Each comes with the id of its album. Texts become the lines of one text, and neighbours of one album become one
    message. Everything else is taken from the last request, so that a reply refers to the last message.
    """
    given = [(album_id, request) for album_id, request in requests if request is not None]
    if len(given) < len(requests):
        return None
    _, last = given[-1]
    texts = [request.input for _, request in given if isinstance(request.input, str)]
    if len(texts) == len(given):
        return last.replace(input="\n".join(texts))
    turn: list[Message] = []
    open_album: str | None = None
    for album_id, request in given:
        messages = as_messages(request.input)
        if messages is None:
            return None
        if album_id is not None and album_id == open_album:
            turn[-1:] = [_join([turn[-1], *messages])]
        else:
            turn += messages
        open_album = album_id
    return last.replace(input=turn)


def _join(messages: Sequence[Message]) -> Message:
    contents = [content for message in messages for content in message.contents]
    first = messages[0]
    return Message(
        first.role,
        contents,
        author_name=first.author_name,
        message_id=first.message_id,
        additional_properties=first.additional_properties,
    )
