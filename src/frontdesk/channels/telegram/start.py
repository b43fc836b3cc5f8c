"""`/start`, with which every private chat begins, and what the links that lead there say."""

from typing import Any

from frontdesk.abc.channel import ChannelCommand, ChannelCommandContext, ChannelContext
from frontdesk.errors import RequestError
from frontdesk.kit.chat.commands import locale_of
from frontdesk.kit.chat.session_commands import described_command

LINK = "link"
"""What a link from a group says behind `?start=`: that the person wants to link their account."""


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
        if said == LINK and not call.request.group:
            return await call.reply(await _challenge(context, call))
        await call.reply(context.texts.say("start.hello", locale_of(call.request, call.caller.identity)))

    return described_command(context, "start", start)


async def _challenge(context: ChannelContext, call: ChannelCommandContext) -> str:
    try:
        challenge = await context.begin_link(call.caller)
    except RequestError as error:
        return error.message
    return "\n".join(filter(None, (challenge.instructions, challenge.url)))
