"""The calls about commands, for a channel: a command runs for a caller who may use it where they are."""

from collections.abc import Sequence

from frontdesk.abc.channel import ChannelCommand, ChannelCommandContext
from frontdesk.abc.commands import CommandScope
from frontdesk.data.request import ChannelSession
from frontdesk.host.channel_state.command_state import HostCommandState
from frontdesk.host.context.channel_calls import ChannelCalls
from frontdesk.host.parts import Parts
from frontdesk.kit.chat.commands import locale_of, names_of, offered, out_of_scope, scope_of
from frontdesk.kit.hooks import call_command


class CommandCalls(ChannelCalls):
    """The part of a `ChannelContext` that is about commands."""

    def __init__(self, channel: str, parts: Parts) -> None:
        super().__init__(channel, parts)
        self._commands: dict[str, ChannelCommand] = {}
        self._by_name: dict[str, ChannelCommand] = {}
        """The commands by all of their names, in every language."""
        self._before_link: set[str] = set()

    def add_commands(self, commands: Sequence[ChannelCommand], *, before_link: bool = False) -> None:
        """Add commands of this channel; those of linking can be used before an account is linked."""
        for command in commands:
            self._commands[command.name] = command
            self._by_name.update(dict.fromkeys(names_of(command), command))
        if before_link:
            self._before_link.update(command.name for command in commands)

    def commands(self, *, scope: CommandScope | None = None, locale: str | None = None) -> Sequence[ChannelCommand]:
        return offered(self._commands.values(), scope, locale)

    def find_command(self, name: str) -> ChannelCommand | None:
        return self._by_name.get(name)

    async def run_command(self, name: str, context: ChannelCommandContext) -> bool:
        command = self.find_command(name)
        owner = None
        if command is not None and command.name in self._before_link:
            await self._not_denied(context.caller)
        else:
            owner = (await self._allowed(context.caller)).isolation_key
        if command is None:
            return False
        refusal = out_of_scope(command, scope_of(context.request))
        if refusal is not None:
            locale = locale_of(context.request, context.caller.identity)
            await context.reply(self._parts.texts.say(refusal, locale, name=name))
            return True
        await self._equip(context, owner)
        await call_command(command, context)
        return True

    async def _equip(self, context: ChannelCommandContext, owner: str | None) -> None:
        """Give a command its state, and the session that the host tracks."""
        request, parts = context.request, self._parts
        group = request.conversation_id if request.group else None
        native_id = context.caller.identity.native_id
        context.state = HostCommandState(parts.storages, parts.aliases, self.channel, native_id, group)
        tracks = parts.channels[self.channel].session_family == "host_tracked"
        if tracks and context.session is None and owner is not None:
            record = await self._store.sessions.find(await self._tracked_by(owner, group))
            context.session = None if record is None else ChannelSession(session_id=record.session_id)
