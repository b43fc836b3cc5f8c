"""The contents of a message besides its text: files, and things that can be said in words. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from frontdesk.channels.telegram.wire import File, Message, MessageOrigin
from frontdesk.kit.chat.messages import InboundFile


def files_of(message: Message) -> tuple[InboundFile, ...]:
    """Return the files of a message, to be fetched later; of a picture the largest size."""
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
    """Say what a message holds that is neither text nor a file; empty if there is nothing."""
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


def text_of(message: Message) -> str:
    """Return the text of a message, or its caption, or the words of a rich message."""
    if message.rich_message is None:
        return message.text or message.caption
    lines = (" ".join("".join(_words(block)).split()) for block in message.rich_message.blocks)
    return "\n".join(filter(None, lines))


def _words(block: Mapping[str, Any]) -> Iterator[str]:
    """Yield the words of a block, and of what is within it at any depth."""
    waiting: list[Any] = [block]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping):
            fields = cast("Mapping[str, Any]", part)
            rows = [*_listed(fields, "blocks"), *_listed(fields, "items"), *_listed(fields, "cells")]
            waiting += [piece for row in reversed(rows) for piece in (row, " ")]
            waiting.append(fields.get("text"))
        elif isinstance(part, Sequence):
            cells = list(cast("Sequence[Any]", part))
            is_row = any(isinstance(cell, Mapping) and "align" in cell for cell in cells)
            waiting += [piece for cell in reversed(cells) for piece in ((cell, " ") if is_row else (cell,))]


def _listed(fields: Mapping[str, Any], name: str) -> Sequence[Any]:
    value: Any = fields.get(name)
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def forwarded_from(message: Message) -> str:
    """Say where a forwarded message comes from; empty if it is not forwarded."""
    if message.forward_origin is None:
        return ""
    return f"Forwarded from {_origin_name(message.forward_origin) or 'somebody'}:"


def _origin_name(origin: MessageOrigin) -> str:
    if origin.sender_user is not None:
        return " ".join(filter(None, (origin.sender_user.first_name, origin.sender_user.last_name)))
    chat = origin.sender_chat or origin.chat
    return origin.sender_user_name or ("" if chat is None else chat.title)
