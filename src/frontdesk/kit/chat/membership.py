"""The bot comes and goes: it is added to a group or removed, and blocked or unblocked by a person."""

from collections.abc import Callable

import msgspec

from frontdesk.abc.channel import ChannelContext
from frontdesk.kit.chat.messages import Command, Destination, InboundMessage, MembershipChange

GREETING = "greeting"
"""The attribute of a command that nobody has typed: the bot greets the group that it was added to."""


async def give_up(context: ChannelContext, change: MembershipChange) -> None:
    """End what waits to be sent to a place that is closed to the bot; the platform would refuse it later."""
    place = change.place
    name = place.user_id or place.chat_id if place.kind == "direct" else place.conversation_id
    threads = thread_of(place) if place.kind == "group" and not place.thread_id else None
    await context.end_deliveries(name, reason=change.reason, before=change.at, also=threads)


def thread_of(place: Destination) -> Callable[[str], bool]:
    """Return the test whether the name of a conversation is that of a thread in a chat."""

    def is_thread(name: str) -> bool:
        try:
            thread = Destination.from_conversation_id(name)
        except msgspec.MsgspecError:
            return False
        return bool(thread.thread_id) and thread.chat_id == place.chat_id

    return is_thread


def greeting(change: MembershipChange) -> InboundMessage | None:
    """Return the command `/help` in the name of the person who has added the bot to a group; `None` if nobody has."""
    if not change.present or change.by is None or change.place.kind != "group":
        return None
    return InboundMessage(
        event_id=change.event_id,
        at=change.at,
        sender=change.by,
        place=change.place,
        mentioned=True,
        command=Command(name="help"),
        attributes={GREETING: True},
    )
