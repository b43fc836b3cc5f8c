"""Parses Bot API updates into inbound chat messages. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from frontdesk.channels.telegram.client import BLOCKED, KICKED
from frontdesk.channels.telegram.wire import (
    CallbackQuery,
    ChatMember,
    ChatMemberUpdated,
    File,
    GenerationStopped,
    Message,
    MessageEntity,
    MessageOrigin,
    Update,
    User,
)
from frontdesk.chat.messages import (
    BotIdentity,
    Click,
    Command,
    ConversationMove,
    Destination,
    InboundFile,
    InboundMessage,
    MembershipChange,
    Quote,
    Sender,
)
from frontdesk.errors import InvalidRequestError

_UNSUPPORTED = (
    "story",
    "game",
    "checklist",
    "paid_media",
    "invoice",
    "giveaway",
    "giveaway_winners",
    "rich_message",
)


def find_unsupported_content(message: Message) -> str:
    """Return the name of unsupported content in a message, or an empty string."""
    return next((name for name in _UNSUPPORTED if getattr(message, name) is not None), "")


def list_files(message: Message) -> tuple[InboundFile, ...]:
    """Return the files of a message, to be fetched later. For a photo, the largest size."""
    if message.photo:
        largest = max(message.photo, key=lambda size: size.width * size.height)
        return (_file(largest, "image/jpeg", "photo.jpg"),)
    # The platform repeats an animation as a document.
    if message.animation is not None:
        return (_file(message.animation, "video/mp4", "animation.mp4"),)
    kinds = (
        (message.voice, "audio/ogg", "voice.ogg"),
        (message.audio, "audio/mpeg", "audio.mp3"),
        (message.video, "video/mp4", "video.mp4"),
        (message.video_note, "video/mp4", "video_note.mp4"),
        (message.document, "application/octet-stream", "document"),
    )
    files = tuple(_file(file, media_type, name) for file, media_type, name in kinds if file is not None)
    sticker = message.sticker
    if sticker is not None and not sticker.is_animated:
        media_type, name = ("video/webm", "sticker.webm") if sticker.is_video else ("image/webp", "sticker.webp")
        return (*files, _inbound(sticker.file_id, media_type, name, sticker.file_size))
    return files


def _file(file: File, media_type: str, name: str) -> InboundFile:
    return _inbound(file.file_id, file.mime_type or media_type, file.file_name or name, file.file_size)


def _inbound(file_id: str, media_type: str, name: str, size: int | None) -> InboundFile:
    return InboundFile(file_id=file_id, media_type=media_type, name=name, size=size)


def describe(message: Message) -> str:
    """Describe content that is neither text nor a file. Empty if there is none."""
    if message.venue is not None:
        venue = message.venue
        named = ", ".join(filter(None, (venue.title, venue.address)))
        return f"Venue: {named} ({venue.location.latitude}, {venue.location.longitude})"
    if message.location is not None:
        return f"Location: {message.location.latitude}, {message.location.longitude}"
    if message.contact is not None:
        contact = message.contact
        name = " ".join(filter(None, (contact.first_name, contact.last_name)))
        return f"Contact: {name}, {contact.phone_number}"
    if message.poll is not None:
        return "\n".join((f"Poll: {message.poll.question}", *(f"- {option.text}" for option in message.poll.options)))
    if message.dice is not None:
        return f"{message.dice.emoji} {message.dice.value}"
    return "" if message.sticker is None else message.sticker.emoji


def extract_text(message: Message) -> str:
    """Return the text or caption of a message, or the text of a rich message."""
    if message.rich_message is None:
        return message.text or message.caption
    lines = (" ".join("".join(_words(block)).split()) for block in message.rich_message.blocks)
    return "\n".join(filter(None, lines))


def _words(block: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of a block and all nested blocks."""
    waiting: list[Any] = [block]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping):
            fields = cast("Mapping[str, Any]", part)
            rows = [*_get_list(fields, "blocks"), *_get_list(fields, "items"), *_get_list(fields, "cells")]
            waiting += [piece for row in reversed(rows) for piece in (row, " ")]
            waiting.append(fields.get("text"))
        elif isinstance(part, Sequence):
            cells = list(cast("Sequence[Any]", part))
            is_row = any(isinstance(cell, Mapping) and "align" in cell for cell in cells)
            waiting += [piece for cell in reversed(cells) for piece in ((cell, " ") if is_row else (cell,))]


def _get_list(fields: Mapping[str, Any], name: str) -> Sequence[Any]:
    value: Any = fields.get(name)
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def describe_forward(message: Message) -> str:
    """Describe the origin of a forwarded message. Empty if it is not forwarded."""
    if message.forward_origin is None:
        return ""
    return f"Forwarded from {_origin_name(message.forward_origin) or 'somebody'}:"


def _origin_name(origin: MessageOrigin) -> str:
    if origin.sender_user is not None:
        return " ".join(filter(None, (origin.sender_user.first_name, origin.sender_user.last_name)))
    chat = origin.sender_chat or origin.chat
    return origin.sender_user_name or ("" if chat is None else chat.title)


CANCEL = "cancel"
STOP = "stop"
"""The data of the button under an answer that is being written."""
CALLBACK = "callback_id"
"""The attribute of a command that a button stands for, with the platform's name for the click."""
_MAX_NAME_LENGTH = 100
"""The code units of a mention or a command that is looked at; names have 32 characters at most."""
_update = msgspec.json.Decoder(Update)


def decode(event: bytes) -> Update:
    try:
        return _update.decode(event)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequestError(f"The update is invalid: {error}.") from None


def read_update(event: bytes, bot: BotIdentity) -> InboundMessage | ConversationMove | MembershipChange | None:
    """Parse an update. Return None if it contains no message for the bot."""
    update = decode(event)
    if update.callback_query is not None:
        return _read_click(update.callback_query, str(update.update_id))
    if update.stopped_message_generation is not None:
        return _read_stop(update.stopped_message_generation, str(update.update_id))
    if update.my_chat_member is not None:
        return _read_membership(update.my_chat_member, str(update.update_id))
    message = update.message or update.edited_message
    if message is None:
        return None
    edited = update.message is None
    moved = _move(message)
    if moved is not None or (edited and message.location is not None):
        # A location that is shared live changes every few seconds.
        return moved
    return _read_message(message, str(update.update_id), bot, edited=edited)


def locate(message: Message) -> Destination:
    """Return the destination of a message: its chat, and its topic if any.

    The platform also numbers reply threads in groups without topics. The General topic has no number in messages and
    accepts none.
    """
    chat = message.chat
    thread = message.message_thread_id if message.is_topic_message else None
    kind = "direct" if chat.type == "private" else "group"
    return Destination(chat_id=str(chat.id), thread_id="" if thread is None else str(thread), kind=kind)


def _move(message: Message) -> ConversationMove | None:
    """Return the new id of a migrated group. It is reported in the old and the new group."""
    if message.migrate_to_chat_id is not None:
        old, new = message.chat.id, message.migrate_to_chat_id
    elif message.migrate_from_chat_id is not None:
        old, new = message.migrate_from_chat_id, message.chat.id
    else:
        return None
    return ConversationMove(old=_group(old), new=_group(new))


def _group(chat_id: int) -> Destination:
    return Destination(chat_id=str(chat_id), kind="group")


def _read_message(message: Message, event_id: str, bot: BotIdentity, *, edited: bool) -> InboundMessage | None:
    sender = message.sender
    # Whoever writes in the name of a group or a channel is nobody in particular: their account is shared by all who do.
    if sender is None or message.sender_chat is not None or message.chat.type == "channel":
        return None
    if str(sender.id) == bot.id or (message.via_bot is not None and str(message.via_bot.id) == bot.id):
        return None
    marked = _Marked.of(message)
    text, mentioned = marked.without_mentions(bot)
    media, described = list_files(message), describe(message)
    unsupported = "" if text or media or described else find_unsupported_content(message)
    if not text and not media and not described and not unsupported:
        # It says that somebody came or went, that a topic was made, and the like.
        return None
    command = marked.command()
    replied = _find_reply_target(message)
    return InboundMessage(
        event_id=event_id,
        at=float(message.edit_date or message.date),
        sender=build_sender(sender),
        place=locate(message),
        text="" if unsupported else _join(describe_forward(message), text, described),
        message_id=str(message.message_id),
        mentioned=mentioned or (replied is not None and _is_bot(replied.sender, bot)),
        # What is forwarded was said to somebody else.
        command=None if message.forward_origin is not None else command,
        media=media,
        quote=_quote(message, replied),
        edited=edited,
        album=message.media_group_id,
        unsupported=unsupported,
        album_position=message.message_id,
    )


def _read_click(query: CallbackQuery, event_id: str) -> InboundMessage | None:
    if not query.data:
        # The button of a game.
        return None
    message, sender = query.message, build_sender(query.sender)
    message_id = "" if message is None else str(message.message_id)
    stop = query.data == STOP
    return InboundMessage(
        event_id=event_id,
        at=0.0 if message is None else float(message.date),
        sender=sender,
        # Without its message, all that is known of a button is who has pressed it.
        place=Destination(chat_id=sender.id) if message is None else locate(message),
        message_id=message_id,
        mentioned=True,
        command=Command(name=CANCEL) if stop else None,
        click=None if stop else Click(data=query.data, callback_id=query.id, message_id=message_id),
        attributes={CALLBACK: query.id} if stop else {},
    )


def _read_stop(stopped: GenerationStopped, event_id: str) -> InboundMessage | None:
    """Return the stop of a draft. It happens in a private chat, whose id is the person's id."""
    if stopped.chat.type != "private":
        return None
    thread = "" if stopped.message_thread_id is None else str(stopped.message_thread_id)
    person = str(stopped.chat.id)
    return InboundMessage(
        event_id=event_id,
        at=0.0,
        sender=Sender(id=person),
        place=Destination(chat_id=person, thread_id=thread),
        command=Command(name=CANCEL),
    )


def _read_membership(change: ChatMemberUpdated, event_id: str) -> MembershipChange | None:
    """Return that the bot was added or removed. None for other changes of its role."""
    present = _is_in(change.new_chat_member)
    if present == _is_in(change.old_chat_member) or change.chat.type == "channel":
        return None
    direct = change.chat.type == "private"
    return MembershipChange(
        event_id=event_id,
        # The platform counts whole seconds: what was queued in the same one came before.
        at=float(change.date + 1),
        place=Destination(chat_id=str(change.chat.id), kind="direct" if direct else "group"),
        present=present,
        reason="" if present else BLOCKED if direct else KICKED,
        by=build_sender(change.sender),
    )


def _is_in(member: ChatMember) -> bool:
    return member.status not in ("left", "kicked") and (member.status != "restricted" or member.is_member)


def build_sender(user: User) -> Sender:
    name = " ".join(filter(None, (user.first_name, user.last_name)))
    attributes = {"username": user.username} if user.username else {}
    return Sender(id=str(user.id), name=name, locale=user.language_code, is_bot=user.is_bot, attributes=attributes)


def _is_bot(user: User | None, bot: BotIdentity) -> bool:
    return user is not None and str(user.id) == bot.id


def _find_reply_target(message: Message) -> Message | None:
    """Return the message to which a person has replied.

    In a topic, messages that are not replies have the message that created the topic as their reply target.
    """
    replied = message.reply_to_message
    if replied is None or replied.forum_topic_created is not None:
        return None
    made_topic = message.is_topic_message and replied.message_id == message.message_thread_id
    return None if made_topic else replied


def _quote(message: Message, replied: Message | None) -> Quote | None:
    words = "" if message.quote is None else message.quote.text
    if replied is None:
        return Quote(text=words) if words else None
    text = words or extract_text(replied) or describe(replied)
    sender = "" if replied.sender is None else str(replied.sender.id)
    return Quote(message_id=str(replied.message_id), sender_id=sender, text=text)


def _join(forwarded: str, text: str, described: str) -> str:
    said = "\n".join(filter(None, (text, described)))
    return f"{forwarded}\n{said}" if forwarded else said


class _Marked(NamedTuple):
    """A text in UTF-16 code units, the unit of entity offsets."""

    units: bytes
    entities: tuple[MessageEntity, ...]

    @classmethod
    def of(cls, message: Message) -> "_Marked":
        if message.text:
            return cls(_encode(message.text), message.entities)
        return cls(_encode(message.caption), message.caption_entities)

    def _stretch(self, entity: MessageEntity) -> str:
        """Return the text of an entity. Empty if it is too long for a name or out of range."""
        start, end = 2 * entity.offset, 2 * (entity.offset + entity.length)
        fits = 0 <= start < end <= len(self.units) and entity.length <= _MAX_NAME_LENGTH
        return _decode(self.units[start:end]) if fits else ""

    def command(self) -> Command | None:
        """Return the command at the start of the text."""
        first = next((entity for entity in self.entities if entity.type == "bot_command" and entity.offset == 0), None)
        word = "" if first is None else self._stretch(first)
        if first is None or not word.startswith("/"):
            return None
        name, _, bot = word[1:].partition("@")
        return Command(name=name.lower(), args=_decode(self.units[2 * first.length :]).strip(), bot=bot)

    def without_mentions(self, bot: BotIdentity) -> tuple[str, bool]:
        """Return the text without mentions of the bot, and True if there was one."""
        own = sorted((entity for entity in self.entities if self._names(entity, bot)), key=lambda entity: entity.offset)
        kept: list[bytes] = []
        place = 0
        for entity in own:
            kept.append(self.units[place : 2 * entity.offset])
            place = max(place, 2 * (entity.offset + entity.length))
        kept.append(self.units[place:])
        return _decode(b"".join(kept)).strip(), bool(own)

    def _names(self, entity: MessageEntity, bot: BotIdentity) -> bool:
        word = self._stretch(entity)
        if entity.type == "text_mention":
            return bool(word) and _is_bot(entity.user, bot)
        return entity.type == "mention" and bool(bot.name) and word.lower() == f"@{bot.name.lower()}"


def _encode(text: str) -> bytes:
    return text.encode("utf-16-le", "replace")


def _decode(units: bytes) -> str:
    # An entity that is not the platform's may cut a character in two.
    return units.decode("utf-16-le", "replace")
