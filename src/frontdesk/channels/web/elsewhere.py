"""Messages of other channels in a conversation of the page, read from the history of its session."""

from contextlib import suppress
from typing import Any

from agent_framework import Content, Message

from frontdesk.abc.channel import ChannelContext
from frontdesk.channels.web.parse import session_key
from frontdesk.channels.web.render import storable
from frontdesk.channels.web.wire import MAIN, Elsewhere, Overheard, ShownFile
from frontdesk.data.identity import Caller
from frontdesk.data.transcript import TranscriptMessage
from frontdesk.errors import LinkRequiredError, NotFoundError, UnsupportedError
from frontdesk.kit.framework.contents import file_name

TURNS = 50
_LONGEST = 32_000
"""The number of characters that are shown of one message."""
NOTHING = Elsewhere()


async def read_elsewhere(
    context: ChannelContext, channel: str, caller: Caller, chat: str, before: int | None = None
) -> Elsewhere:
    """Return what a person has said and heard elsewhere, of the last turns or of those before a position.

    What is in the mailbox already is left out, and so is all of a person who has no account elsewhere.
    """
    with suppress(LinkRequiredError, NotFoundError, UnsupportedError):
        others = (await context.whoami(caller)).others
        if all(other.channel == channel for other in others):
            return NOTHING
        key = None if chat == MAIN else session_key(chat)
        page = await context.transcript(caller, key=key, before=before, limit=TURNS)
        times = [said.at for said in page.messages if said.at is not None]
        # Of what was said before the first time that is known, it is only known that it was earlier.
        first = min(times, default=0.0)
        messages = [
            shown
            for place, said in enumerate(page.messages)
            if channel not in said.shown_on
            and (shown := _shown(said, f"{page.before or 0}.{place}", first)) is not None
        ]
        return Elsewhere(messages=messages, before=page.before, since=first if page.before is not None else 0.0)
    return NOTHING


def _shown(said: TranscriptMessage, place: str, first: float) -> Overheard | None:
    """Return a message as the page shows it; `None` for what nobody has said, such as the result of a tool."""
    message: Message = said.message
    if message.role not in ("user", "assistant") or said.channel is None:
        return None
    text = storable("".join(content.text or "" for content in message.contents if content.type == "text"))[:_LONGEST]
    files = tuple(_file(content) for content in message.contents if content.type == "data")
    if not text.strip() and not files:
        return None
    at = first if said.at is None else said.at
    role: Any = message.role
    return Overheard(id=place, role=role, at=at, origin=said.channel, text=text, files=files)


def _file(content: Content) -> ShownFile:
    """Return the name of a file; its bytes are another channel's."""
    return ShownFile(id="", media_type=storable(content.media_type or ""), name=storable(file_name(content)))
