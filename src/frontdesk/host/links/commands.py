"""The link commands, which the host adds to message channels if it has a linker."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from frontdesk.chat.commands import list_names, parse_locale
from frontdesk.chat.i18n.texts import Texts
from frontdesk.chat.i18n.wording import Wording, person_phrase
from frontdesk.delivery.proactive import DirectNotifier
from frontdesk.errors import ChannelConfigurationError, RequestError, TooManyRequestsError
from frontdesk.host.links.names import command_name
from frontdesk.interfaces.channel import Channel, ChannelCommand, ChannelCommandContext
from frontdesk.interfaces.context_groups import LinksContext
from frontdesk.models.link import LinkChallenge, LinkRecord
from frontdesk.models.reply import Reply


def link_commands(
    channel: Channel, calls: LinksContext, notifier: DirectNotifier, texts: Texts
) -> Sequence[ChannelCommand]:
    """Return the link commands, by their names on this channel."""
    commands = _Commands(calls, notifier, texts)
    handlers = {"link": commands.link, "connect": commands.link, "unlink": commands.unlink, "whoami": commands.whoami}
    return [
        ChannelCommand(
            name=name,
            description=texts.described(f"command.{word}")[0],
            locales=texts.described(f"command.{word}")[1],
            handler=handler,
            expose_in_ui=word != "connect",
            # The others change whose the messages before them are, and wait for their turn.
            control=word == "whoami",
        )
        for word, handler in handlers.items()
        if (name := command_name(channel, word)) is not None
    ]


def require_unique_names(channel: str, own: Sequence[ChannelCommand], added: Sequence[ChannelCommand]) -> None:
    """Reject a channel that already has a command with one of these names."""
    names = {name for command in own for name in list_names(command)}
    wrong = [
        f"channel {channel!r}: it has a command {command.name!r} of its own; "
        "rename or hide the host's with link_commands="
        for command in added
        if command.name in names
    ]
    if wrong:
        raise ChannelConfigurationError(wrong)


class _Commands:
    def __init__(self, calls: LinksContext, notifier: DirectNotifier, texts: Texts) -> None:
        self._calls = calls
        self._notifier = notifier
        self._texts = texts

    async def link(self, context: ChannelCommandContext) -> None:
        await self._answer(context, self._link)

    async def unlink(self, context: ChannelCommandContext) -> None:
        await self._answer(context, self._unlink)

    async def whoami(self, context: ChannelCommandContext) -> None:
        await self._answer(context, self._whoami)

    async def _answer(
        self, context: ChannelCommandContext, act: Callable[[ChannelCommandContext], Awaitable[str]]
    ) -> None:
        """Answer one person privately: in a group through their direct chat, or not at all if there is none."""
        who = context.caller.identity
        if not context.request.group:
            return await context.reply(await self._outcome(act, context))
        if not self._notifier.can_tell(who):
            return await context.reply(self._say(context, "link.in_private"))
        text = await self._outcome(act, context)
        if context.event is not None:
            # Both are written with the end of the event, so that a retry after a crash says neither twice.
            await context.reply(Reply(text, to="direct"))
            return await context.reply(self._say(context, "link.answered"))
        sent = await self._notifier.tell(who, text)
        await context.reply(self._say(context, "link.answered" if sent else "link.in_private"))

    async def _link(self, context: ChannelCommandContext) -> str:
        text = context.request.input
        proof = text.strip() if isinstance(text, str) else ""
        if not proof:
            return _format_challenge(await self._calls.begin(context.caller))
        ended = await self._calls.complete(context.caller, proof)
        if isinstance(ended, LinkRecord):
            return self._say(context, "link.linked")
        return self._say(context, "link.given_up") if ended is None else _format_challenge(ended)

    async def _unlink(self, context: ChannelCommandContext) -> str:
        return self._say(context, "link.parted" if await self._calls.unlink(context.caller) else "link.alone")

    async def _whoami(self, context: ChannelCommandContext) -> str:
        person = await self._calls.whoami(context.caller)
        channels = ", ".join(dict.fromkeys(identity.channel for identity in person.others))
        key = "link.whoami_linked_with" if channels else "link.whoami_linked" if person.linked else "link.whoami"
        return self._say(context, key, person=person_phrase(person.identity), channels=channels)

    async def _outcome(
        self, act: Callable[[ChannelCommandContext], Awaitable[str]], context: ChannelCommandContext
    ) -> str:
        try:
            return await act(context)
        except TooManyRequestsError as error:
            minutes = max(1, round((error.retry_after or 60) / 60))
            return self._say(context, "link.too_many_now" if minutes == 1 else "link.too_many", minutes=minutes)
        except RequestError as error:
            return Wording(self._texts, _locale(context)).error(error)

    def _say(self, context: ChannelCommandContext, key: str, **values: Any) -> str:
        return self._texts.say(key, _locale(context), **values)


def _locale(context: ChannelCommandContext) -> str | None:
    return parse_locale(context.request, context.caller.identity)


def _format_challenge(challenge: LinkChallenge) -> str:
    return challenge.instructions if challenge.url is None else f"{challenge.instructions}\n{challenge.url}"
