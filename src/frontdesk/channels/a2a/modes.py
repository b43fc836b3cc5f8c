"""Media types of parts: those that the channel accepts, and those that a client accepts. Pure."""

import re
from collections.abc import Collection, Sequence

TEXT, JSON = "text/plain", "application/json"
INPUT_MODES: tuple[str, ...] = (TEXT, JSON, "text/*", "image/*", "audio/*", "video/*", "application/pdf")
OUTPUT_MODES: tuple[str, ...] = (TEXT, JSON, "text/*", "image/*", "audio/*", "video/*", "application/*")
_WORD = r"[A-Za-z0-9!#$&^_.+-]{1,127}"
_MODE = re.compile(rf"(?:{_WORD}|\*)/(?:{_WORD}|\*)")
_SHORT = {"text": TEXT, "json": JSON, "data": JSON, "*": "*/*"}
"""Names that clients use in place of media types."""


def is_mode(text: object) -> bool:
    """Return True for a media type, also with a wildcard."""
    return isinstance(text, str) and (text in _SHORT or _MODE.fullmatch(text) is not None)


def plain_mode(mode: str) -> str:
    """Return a media type in lower case, without parameters."""
    bare = mode.partition(";")[0].strip().lower()
    return _SHORT.get(bare, bare)


def is_accepted(media_type: str, modes: Collection[str]) -> bool:
    """Return True if a media type is one of the modes. No modes accept everything."""
    if not modes:
        return True
    kind = plain_mode(media_type)
    return kind in modes or "*/*" in modes or f"{kind.partition('/')[0]}/*" in modes


def overlap(wanted: Sequence[str], offered: Sequence[str]) -> bool:
    """Return True if a mode of both lists matches. An empty list accepts everything."""
    if not wanted or not offered:
        return True
    return any(is_accepted(mode, offered) or is_accepted(other, wanted) for mode in wanted for other in offered)
