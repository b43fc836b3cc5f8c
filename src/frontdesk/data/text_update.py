"""A fast encoder for the most frequent record: an update that is a piece of plain text."""

from functools import lru_cache
from types import NoneType
from typing import Any

import msgspec

from frontdesk.data.codec import encode
from frontdesk.data.framework_codec import plain_text

_encoder = msgspec.json.Encoder()
_UNSET = ("merge_mode", "created_at", "finish_reason", "continuation_token", "additional_properties")
_NOTHING = [None] * len(_UNSET)
_TEXTS = frozenset({str, NoneType})
_NAMES = ("role", "author_name", "agent_id", "response_id", "message_id")


def encode_update(update: Any) -> bytes:
    """Return the bytes that the codec would write; for a plain text, in a fraction of the time."""
    attributes: dict[str, Any] = update.__dict__
    if type(update).__name__ != "AgentResponseUpdate" or len(update.contents) != 1:
        return encode(update)
    text = plain_text(update.contents[0])
    if text is None or [*map(attributes.get, _UNSET)] != _NOTHING:
        return encode(update)
    names = tuple(map(attributes.get, _NAMES))
    if not _TEXTS.issuperset(map(type, names)):
        return encode(update)
    try:
        return b"%b%b%b" % (_BEGINNING, _encoder.encode(text), _rest(names))
    except UnicodeEncodeError:
        # The codec raises the right error.
        return encode(update)


_BEGINNING = b'{"v":1,"data":{"$":"AgentResponseUpdate","contents":[{"$":"Content","type":"text","text":'


@lru_cache(maxsize=256)
def _rest(names: tuple[str | None, ...]) -> bytes:
    given = {name: value for name, value in zip(_NAMES, names, strict=True) if value is not None}
    return b"}]%b}}" % (b"," + _encoder.encode(given)[1:-1] if given else b"")
