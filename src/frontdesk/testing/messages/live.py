"""Shows answers while they are written."""

from typing import Any

import msgspec

from frontdesk.abc.live import LivePlace, LiveView
from frontdesk.errors import PushNotEditableError, PushNotModifiedError
from frontdesk.kit.chat.text import split_text
from frontdesk.testing.messages.client import STREAM_EXPIRED, PlatformClient
from frontdesk.testing.messages.places import spot_of
from frontdesk.testing.messages.wire import Edit, Send, Typing


class Handle(msgspec.Struct, frozen=True, kw_only=True):
    """A message that shows a part of an answer."""

    message_id: str
    begins: int | None = None
    """Where its text begins in the answer, if it goes on for a message that took no more updates."""


def read_handle(text: str) -> Handle:
    """Read a handle: the id of a message, or JSON if it says more than that."""
    return msgspec.json.decode(text, type=Handle) if text.startswith("{") else Handle(message_id=text)


async def open_live(client: PlatformClient, place: LivePlace, view: LiveView, key: str, limit: int) -> str:
    """Send the first message, as a reply where a group was asked; return its id."""
    reply_to = place.details.get("reply_to", "") if place.details.get("chat_id") == place.conversation_id else ""
    text = _texts(view.text, limit)[0]
    send = Send(**_spot(place), text=text, reply_to=reply_to, idempotency_key=key, stream=True)
    return (await client.send(send)).message_id


async def update_live(
    client: PlatformClient, place: LivePlace, handles: tuple[str, ...], view: LiveView, limit: int
) -> tuple[str, ...]:
    """Change the last message, and send those that the text needs besides; return the handles of all.

    Where the last message takes no more updates, what is still to be said goes on in a new one.
    """
    begins, first = _begin(handles)
    texts, known = _texts(view.text[begins:], limit), handles[first:]
    if known and len(known) <= len(texts):
        try:
            await _edit(client, place, read_handle(known[-1]), texts[len(known) - 1])
        except PushNotModifiedError:
            if len(texts) == len(known):
                raise
        except PushNotEditableError as error:
            if error.code != STREAM_EXPIRED:
                raise
            return await _go_on(client, place, handles, view, limit)
    for text in texts[len(known) :]:
        handles = (*handles, await _send_more(client, place, handles, view, text))
    return handles


def _begin(handles: tuple[str, ...]) -> tuple[int, int]:
    """Return where the text of the last unbroken row of messages begins, and which of them is the first."""
    for number in range(len(handles) - 1, -1, -1):
        begins = read_handle(handles[number]).begins
        if begins is not None:
            return begins, number
    return 0, 0


async def _go_on(
    client: PlatformClient, place: LivePlace, handles: tuple[str, ...], view: LiveView, limit: int
) -> tuple[str, ...]:
    """Send what was not shown before in a new message; the next update shows what does not fit into it."""
    texts = _texts(view.text[view.new_from :], limit)
    if not texts:
        return handles
    message_id = await _send_more(client, place, handles, view, texts[0])
    handle = msgspec.json.encode(Handle(message_id=message_id, begins=view.new_from)).decode()
    return (*handles, handle)


async def _edit(client: PlatformClient, place: LivePlace, handle: Handle, text: str) -> None:
    chat_id, _, user_id = spot_of(place.identity, place.conversation_id)
    await client.edit(Edit(chat_id=chat_id, user_id=user_id, message_id=handle.message_id, text=text, stream=True))


async def _send_more(
    client: PlatformClient, place: LivePlace, handles: tuple[str, ...], view: LiveView, text: str
) -> str:
    key = f"{handles[0] if handles else view.sequence}:{len(handles)}"
    send = Send(**_spot(place), text=text, idempotency_key=key, stream=True)
    return (await client.send(send)).message_id


def typing_at(place: LivePlace, *, on: bool) -> Typing:
    """Return the call that shows whether the bot is writing."""
    return Typing(**_spot(place), on=on)


def _spot(place: LivePlace) -> dict[str, Any]:
    return spot_of(place.identity, place.conversation_id)._asdict()


def _texts(text: str, limit: int) -> list[str]:
    return [part for part in split_text(text, limit) if part.strip()]
