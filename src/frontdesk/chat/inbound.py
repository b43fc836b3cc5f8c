"""Converts inbound messages of a platform into an `InboxItem`. Pure."""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
from agent_framework import Content, Message

from frontdesk.chat.commands import ADMIN, LOCALE
from frontdesk.chat.config import OnEdit
from frontdesk.chat.media import inline_contents
from frontdesk.chat.messages import BotIdentity, Command, Destination, InboundMessage, MembershipChange, Sender
from frontdesk.chat.questions import read_words
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.models.delivery import DestinationKind, InboxItem
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.request import AcceptInGroup, ChannelRequest


def accepts(rule: AcceptInGroup, *, group: bool, mentioned: bool, command: bool) -> bool:
    """Return True if a message is addressed to the bot. In a direct chat all are."""
    if not group or rule == "all":
        return True
    if rule == "mention_only":
        return mentioned
    if rule == "command_only":
        return command
    return mentioned or command


FILES = "files"
"""The attribute of a request with the files that are still to be fetched."""
UNSUPPORTED = "unsupported"
"""The attribute of a request with the kind of a message that its channel can't read."""
_COMMAND = re.compile(r"/(\w{1,32})(?:@(\w{1,64}))?(?:\s+(.*))?", re.DOTALL)
_MAX_QUOTE_LENGTH = 2_000


@dataclass(frozen=True, kw_only=True)
class InboundRules:
    """The rules by which a channel accepts messages."""

    channel: str
    accept_in_group: AcceptInGroup = "mention_only"
    on_edit: OnEdit = "ignore"
    hooked: bool = False
    """Whether a hook reads the platform's event, so that it is kept."""
    has_buttons: bool = True
    """Whether the platform shows buttons; otherwise words such as `yes apr_1` answer questions."""
    has_albums: bool = True
    """Whether the messages of an album are answered together."""
    scopes: Collection[DestinationKind] = ("direct", "group")
    """The kinds of chats whose events are read."""
    emits_claims: bool = False
    """Whether the claims of senders are verified."""


def command_in(text: str) -> Command | None:
    """Return the command in a text such as `/new@desk later`, or None."""
    command = _COMMAND.fullmatch(text.strip())
    if command is None:
        return None
    return Command(name=command[1].lower(), args=(command[3] or "").strip(), bot=command[2] or "")


def without_mentions(text: str, mentions: Iterable[tuple[int, int]]) -> str:
    """Remove mentions of the bot from a text, given by offset and length in characters.

    The bot name after a command is kept, because it selects the bot.
    """
    if text.startswith("/"):
        return text.strip()
    kept: list[str] = []
    place = 0
    for offset, length in sorted(mentions):
        kept.append(text[place : max(offset, place)])
        place = max(offset + length, place)
    return "".join((*kept, text[place:])).strip()


def to_item(
    message: InboundMessage, rules: InboundRules, bot: BotIdentity, *, now: float, payload: Callable[[], Any]
) -> InboxItem | None:
    """Create the inbox item of a message, or return None if it is not addressed to the bot.

    `payload` returns the platform's event. It is only called for a command, or if a hook reads it.
    """
    if message.place.kind not in rules.scopes:
        return None
    command = message.command or command_in(message.text)
    addressed = _is_addressed(message, command, rules, bot)
    if message.sender.is_bot or not (addressed or _may_be_heard(message, command, rules)):
        return None
    request = _request(message, command, rules, payload) if addressed else _build_message_request(message, rules)
    caller = to_caller(message.sender, rules)
    return InboxItem(
        channel=rules.channel,
        event_id=message.event_id,
        conversation_id=message.place.conversation_id,
        caller=caller,
        request=request.replace(identity=caller.identity),
        received_at=now,
        payload=payload() if rules.hooked else None,
        addressed=addressed,
        **_album(message),
    )


def to_caller(sender: Sender, rules: InboundRules) -> Caller:
    """Return a person as a caller, with verified claims if the channel has them."""
    attributes = {**sender.attributes, "name": sender.name, **({LOCALE: sender.locale} if sender.locale else {})}
    identity = ChannelIdentity(channel=rules.channel, native_id=sender.id, attributes=attributes)
    if not sender.claims or not rules.emits_claims:
        return Caller(identity=identity)
    return Caller(identity=identity, claims=sender.claims, claim_source=rules.channel)


def _album(message: InboundMessage) -> dict[str, Any]:
    """Return the album of a new message and its position in it. An edited message is answered alone."""
    if not message.album or message.edited:
        return {}
    return {"album_id": message.album, "album_position": message.album_position}


def _is_addressed(message: InboundMessage, command: Command | None, rules: InboundRules, bot: BotIdentity) -> bool:
    if message.click is not None:
        return True
    if message.edited and rules.on_edit == "ignore":
        return False
    if command is not None and command.bot and command.bot.lower() != bot.name.lower():
        # Meant for another bot.
        return False
    return accepts(
        rules.accept_in_group,
        group=message.place.kind == "group",
        mentioned=_is_mentioned(message, command),
        command=command is not None,
    )


def _is_mentioned(message: InboundMessage, command: Command | None) -> bool:
    return message.mentioned or (command is not None and bool(command.bot))


def _may_be_heard(message: InboundMessage, command: Command | None, rules: InboundRules) -> bool:
    """Return True if an unaddressed message belongs to an album that may be addressed by another part.

    Usually only one image of an album has a caption with the bot's name.
    """
    if not rules.has_albums or not message.album or message.edited or command is not None:
        return False
    return accepts(rules.accept_in_group, group=True, mentioned=True, command=False)


def _request(
    message: InboundMessage, command: Command | None, rules: InboundRules, payload: Callable[[], Any]
) -> ChannelRequest:
    if message.click is not None:
        return _blank(message, rules).replace(operation="approval", attributes=_build_click(message))
    if not rules.has_buttons and (data := read_words(message.text)) is not None:
        attributes = {"message_id": message.message_id, "data": data}
        return _blank(message, rules).replace(operation="approval", attributes=attributes)
    if command is None:
        return _build_message_request(message, rules)
    named = _is_mentioned(message, command) or message.place.kind != "group"
    attributes = {**_attributes(message), "command": command.name, "named": named, "event": payload()}
    return _blank(message, rules).replace(operation="command", input=command.args, attributes=attributes)


def _blank(message: InboundMessage, rules: InboundRules) -> ChannelRequest:
    place = message.place
    return ChannelRequest(
        channel=rules.channel,
        conversation_id=place.conversation_id,
        group=place.kind == "group",
        reference=place.reference,
    )


def _attributes(message: InboundMessage) -> dict[str, Any]:
    attributes = {**message.attributes, "message_id": message.message_id}
    return {**attributes, ADMIN: True} if message.sender.admin else attributes


def _build_message_request(message: InboundMessage, rules: InboundRules) -> ChannelRequest:
    request, attributes = _blank(message, rules), _attributes(message)
    if files := [file for file in message.media if not file.data]:
        attributes[FILES] = msgspec.to_builtins(files)
    if message.unsupported and not message.text and not message.media:
        attributes[UNSUPPORTED] = message.unsupported
    content = _content(message, message.sender.name if request.group else None)
    # Kept with the run, so that its answer can be a reply, whenever it is sent.
    details = {"chat_id": request.conversation_id, "reply_to": message.message_id} if request.group else {}
    return request.replace(input=content, attributes=attributes, details=details)


def _build_click(message: InboundMessage) -> dict[str, Any]:
    if message.click is None:
        return {}
    click = message.click
    return {"callback_id": click.callback_id, "message_id": click.message_id, "data": click.data}


def _quote(message: InboundMessage) -> str:
    """Return the quoted lines of the replied-to message, for a target that may not have received it."""
    if message.quote is None or not message.quote.text.strip():
        return ""
    lines = message.quote.text.strip()[:_MAX_QUOTE_LENGTH].splitlines()
    return "\n".join(f"> {line}" for line in lines) + "\n\n"


def _content(message: InboundMessage, author: str | None) -> str | Message:
    text = _quote(message) + message.text.strip()
    if not message.media and author is None:
        return text
    contents = [Content.from_text(text)] if text else []
    contents += inline_contents(message.media)
    return Message("user", contents or [Content.from_text("")], author_name=author)


GREETING = "greeting"
"""The attribute of a command that nobody has typed: the bot greets the group that it was added to."""


async def give_up(context: ChannelContext, change: MembershipChange) -> None:
    """Cancel pending deliveries to a conversation from which the bot was removed. The platform would refuse them
    later."""
    place = change.place
    name = place.user_id or place.chat_id if place.kind == "direct" else place.conversation_id
    threads = build_thread_matcher(place) if place.kind == "group" and not place.thread_id else None
    await context.events.end_deliveries(name, reason=change.reason, before=change.at, also=threads)


def build_thread_matcher(place: Destination) -> Callable[[str], bool]:
    """Return a predicate that matches conversation names of threads in a chat."""

    def is_thread(name: str) -> bool:
        try:
            thread = Destination.from_conversation_id(name)
        except msgspec.MsgspecError:
            return False
        return bool(thread.thread_id) and thread.chat_id == place.chat_id

    return is_thread


def build_greeting(change: MembershipChange) -> InboundMessage | None:
    """Return a `/help` command of the person who added the bot to a group, or None."""
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
