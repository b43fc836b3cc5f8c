"""Counts as platforms count, and finds where what people see as one character ends. Pure."""

import unicodedata
from typing import Literal

Unit = Literal["characters", "utf16", "bytes"]
"""The unit in which a platform counts: code points, code units of UTF-16, or bytes of UTF-8."""

_JOINER = "\u200d"


def length(text: str, unit: Unit) -> int:
    """Return the length of a text in a unit."""
    if unit == "characters":
        return len(text)
    if unit == "bytes":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def last_boundary(text: str, start: int, end: int) -> int:
    """Return the last place behind `start`, at most `end`, that splits no seen character; else `end`."""
    place = end
    while place > start and splits(text, start, place):
        place -= 1
    return place if place > start else end


def splits(text: str, start: int, place: int) -> bool:
    """Tell whether a place splits what people see as one character; the beginning of a part at `start` never does."""
    if not start < place < len(text):
        return False
    before, behind = text[place - 1], text[place]
    if before in "\r\n":
        return before + behind == "\r\n"
    if before == _JOINER or behind == _JOINER or _extends(behind):
        return True
    if _is_flag(before) and _is_flag(behind):
        # Flags are pairs: an odd number before the place means that it is inside one.
        first = place
        while first > start and _is_flag(text[first - 1]):
            first -= 1
        return (place - first) % 2 == 1
    return _is_jamo(before) and _is_jamo(behind)


def _extends(character: str) -> bool:
    # Marks, variation selectors (which are marks), skin tones, and the tags that spell some flags.
    return (
        unicodedata.category(character) in ("Mn", "Me", "Mc")
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or "\U000e0020" <= character <= "\U000e007f"
    )


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _is_jamo(character: str) -> bool:
    return "\u1100" <= character <= "\u11ff"
