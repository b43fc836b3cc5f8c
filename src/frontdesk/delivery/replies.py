"""Finds how a reply can be shown by the channel of its event."""

from collections.abc import Sequence
from typing import Any

from frontdesk.abc.channel import Channel
from frontdesk.abc.events import RendersReplies
from frontdesk.data.delivery import InboxItem
from frontdesk.data.reply import Reply
from frontdesk.delivery.push import call_channel


def place_reply(channel: Channel, item: InboxItem, reply: Reply) -> tuple[Reply, Sequence[Any] | None]:
    """Return a reply with the place where it can be shown, and its parts if the channel makes them itself."""
    if not isinstance(channel, RendersReplies):
        return (reply.replace(to="direct") if reply.to == "only_me" else reply), None
    parts: Sequence[Any] | None = call_channel(lambda: channel.reply_parts(item, reply))
    if parts is None:
        direct = reply.replace(to="direct")
        return direct, list(call_channel(lambda: channel.reply_parts(item, direct)) or ())
    return reply, list(parts)
