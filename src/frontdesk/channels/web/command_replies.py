"""Processes queued events of the page: messages, commands, choices and cancellation requests."""

from collections.abc import Collection, Sequence

from frontdesk.channels.web.mailbox import MAX_TITLE_LENGTH, Mailbox, MessageRef
from frontdesk.channels.web.parse import COMMAND, STOP, VISITOR, parse_chat, parse_said
from frontdesk.channels.web.render import challenge_text
from frontdesk.channels.web.wire import MAIN
from frontdesk.chat.commands import parse_locale
from frontdesk.chat.i18n.wording import Wording
from frontdesk.chat.session_commands import CommandCall, help_command, session_commands
from frontdesk.errors import LinkRequiredError, RequestError
from frontdesk.interfaces.channel import ChannelCommand, ChannelContext
from frontdesk.markdown.plain_text import one_line
from frontdesk.models.delivery import InboxItem
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.reply import Reply
from frontdesk.models.request import ChannelRequest

_NEW = "new"


def page_commands(context: ChannelContext) -> list[ChannelCommand]:
    """Return the commands that can be typed on the page. The page has buttons for the others."""
    typed = [command for command in session_commands(context) if command.name in (_NEW, "cancel")]
    return [*typed, help_command(context)]


async def show_said(mailbox: Mailbox, item: InboxItem, *, busy_until: float = 0.0) -> int | None:
    """Add the message of an event to its conversation, once per event. Return its number."""
    said = parse_said(item)
    if said is None:
        return None
    chat, message = said
    title = "" if chat == MAIN else one_line(message.text[: 4 * MAX_TITLE_LENGTH])[:MAX_TITLE_LENGTH]
    return await mailbox.add(
        MessageRef(item.caller.identity.native_id, chat), message, title=title, busy_until=busy_until
    )


async def prepare(context: ChannelContext, item: InboxItem, linking: Collection[str]) -> ChannelRequest | None:
    """Return the request of an event for the target, or None if it is done. `linking` are the link commands."""
    request = item.request
    if request.attributes.get(STOP):
        await context.events.cancel_turns(item)
        return None
    if request.operation != "command":
        return request
    count = 0

    async def reply(said: Reply | str) -> None:
        nonlocal count
        count += 1
        await context.events.reply(item, said, number=count)

    name = str(request.attributes[COMMAND])
    command = context.find_command(name)
    # Only the main conversation is the person's tracked one; beside it, another is begun by a button.
    call = CommandCall(item, context, reply)
    if command is not None and command.name in linking and VISITOR in request.attributes:
        # They are about the visitor of the cookie, and not about the one who stands for all of the person's.
        call.caller = Caller(identity=ChannelIdentity(item.channel, str(request.attributes[VISITOR])))
    elsewhere = command is not None and command.name == _NEW and parse_chat(item.conversation_id) != MAIN
    if elsewhere or not await context.run_command(name, call):
        locale = parse_locale(request, item.caller.identity)
        await reply(context.texts.say("command.unknown", locale, name=name))
    return None


async def refuse(context: ChannelContext, item: InboxItem, error: RequestError) -> Sequence[Reply]:
    """Return the reason why there is no answer, or how to get one."""
    if item.request.attributes.get(STOP):
        return []
    if not isinstance(error, LinkRequiredError):
        return [Reply(Wording(context.texts, parse_locale(item.request, item.caller.identity)).error(error))]
    try:
        return [Reply(challenge_text(await context.links.begin(item.caller)))]
    except RequestError as failure:
        return [Reply(f"{error.message} {failure.message}")]
