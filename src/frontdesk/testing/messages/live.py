"""Shows answers while they are written."""

from frontdesk.abc.live import LivePlace, LiveView
from frontdesk.errors import PushNotModifiedError
from frontdesk.kit.chat.text import split_text
from frontdesk.testing.messages.client import PlatformClient
from frontdesk.testing.messages.wire import Edit, Send, Typing


async def open_live(client: PlatformClient, place: LivePlace, view: LiveView, key: str, limit: int) -> str:
    """Send the first message, as a reply where a group was asked; return its id."""
    chat_id, user_id = _address(place)
    reply_to = place.details.get("reply_to", "") if place.details.get("chat_id") == chat_id else ""
    text = _texts(view, limit)[0]
    send = Send(chat_id=chat_id, user_id=user_id, text=text, reply_to=reply_to, idempotency_key=key)
    return (await client.send(send)).message_id


async def update_live(
    client: PlatformClient, place: LivePlace, handles: tuple[str, ...], view: LiveView, limit: int
) -> tuple[str, ...]:
    """Change the last message, and send those that the text needs besides; return the ids of all."""
    chat_id, user_id = _address(place)
    texts, known = _texts(view, limit), list(handles)
    if known and len(known) <= len(texts):
        last = len(known) - 1
        edit = Edit(chat_id=chat_id, user_id=user_id, message_id=known[last], text=texts[last])
        try:
            await client.edit(edit)
        except PushNotModifiedError:
            if len(texts) == len(known):
                raise
    for number in range(len(known), len(texts)):
        key = f"{handles[0] if handles else view.sequence}:{number}"
        send = Send(chat_id=chat_id, user_id=user_id, text=texts[number], idempotency_key=key)
        known.append((await client.send(send)).message_id)
    return tuple(known)


def typing_at(place: LivePlace, *, on: bool) -> Typing:
    """Return the call that shows whether the bot is writing."""
    chat_id, user_id = _address(place)
    return Typing(chat_id=chat_id, user_id=user_id, on=on)


def _address(place: LivePlace) -> tuple[str, str]:
    return (place.conversation_id, "") if place.conversation_id is not None else ("", place.identity.native_id)


def _texts(view: LiveView, limit: int) -> list[str]:
    return [text for text in split_text(view.text, limit) if text.strip()]
