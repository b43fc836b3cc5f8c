"""Shows answers while they are written."""

from typing import Protocol

import msgspec

from frontdesk.abc.live import LivePlace, LiveView
from frontdesk.errors import PushNotEditableError, PushNotModifiedError
from frontdesk.kit.chat.messages import Destination, OutboundMessage
from frontdesk.kit.chat.rendering import Renderer

STREAM_EXPIRED = "stream_expired"
"""The code of the error of a message that takes no more updates."""


class Handle(msgspec.Struct, frozen=True, kw_only=True):
    """A message that shows a part of an answer."""

    message_id: str
    begins: int | None = None
    """The start of its text in the answer, if it goes on for a message that took no more updates."""


class LivePlatform(Protocol):
    """The calls that showing an answer needs."""

    async def send(self, message: OutboundMessage, destination: Destination, key: str) -> str | None:
        """Send a message."""
        ...

    async def edit(self, message_id: str, message: OutboundMessage, destination: Destination) -> None:
        """Change a message."""
        ...


def read_handle(text: str) -> Handle:
    """Read a handle: the id of a message, or JSON if it says more than that."""
    return msgspec.json.decode(text, type=Handle) if text.startswith("{") else Handle(message_id=text)


class LiveAnswer:
    """An answer that is being written, in one place."""

    def __init__(self, platform: LivePlatform, renderer: Renderer, destination: Destination) -> None:
        self._platform = platform
        self._renderer = renderer
        self._destination = destination

    async def open(self, place: LivePlace, view: LiveView, key: str) -> str | None:
        """Send the first message, as a reply where a group was asked; return its id."""
        reply_to = place.details.get("reply_to", "") if place.details.get("chat_id") == place.conversation_id else ""
        messages = self._messages(view.text)
        if not messages:
            return None
        return await self._platform.send(
            msgspec.structs.replace(messages[0], reply_to=reply_to), self._destination, key
        )

    async def update(self, handles: tuple[str, ...], view: LiveView) -> tuple[str, ...]:
        """Change the last message, and send those that the text needs besides; return the handles of all.

        Where the last message takes no more updates, what is still to be said goes on in a new one.
        """
        begins, first = _begin(handles)
        messages, known = self._messages(view.text[begins:]), handles[first:]
        if known and len(known) <= len(messages):
            try:
                await self._platform.edit(
                    read_handle(known[-1]).message_id, messages[len(known) - 1], self._destination
                )
            except PushNotModifiedError:
                if len(messages) == len(known):
                    raise
            except PushNotEditableError as error:
                if error.code != STREAM_EXPIRED:
                    raise
                return await self._go_on(handles, view)
        for message in messages[len(known) :]:
            message_id = await self._send_more(handles, view, message)
            if message_id is None:
                break
            handles = (*handles, message_id)
        return handles

    async def _go_on(self, handles: tuple[str, ...], view: LiveView) -> tuple[str, ...]:
        """Send what was not shown before in a new message; the next update shows what does not fit into it."""
        messages = self._messages(view.text[view.new_from :])
        message_id = await self._send_more(handles, view, messages[0]) if messages else None
        if message_id is None:
            return handles
        handle = msgspec.json.encode(Handle(message_id=message_id, begins=view.new_from)).decode()
        return (*handles, handle)

    async def _send_more(self, handles: tuple[str, ...], view: LiveView, message: OutboundMessage) -> str | None:
        key = f"{handles[0] if handles else view.sequence}:{len(handles)}"
        return await self._platform.send(message, self._destination, key)

    def _messages(self, text: str) -> list[OutboundMessage]:
        shown = self._renderer.markdown(text, partial=True)
        return [msgspec.structs.replace(message, live=True) for message in shown]


def _begin(handles: tuple[str, ...]) -> tuple[int, int]:
    """Return where the text of the last unbroken row of messages begins, and which of them is the first."""
    for number in range(len(handles) - 1, -1, -1):
        begins = read_handle(handles[number]).begins
        if begins is not None:
            return begins, number
    return 0, 0
