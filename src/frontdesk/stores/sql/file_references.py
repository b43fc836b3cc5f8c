"""Takes large data out of encoded records, and puts it back. Pure.

A `data:` URI of more than `LEAST` characters becomes a reference such as `frontdesk-file:3f1c...;image/png`, wherever
it is in the record. The record then begins with format version 2 and the ids of its files, so that an earlier version
of Frontdesk leaves it to one that can read it, and so that a text that only looks like a reference stays a text.
"""

import re
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from frontdesk.data.codec import VERSION
from frontdesk.data.file import SCHEME, file_id_of
from frontdesk.errors import UnreadableRecordError

LEAST = 8 * 1024
"""The number of characters of base64 from which on data is kept as a file."""
WITH_FILES = 2
"""The format version of a record with files."""
_START, _SIGN, _QUOTE = b'"data:', b";base64,", b'"'
_PLAIN_HEAD = f'{{"v":{VERSION},"data":'.encode()
_HEAD = f'{{"v":{WITH_FILES},"files":'.encode()
_LONGEST_TYPE = 255
_TYPE = rb"[!#-\[\]-~]{0,%d}+" % _LONGEST_TYPE
_MEDIA_TYPE = re.compile(_TYPE)
_REFERENCE = re.compile(rb'"%b([0-9a-f]{64});(%b)"' % (SCHEME.encode(), _TYPE))
# The interpreter is held during a call of the C library, and the event loop must get its turn in between.
_SLICE = 3 * 4 * 64 * 1024


class Detached(NamedTuple):
    """A record without its large data, and the files by their ids: media type and bytes."""

    data: bytes
    files: Mapping[str, tuple[str, bytes]]


def may_have_files(data: bytes) -> bool:
    """Tell whether large data may be in a record; false for nearly all records, at the price of a comparison."""
    return len(data) > LEAST and _SIGN in data


def detach(data: bytes, owner: str, longest: int) -> Detached:
    """Replace large data in a record by references; data of more than `longest` bytes stays."""
    files: dict[str, tuple[str, bytes]] = {}
    pieces: list[bytes] = []
    if not data.startswith(_PLAIN_HEAD):
        return Detached(data, files)
    done = at = len(_PLAIN_HEAD)
    while (at := data.find(_START, at)) >= 0:
        end = data.find(_QUOTE, at + len(_START))
        found = None if end < 0 else _content(data, at + len(_START), end, longest)
        if found is not None:
            media_type, content = found
            file_id = file_id_of(owner, content)
            files[file_id] = (media_type.decode("ascii"), content)
            pieces += [data[done:at], b'"%b%b;%b' % (SCHEME.encode(), file_id.encode(), media_type)]
            done = end
        at = max(end, at + 1)
    if not files:
        return Detached(data, files)
    head = b'%b%b,"data":' % (_HEAD, msgspec.json.encode(sorted(files)))
    return Detached(b"".join([head, *pieces, data[done:]]), files)


def _content(data: bytes, start: int, end: int, longest: int) -> tuple[bytes, bytes] | None:
    """Return the media type and the bytes of a `data:` URI; `None` if it is small, or would not be the same again."""
    sign = data.find(_SIGN, start, min(end, start + _LONGEST_TYPE + len(_SIGN)))
    first = sign + len(_SIGN)
    if sign < 0 or end - first < LEAST or (end - first) // 4 * 3 > longest + 2:
        return None
    media_type = data[start:sign]
    content = _decoded(data[first:end]) if _MEDIA_TYPE.fullmatch(media_type) else None
    return None if content is None or len(content) > longest else (media_type, content)


def _decoded(text: bytes) -> bytes | None:
    """Return the bytes of base64; `None` if they would not give back the very same text."""
    if len(text) % 4:
        return None
    slices = [text[start : start + _SLICE] for start in range(0, len(text), _SLICE)]
    try:
        content = [a2b_base64(piece, strict_mode=True) for piece in slices]
    except Base64Error:
        return None
    # Padding ends a text, and the bits behind the last byte must be zero.
    if any(piece.endswith(b"=") for piece in slices[:-1]) or _encoded(content[-1]) != slices[-1]:
        return None
    return b"".join(content)


def _encoded(content: bytes) -> bytes:
    pieces = [content[start : start + _SLICE] for start in range(0, len(content), _SLICE)]
    return b"".join(b2a_base64(piece, newline=False) for piece in pieces)


def has_files(data: bytes) -> bool:
    """Tell whether a record refers to files."""
    return data[: len(_HEAD)] == _HEAD


def files_in(data: bytes) -> list[str]:
    """Return the ids of the files to which a record refers."""
    return _split(data)[0]


def attach(data: bytes, files: Mapping[str, bytes]) -> bytes:
    """Return a record with its data in the place of the references; the data of a file that is gone is empty."""
    ids, rest = _split(data)
    known = {file_id.encode(): files.get(file_id, b"") for file_id in ids}

    def content(match: re.Match[bytes]) -> bytes:
        if match[1] not in known:
            return match[0]
        return b'"data:%b;base64,%b"' % (match[2], _encoded(known[match[1]]))

    return _PLAIN_HEAD + _REFERENCE.sub(content, rest)


def without_contents(data: bytes) -> bytes:
    """Return a record that can be read without its files; the references stay in it."""
    return _PLAIN_HEAD + _split(data)[1] if has_files(data) else data


def _split(data: bytes) -> tuple[list[str], bytes]:
    end = data.find(b'],"data":', len(_HEAD))
    if end < 0:
        raise UnreadableRecordError("the record has files, and no `data`")
    try:
        ids = msgspec.json.decode(data[len(_HEAD) : end + 1], type=list[str])
    except msgspec.DecodeError as error:
        raise UnreadableRecordError("the files of the record are malformed") from error
    return ids, data[end + len(b'],"data":') :]
