"""Live messages: shows an answer while it is written."""

from typing import Protocol

import msgspec

from frontdesk.chat.growing import GrowingTexts
from frontdesk.chat.messages import Destination, OutboundMessage
from frontdesk.errors import PushNotEditableError, PushNotModifiedError
from frontdesk.interfaces.chat import LivePlace, LiveView

STREAM_EXPIRED = "stream_expired"
"""The code of the error of a message that takes no more updates."""


class Handle(msgspec.Struct, frozen=True, kw_only=True):
    message_id: str
    begins: int | None = None
    """The start of its text in the answer, if it goes on for a message that took no more updates."""


class LivePlatform(Protocol):
    """The platform calls needed for live messages."""

    async def send(self, message: OutboundMessage, destination: Destination, key: str) -> str | None: ...

    async def edit(self, message_id: str, message: OutboundMessage, destination: Destination) -> None: ...


def read_handle(text: str) -> Handle:
    return msgspec.json.decode(text, type=Handle) if text.startswith("{") else Handle(message_id=text)


class LiveMessage:
    def __init__(
        self, platform: LivePlatform, growing: GrowingTexts, place: LivePlace, destination: Destination
    ) -> None:
        self._platform = platform
        self._growing = growing
        self._place = place
        self._destination = destination

    async def open(self, view: LiveView, key: str) -> str | None:
        """Send the first message, as a reply in a group. Return its id."""
        details = self._place.details
        reply_to = details.get("reply_to", "") if details.get("chat_id") == self._place.conversation_id else ""
        tail = await self._growing.render(self._place, view.text, 0)
        if not tail.messages:
            return None
        first = msgspec.structs.replace(tail.messages[0], reply_to=reply_to, live=True, sequence=view.sequence + 1)
        return await self._platform.send(first, self._destination, key)

    async def update(self, handles: tuple[str, ...], view: LiveView) -> tuple[str, ...]:
        """Edit the last message, and send further ones for the rest of the text. Return all handles.

        If the last message no longer accepts edits, the rest continues in a new message.
        """
        begins, first = _begin(handles)
        text, known = view.text[begins:], handles[first:]
        tail = await self._growing.render(self._place, text, len(known))
        if known and len(known) <= tail.total:
            shown = _live(tail.messages[len(known) - 1 - tail.before], view)
            try:
                await self._platform.edit(read_handle(known[-1]).message_id, shown, self._destination)
            except PushNotModifiedError:
                if tail.total == len(known):
                    raise
            except PushNotEditableError as error:
                if error.code != STREAM_EXPIRED:
                    raise
                return await self._go_on(handles, view)
        for message in tail.after(len(known)):
            message_id = await self._send_more(handles, view, message)
            if message_id is None:
                break
            handles = (*handles, message_id)
        self._growing.note_sent(self._place, text, tail, len(handles) - first)
        return handles

    async def _go_on(self, handles: tuple[str, ...], view: LiveView) -> tuple[str, ...]:
        """Send the undisplayed text in a new message. What does not fit is sent by the next update."""
        tail = await self._growing.render(self._place, view.text[view.new_from :], 0)
        message_id = await self._send_more(handles, view, tail.messages[0]) if tail.messages else None
        if message_id is None:
            return handles
        handle = msgspec.json.encode(Handle(message_id=message_id, begins=view.new_from)).decode()
        return (*handles, handle)

    async def _send_more(self, handles: tuple[str, ...], view: LiveView, message: OutboundMessage) -> str | None:
        key = f"{handles[0] if handles else view.sequence}:{len(handles)}"
        return await self._platform.send(_live(message, view), self._destination, key)


def _live(message: OutboundMessage, view: LiveView) -> OutboundMessage:
    return msgspec.structs.replace(message, live=True, sequence=view.sequence + 1)


def _begin(handles: tuple[str, ...]) -> tuple[int, int]:
    """Return the text offset and the index of the last unbroken sequence of messages."""
    for number in range(len(handles) - 1, -1, -1):
        begins = read_handle(handles[number]).begins
        if begins is not None:
            return begins, number
    return 0, 0
