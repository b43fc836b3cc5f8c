"""The commands of linking, which the host adds to message channels when it has a linker."""

from collections.abc import Awaitable, Callable, Sequence

from frontdesk.abc.channel import Channel, ChannelCommand, ChannelCommandContext
from frontdesk.access.links import PARTED
from frontdesk.data.link import LinkChallenge, LinkRecord
from frontdesk.data.reply import Reply
from frontdesk.errors import ChannelConfigurationError, RequestError, TooManyRequestsError
from frontdesk.host.context.link_calls import LinkCalls
from frontdesk.host.direct_notifier import DirectNotifier
from frontdesk.host.links.names import WORDS, command_name
from frontdesk.kit.chat.commands import names_of
from frontdesk.kit.chat.people import told_as

_IN_PRIVATE = "Please ask me that in a direct chat."
_ANSWERED = "I have answered you in our direct chat."
_LINKED = "Done: your accounts share one conversation now."
_GIVEN_UP = "Nothing was linked."
_ALONE = "This account is not linked."


def link_commands(channel: Channel, calls: LinkCalls, notifier: DirectNotifier) -> Sequence[ChannelCommand]:
    """Return the commands, by the names that they have on this channel."""
    commands = _Commands(calls, notifier)
    handlers = {"link": commands.link, "connect": commands.link, "unlink": commands.unlink, "whoami": commands.whoami}
    return [
        ChannelCommand(
            name=name,
            description=WORDS[word],
            handler=handler,
            expose_in_ui=word != "connect",
            # The others change whose the messages before them are, and wait for their turn.
            control=word == "whoami",
        )
        for word, handler in handlers.items()
        if (name := command_name(channel, word)) is not None
    ]


def need_own_names(channel: str, own: Sequence[ChannelCommand], added: Sequence[ChannelCommand]) -> None:
    """Refuse a channel that has a command of one of these names already."""
    names = {name for command in own for name in names_of(command)}
    wrong = [
        f"channel {channel!r}: it has a command {command.name!r} of its own; "
        "rename or hide the host's with link_commands="
        for command in added
        if command.name in names
    ]
    if wrong:
        raise ChannelConfigurationError(wrong)


class _Commands:
    def __init__(self, calls: LinkCalls, notifier: DirectNotifier) -> None:
        self._calls = calls
        self._notifier = notifier

    async def link(self, context: ChannelCommandContext) -> None:
        await self._answer(context, self._link)

    async def unlink(self, context: ChannelCommandContext) -> None:
        await self._answer(context, self._unlink)

    async def whoami(self, context: ChannelCommandContext) -> None:
        await self._answer(context, self._whoami)

    async def _answer(
        self, context: ChannelCommandContext, act: Callable[[ChannelCommandContext], Awaitable[str]]
    ) -> None:
        """Answer one person alone: in a group through their direct chat, or not at all if there is none."""
        who = context.caller.identity
        if not context.request.group:
            return await context.reply(await _outcome(act, context))
        if not self._notifier.can_tell(who):
            return await context.reply(_IN_PRIVATE)
        text = await _outcome(act, context)
        if context.event is not None:
            # Both are written with the end of the event, so that a retry after a crash says neither twice.
            await context.reply(Reply(text, to="direct"))
            return await context.reply(_ANSWERED)
        await context.reply(_ANSWERED if await self._notifier.tell(who, text) else _IN_PRIVATE)

    async def _link(self, context: ChannelCommandContext) -> str:
        text = context.request.input
        proof = text.strip() if isinstance(text, str) else ""
        if not proof:
            return _shown(await self._calls.begin_link(context.caller))
        ended = await self._calls.complete_link(context.caller, proof)
        if isinstance(ended, LinkRecord):
            return _LINKED
        return _GIVEN_UP if ended is None else _shown(ended)

    async def _unlink(self, context: ChannelCommandContext) -> str:
        return PARTED if await self._calls.unlink(context.caller) else _ALONE

    async def _whoami(self, context: ChannelCommandContext) -> str:
        person = await self._calls.whoami(context.caller)
        channels = ", ".join(dict.fromkeys(identity.channel for identity in person.others))
        linked = f"Linked with {channels}." if channels else "Linked." if person.linked else "Not linked."
        return f"You are {told_as(person.identity)}. {linked}"


async def _outcome(act: Callable[[ChannelCommandContext], Awaitable[str]], context: ChannelCommandContext) -> str:
    try:
        return await act(context)
    except TooManyRequestsError as error:
        minutes = max(1, round((error.retry_after or 60) / 60))
        return f"Too many attempts. Try again in {minutes} {'minute' if minutes == 1 else 'minutes'}."
    except RequestError as error:
        return error.message


def _shown(challenge: LinkChallenge) -> str:
    return challenge.instructions if challenge.url is None else f"{challenge.instructions}\n{challenge.url}"
