"""Files of messages: their types, and the responses that serve them to browsers. Pure."""

import binascii
from collections.abc import Sequence
from urllib.parse import quote

from frontdesk.channels.web.wire import SentFile, ShownFile
from frontdesk.errors import BodyTooLargeError, InvalidRequestError
from frontdesk.errors.sizes import format_size
from frontdesk.models.file import StoredFile
from frontdesk.outbound.client import ANY_TYPE, bare_media_type

_BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The types that a browser shows as a picture and never runs; everything else is a download."""
_MAX_NAME_LENGTH = 120


def detect_kind(claimed: str, data: bytes) -> str:
    """Return the media type of a file: detected for images, otherwise as claimed by the client."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    for beginning, kind in _BEGINNINGS.items():
        if data.startswith(beginning):
            return kind
    kind = bare_media_type(claimed)
    return ANY_TYPE if kind in PICTURES else kind


def read_files(files: Sequence[SentFile], *, most: int, max_bytes: int) -> list[tuple[SentFile, bytes]]:
    """Return files with their bytes. Reject too many or too large files, and invalid base64."""
    require_count(len(files), most)
    read: list[tuple[SentFile, bytes]] = []
    for file in files:
        try:
            data = binascii.a2b_base64(file.data, strict_mode=True)
        except (binascii.Error, ValueError):
            raise InvalidRequestError("`data` of a file must be base64.", param="files") from None
        name = " ".join(file.name.split())[-_MAX_NAME_LENGTH:]
        read.append((SentFile(media_type=detect_kind(file.media_type, data), data=file.data, name=name), data))
    require_size(sum(len(data) for _, data in read), max_bytes)
    return read


def require_count(count: int, most: int) -> None:
    if count > most:
        raise InvalidRequestError(f"A message can have at most {most} files.", param="files", code="too_many_files")


def require_size(size: int, most: int) -> None:
    if size > most:
        raise BodyTooLargeError(f"The files of a message can have at most {format_size(most)}.", code="files_too_large")


def as_shown_file(stored: StoredFile) -> ShownFile:
    return ShownFile(id=stored.file_id, media_type=stored.media_type, name=stored.name, size=stored.size)


def file_headers(stored: StoredFile) -> list[tuple[bytes, bytes]]:
    """Return the response headers of a file: an inline image, or a download that browsers do not execute."""
    is_picture = stored.media_type in PICTURES
    name = quote(stored.name or "file", safe="")
    way = "inline" if is_picture else "attachment"
    return [
        (b"content-type", (stored.media_type if is_picture else ANY_TYPE).encode()),
        (b"content-disposition", f"{way}; filename*=UTF-8''{name}".encode()),
        (b"content-security-policy", b"default-src 'none'; sandbox"),
        (b"cross-origin-resource-policy", b"same-origin"),
        (b"cache-control", b"private, max-age=3600"),
        (b"x-content-type-options", b"nosniff"),
    ]
