"""Commands of a chat: one call of a command, and the usual ones."""

from collections.abc import Awaitable, Callable
from typing import Any

from frontdesk.abc.channel import ChannelCommand, ChannelCommandContext, ChannelContext
from frontdesk.abc.commands import CommandState
from frontdesk.data.delivery import InboxItem
from frontdesk.data.reply import Reply
from frontdesk.data.request import ChannelRequest, ChannelSession
from frontdesk.data.result import HostedRunResult
from frontdesk.kit.chat.commands import locale_of, scope_of
from frontdesk.kit.chat.membership import GREETING
from frontdesk.kit.chat.session_commands import described_command, session_commands


class CommandCall:
    """One call of a command, as its handler sees it; `args` is what was written behind the name."""

    def __init__(
        self, item: InboxItem, context: ChannelContext, reply: Callable[[Reply | str], Awaitable[None]]
    ) -> None:
        self.request: ChannelRequest = item.request
        self.caller = item.caller
        self.session: ChannelSession | None = item.request.session
        self.state: CommandState
        self.raw_event: Any = item.request.attributes.get("event")
        self.event: InboxItem | None = item
        self.name: str = item.request.attributes["command"]
        self.args: str = item.request.input
        self._context = context
        self._reply = reply

    async def reply(self, reply: Reply | str, /) -> None:
        """Answer the command."""
        await self._reply(reply)

    async def run(self, request: ChannelRequest) -> HostedRunResult[Any]:
        """Run the target for the caller."""
        return await self._context.run(request, self.caller, protocol_request=self.raw_event)


def help_command(context: ChannelContext) -> ChannelCommand:
    """Return the command that lists what can be used where it is asked."""

    async def explain(call: ChannelCommandContext) -> None:
        locale = locale_of(call.request, call.caller.identity)
        commands = context.commands(scope=scope_of(call.request), locale=locale)
        shown = [command for command in commands if command.expose_in_ui]
        listed = "\n".join(f"/{command.name} - {command.description}" for command in shown)
        greeted = GREETING in call.request.attributes
        await call.reply(f"{context.texts.say('greeting.group', locale)}\n\n{listed}" if greeted else listed)

    return described_command(context, "help", explain, control=True)


def usual_commands(context: ChannelContext) -> list[ChannelCommand]:
    """Return the commands that every chat has, and `/help`."""
    return [*session_commands(context), help_command(context)]
