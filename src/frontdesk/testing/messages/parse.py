"""From an event to an `InboxItem`. Pure."""

import re
from typing import Any

import msgspec
from agent_framework import Content, Message

from frontdesk.data.delivery import InboxItem
from frontdesk.data.identity import Caller, ChannelIdentity
from frontdesk.data.request import AcceptInGroup, ChannelRequest
from frontdesk.errors import InvalidRequestError
from frontdesk.kit.chat.addressing import accepts
from frontdesk.kit.chat.commands import ADMIN, LOCALE
from frontdesk.testing.messages.config import OnEdit
from frontdesk.testing.messages.places import conversation_of
from frontdesk.testing.messages.wire import Challenge, Event, Me, MessageIn

_COMMAND = re.compile(r"/(\w{1,32})(?:@(\w{1,64}))?(?:\s+(.*))?", re.DOTALL)
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,127}/[A-Za-z0-9!#$&^_.+-]{1,127}")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_event = msgspec.json.Decoder(Event)
_challenge = msgspec.json.Decoder(Challenge)


def challenge_in(body: bytes) -> Challenge | None:
    """Return the platform's challenge to its webhook, if a body is one."""
    try:
        return _challenge.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def decode(body: bytes) -> Event:
    """Decode an event, or raise an error."""
    try:
        return _event.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequestError(f"The event can't be understood: {error}.") from None


def to_item(
    event: Event,
    *,
    channel: str,
    me: Me,
    accept_in_group: AcceptInGroup,
    on_edit: OnEdit,
    now: float,
    hooked: bool = False,
) -> InboxItem | None:
    """Make the inbox item of an event, with its payload if a hook reads that; `None` if it is not meant for us."""
    request = _request(event, channel, me, accept_in_group, on_edit)
    if request is None or event.sender.bot:
        return None
    sender = event.sender
    attributes = {"name": sender.name, **({LOCALE: sender.locale} if sender.locale else {})}
    identity = ChannelIdentity(channel=channel, native_id=sender.user_id, attributes=attributes)
    return InboxItem(
        channel=channel,
        event_id=event.event_id,
        conversation_id=conversation_of(event.chat.chat_id, event.thread_id),
        caller=Caller(identity=identity),
        request=request.replace(identity=identity),
        received_at=now,
        payload=_kept(event) if hooked else None,
        **_album(event),
    )


def _album(event: Event) -> dict[str, Any]:
    """Return the album of a new message, and its place in it; a change of one is answered alone."""
    if event.message is None or not event.message.album_id or event.type != "message":
        return {}
    return {"album_id": event.message.album_id, "album_position": event.number}


def _request(
    event: Event, channel: str, me: Me, accept_in_group: AcceptInGroup, on_edit: OnEdit
) -> ChannelRequest | None:
    group = event.chat.kind == "group"
    conversation_id = conversation_of(event.chat.chat_id, event.thread_id)
    request = ChannelRequest(channel=channel, conversation_id=conversation_id, group=group)
    if event.type == "click" and event.click is not None:
        click = event.click
        clicked = {"callback_id": click.callback_id, "message_id": click.message_id, "data": click.data}
        return request.replace(operation="approval", attributes=clicked)
    if event.message is None or event.type not in ("message", "edit") or (event.type == "edit" and on_edit == "ignore"):
        return None
    message = event.message
    text, mentioned = _addressed(message, me)
    command = _COMMAND.fullmatch(text)
    named = command is not None and command[2] is not None
    if named and command is not None and command[2].lower() != me.handle.lower():
        # Meant for another bot.
        return None
    if not accepts(accept_in_group, group=group, mentioned=mentioned or named, command=command is not None):
        return None
    attributes: dict[str, Any] = {"message_id": message.message_id, **({ADMIN: True} if event.admin else {})}
    if command is not None:
        attributes |= {"command": command[1].lower(), "named": named or mentioned or not group, "event": _kept(event)}
        return request.replace(operation="command", input=(command[3] or "").strip(), attributes=attributes)
    content = _content(message, text, event.sender.name if group else None)
    # Kept with the run, so that its answer can be a reply, whenever it is sent.
    details = {"chat_id": conversation_id, "reply_to": message.message_id} if group else {}
    return request.replace(input=content, attributes=attributes, details=details)


def _addressed(message: MessageIn, me: Me) -> tuple[str, bool]:
    """Return the text without our own name, and whether it was addressed to us."""
    text = message.text
    ours = [mention for mention in message.mentions if mention.user_id == me.user_id]
    for mention in sorted(ours, key=lambda mention: mention.offset, reverse=True):
        text = text[: max(mention.offset, 0)] + text[max(mention.offset + mention.length, 0) :]
    replied = message.reply_to is not None and message.reply_to.user_id == me.user_id
    if message.text.startswith("/"):
        # The text behind the command's name says which bot is meant, and is read with it.
        return message.text.strip(), bool(ours) or replied
    return text.strip(), bool(ours) or replied


def _content(message: MessageIn, text: str, author: str | None) -> str | Message:
    if not message.media and author is None:
        return text
    contents: list[Content] = [Content.from_text(text)] if text else []
    contents += [
        Content.from_uri(f"data:{media.media_type};base64,{media.data}", media_type=media.media_type)
        for media in message.media
        if _MEDIA_TYPE.fullmatch(media.media_type) and _BASE64.fullmatch(media.data)
    ]
    return Message("user", contents or [Content.from_text("")], author_name=author)


def _kept(event: Event) -> Any:
    """Return the event for a command or a hook, without what is large or secret."""
    slim = None if event.message is None else msgspec.structs.replace(event.message, media=())
    return msgspec.to_builtins(msgspec.structs.replace(event, message=slim, reply_token=""))
