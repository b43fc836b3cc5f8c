"""`/start`, with which every private chat begins, and what the links that lead there say."""

from typing import Any

from frontdesk.abc.channel import ChannelCommand, ChannelCommandContext, ChannelContext
from frontdesk.errors import RequestError
from frontdesk.kit.chat.commands import locale_of
from frontdesk.kit.chat.replies import challenge_text
from frontdesk.kit.chat.session_commands import described_command
from frontdesk.kit.chat.wording import Wording

LINK = "link"
"""The payload behind `?start=` of a link from a group: the person wants to link their account."""


def deep_link(bot_name: str, payload: str = LINK) -> str:
    """Return the URL that opens the private chat with the bot, and sends `/start` there."""
    return f"https://t.me/{bot_name}?start={payload}"


def start_command(context: ChannelContext) -> ChannelCommand:
    """Return the command.

    It begins to link an account, and never completes that: whoever makes somebody press a link with a code of theirs
    would get the account of that person.
    """

    async def start(call: ChannelCommandContext) -> None:
        said: Any = call.request.input
        wording = Wording(context.texts, locale_of(call.request, call.caller.identity))
        if said != LINK or call.request.group:
            return await call.reply(wording.say("start.hello"))
        try:
            challenge = challenge_text(await context.begin_link(call.caller))
        except RequestError as error:
            challenge = wording.error(error)
        await call.reply(challenge)

    return described_command(context, "start", start)
