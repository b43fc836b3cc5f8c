"""From the platform's events to the messages of the chat kit. Pure."""

from typing import Any

import msgspec

from frontdesk.chat.inbound import without_mentions
from frontdesk.chat.messages import (
    BotIdentity,
    Click,
    DeliveryReceipt,
    Destination,
    Inbound,
    InboundFile,
    InboundMessage,
    Quote,
    Sender,
)
from frontdesk.errors import InvalidRequestError
from frontdesk_testing.messages.wire import Challenge, Event, MessageIn

_event = msgspec.json.Decoder(Event)
_challenge = msgspec.json.Decoder(Challenge)


def challenge_in(body: bytes) -> Challenge | None:
    """Return the webhook challenge in a body, or None."""
    try:
        return _challenge.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def decode(body: bytes) -> Event:
    """Decode an event, or raise an error."""
    try:
        return _event.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequestError(f"The event is invalid: {error}.") from None


def parse_inbound(event: Event, bot: BotIdentity) -> Inbound | None:
    """Return the content of an event, or `None` if its type is unknown."""
    if event.receipt is not None:
        receipt, delivered = event.receipt, event.type == "delivered"
        return DeliveryReceipt(message_id=receipt.message_id, at=event.at, delivered=delivered, reason=receipt.reason)
    place = Destination(chat_id=event.chat.chat_id, thread_id=event.thread_id, kind=event.chat.kind)
    user = event.sender
    sender = Sender(id=user.user_id, name=user.name, locale=user.locale, is_bot=user.bot, admin=event.admin)
    said = InboundMessage(
        event_id=event.event_id,
        at=event.at,
        sender=sender,
        place=place,
        reply_token=event.reply_token,
        expects_reply=event.expects_reply,
    )
    if event.type == "click" and event.click is not None:
        return msgspec.structs.replace(said, click=msgspec.convert(event.click, Click, from_attributes=True))
    if event.message is None or event.type not in ("message", "edit"):
        return None
    message = msgspec.structs.replace(said, **_read_message_fields(event.message, bot), edited=event.type == "edit")
    return msgspec.structs.replace(message, album_position=event.number) if message.album else message


def _read_message_fields(message: MessageIn, bot: BotIdentity) -> dict[str, Any]:
    ours = [mention for mention in message.mentions if mention.user_id == bot.id]
    answered = message.reply_to
    files = (InboundFile(media_type=file.media_type, name=file.name, data=file.data) for file in message.media)
    return {
        "message_id": message.message_id,
        "text": without_mentions(message.text, [(mention.offset, mention.length) for mention in ours]),
        "mentioned": bool(ours) or (answered is not None and answered.user_id == bot.id),
        "media": tuple(files),
        "album": message.album_id,
        "quote": None if answered is None else Quote(message_id=answered.message_id, sender_id=answered.user_id),
    }


def slim(event: Event) -> Any:
    """Return an event for a command or a hook, without large and secret values."""
    message = None if event.message is None else msgspec.structs.replace(event.message, media=())
    return msgspec.to_builtins(msgspec.structs.replace(event, message=message, reply_token=""))
