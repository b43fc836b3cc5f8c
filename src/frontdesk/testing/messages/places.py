"""Names the conversations of the platform: its chats, and the threads in them. Pure."""

from typing import NamedTuple

import msgspec

from frontdesk.data.identity import ChannelIdentity


class Spot(NamedTuple):
    """Where a message goes: a chat, perhaps a thread in it, or else a user's direct chat."""

    chat_id: str = ""
    thread_id: str = ""
    user_id: str = ""


def conversation_of(chat_id: str, thread_id: str = "") -> str:
    """Return the name of a conversation: the id of a chat, or JSON for a thread."""
    if not thread_id and not chat_id.startswith("["):
        return chat_id
    return msgspec.json.encode((chat_id, thread_id)).decode()


def spot_of(identity: ChannelIdentity, conversation_id: str | None) -> Spot:
    """Return where a conversation is; the person's direct chat without one."""
    if conversation_id is None:
        return Spot(user_id=identity.native_id)
    if not conversation_id.startswith("["):
        return Spot(chat_id=conversation_id)
    return Spot(*msgspec.json.decode(conversation_id, type=tuple[str, str]))
