"""From a message of a platform to an `InboxItem`. Pure."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
from agent_framework import Content, Message

from frontdesk.data.delivery import InboxItem
from frontdesk.data.identity import Caller, ChannelIdentity
from frontdesk.data.request import AcceptInGroup, ChannelRequest
from frontdesk.kit.chat.addressing import accepts
from frontdesk.kit.chat.commands import ADMIN, LOCALE
from frontdesk.kit.chat.config import OnEdit
from frontdesk.kit.chat.media import inline_contents
from frontdesk.kit.chat.messages import BotIdentity, Command, InboundMessage
from frontdesk.kit.chat.questions import read_words

FILES = "files"
"""The attribute of a request with the files that are still to be fetched."""
_COMMAND = re.compile(r"/(\w{1,32})(?:@(\w{1,64}))?(?:\s+(.*))?", re.DOTALL)
_LONGEST_QUOTE = 2_000


@dataclass(frozen=True, kw_only=True)
class InboundRules:
    """The rules by which a channel takes messages."""

    channel: str
    accept_in_group: AcceptInGroup = "mention_only"
    on_edit: OnEdit = "ignore"
    hooked: bool = False
    """Whether a hook reads the platform's event, so that it is kept."""
    has_buttons: bool = True
    """Whether the platform shows buttons; otherwise words such as `yes apr_1` answer questions."""
    has_albums: bool = True
    """Whether the messages of an album are answered together."""


def command_in(text: str) -> Command | None:
    """Return the command that a text is, such as `/new@desk later`; `None` if it is none."""
    command = _COMMAND.fullmatch(text.strip())
    if command is None:
        return None
    return Command(name=command[1].lower(), args=(command[3] or "").strip(), bot=command[2] or "")


def without_mentions(text: str, mentions: Iterable[tuple[int, int]]) -> str:
    """Return a text without mentions of the bot, each given by its offset and length in characters.

    What is behind the name of a command says which bot is meant, and stays.
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
    """Make the inbox item of a message; `None` if it is not meant for us.

    `payload` returns the platform's event, and is called only for a command, or where a hook reads it.
    """
    command = message.command or command_in(message.text)
    addressed = _is_addressed(message, command, rules, bot)
    if message.sender.is_bot or not (addressed or _may_be_heard(message, command, rules)):
        return None
    request = _request(message, command, rules, payload) if addressed else _said(message, rules)
    sender = message.sender
    attributes = {**sender.attributes, "name": sender.name, **({LOCALE: sender.locale} if sender.locale else {})}
    identity = ChannelIdentity(channel=rules.channel, native_id=sender.id, attributes=attributes)
    return InboxItem(
        channel=rules.channel,
        event_id=message.event_id,
        conversation_id=message.place.conversation_id,
        caller=Caller(identity=identity),
        request=request.replace(identity=identity),
        received_at=now,
        payload=payload() if rules.hooked else None,
        addressed=addressed,
        **_album(message),
    )


def _album(message: InboundMessage) -> dict[str, Any]:
    """Return the album of a new message, and its place in it; a change of one is answered alone."""
    if not message.album or message.edited:
        return {}
    return {"album_id": message.album, "album_position": message.album_position}


def _is_addressed(message: InboundMessage, command: Command | None, rules: InboundRules, bot: BotIdentity) -> bool:
    """Tell whether a message is meant for us."""
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
    """Tell whether a message that is not meant for us is a part of an album of which another part may be.

    Of an album mostly one picture has a caption, and with it the name of the bot.
    """
    if not rules.has_albums or not message.album or message.edited or command is not None:
        return False
    return accepts(rules.accept_in_group, group=True, mentioned=True, command=False)


def _request(
    message: InboundMessage, command: Command | None, rules: InboundRules, payload: Callable[[], Any]
) -> ChannelRequest:
    if message.click is not None:
        return _blank(message, rules).replace(operation="approval", attributes=_clicked(message))
    if not rules.has_buttons and (data := read_words(message.text)) is not None:
        attributes = {"message_id": message.message_id, "data": data}
        return _blank(message, rules).replace(operation="approval", attributes=attributes)
    if command is None:
        return _said(message, rules)
    named = _is_mentioned(message, command) or message.place.kind != "group"
    attributes = {**_attributes(message), "command": command.name, "named": named, "event": payload()}
    return _blank(message, rules).replace(operation="command", input=command.args, attributes=attributes)


def _blank(message: InboundMessage, rules: InboundRules) -> ChannelRequest:
    """Make a request from the place of a message."""
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


def _said(message: InboundMessage, rules: InboundRules) -> ChannelRequest:
    """Make the request of what somebody wrote."""
    request, attributes = _blank(message, rules), _attributes(message)
    if files := [file for file in message.media if not file.data]:
        attributes[FILES] = msgspec.to_builtins(files)
    content = _content(message, message.sender.name if request.group else None)
    # Kept with the run, so that its answer can be a reply, whenever it is sent.
    details = {"chat_id": request.conversation_id, "reply_to": message.message_id} if request.group else {}
    return request.replace(input=content, attributes=attributes, details=details)


def _clicked(message: InboundMessage) -> dict[str, Any]:
    if message.click is None:
        return {}
    click = message.click
    return {"callback_id": click.callback_id, "message_id": click.message_id, "data": click.data}


def _quoted(message: InboundMessage) -> str:
    """Return the lines of the message that is answered, for a target that may not have seen it."""
    if message.quote is None or not message.quote.text.strip():
        return ""
    lines = message.quote.text.strip()[:_LONGEST_QUOTE].splitlines()
    return "\n".join(f"> {line}" for line in lines) + "\n\n"


def _content(message: InboundMessage, author: str | None) -> str | Message:
    text = _quoted(message) + message.text.strip()
    if not message.media and author is None:
        return text
    contents = [Content.from_text(text)] if text else []
    contents += inline_contents(message.media)
    return Message("user", contents or [Content.from_text("")], author_name=author)
