"""Inbound and outbound files of messages, within the limits of the channel."""

import base64
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from agent_framework import Content

from frontdesk.chat.messages import InboundFile, OutboundFile
from frontdesk.concurrency.offload import run_sized
from frontdesk.errors import FileTooLargeError, InvalidRequestError
from frontdesk.framework.contents import file_name
from frontdesk.outbound.client import ANY_TYPE, is_media_type

FetchFile = Callable[[InboundFile, int], Awaitable[bytes]]
"""Fetches a file of at most so many bytes."""

_MAX_FILE_BYTES = 20 * 1024 * 1024
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


@dataclass(frozen=True, kw_only=True)
class MediaLimits:
    max_files: int = 10
    """The most files of one message that are taken; a message with more is refused."""
    max_bytes: int = _MAX_FILE_BYTES
    """The bytes of all files of one message together."""
    max_sent_bytes: int = _MAX_FILE_BYTES
    """The bytes of a file that is sent; of a larger one only the name is."""

    def findings(self) -> list[str]:
        names = ("max_files", "max_bytes", "max_sent_bytes")
        return [f"media: {name} must be positive" for name in names if getattr(self, name) <= 0]


def inline_contents(files: Sequence[InboundFile]) -> list[Content]:
    """Return the contents of files included in an event. Unreadable ones are omitted. Pure."""
    return [
        Content.from_uri(f"data:{file.media_type};base64,{file.data}", media_type=file.media_type)
        for file in files
        if file.data and is_media_type(file.media_type) and _BASE64.fullmatch(file.data)
    ]


async def fetch_contents(files: Sequence[InboundFile], fetch: FetchFile, limits: MediaLimits) -> list[Content]:
    """Fetch the files of a message one after another and return them as contents.

    They are `data:` contents. The host stores large ones as files of the sender. Too many or too large ones raise a
    `RequestError` that is displayed to the sender.
    """
    if len(files) > limits.max_files:
        error = InvalidRequestError(f"I take {limits.max_files} files at once.", code="too_many_files")
        raise error.set_phrase("error.too_many_files", most=limits.max_files)
    contents: list[Content] = []
    left = limits.max_bytes
    for file in files:
        if file.size is not None and file.size > left:
            raise FileTooLargeError(limits.max_bytes)
        body = await fetch(file, left)
        left -= len(body)
        if left < 0:
            raise FileTooLargeError(limits.max_bytes)
        contents.append(await run_sized(len(body), data_content, file, body))
    return contents


def data_content(file: InboundFile, body: bytes) -> Content:
    """Convert a fetched file to a content. Pure."""
    media_type = file.media_type if is_media_type(file.media_type) else ANY_TYPE
    uri = f"data:{media_type};base64,{base64.b64encode(body).decode()}"
    named = {"filename": file.name} if file.name else None
    return Content.from_uri(uri, media_type=media_type, additional_properties=named)


def is_too_large(content: Content, max_bytes: int | None) -> bool:
    """Return True if the data of a content exceeds the channel's limit. Pure."""
    data = (content.uri or "").partition(";base64,")[2]
    return max_bytes is not None and len(data) * 3 // 4 - data[-2:].count("=") > max_bytes


def outbound_file(content: Content) -> OutboundFile | None:
    """Return the file of a content with data, or None. Pure."""
    head, _, data = (content.uri or "").partition(";base64,")
    if not data:
        return None
    media_type = content.media_type or head.removeprefix("data:") or ANY_TYPE
    return OutboundFile(media_type=media_type, data=data, name=file_name(content))
