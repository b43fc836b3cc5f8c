"""The characters that a person can't see, written down independently of the package; for tests."""

import unicodedata
from collections.abc import Iterator
from functools import cache

KEPT_BLANKS = " \u00a0\u202f\u3000"
"""Blanks that ordinary texts have. They are displayed as blanks."""
# `Default_Ignorable_Code_Point` of Unicode 16, from DerivedCoreProperties.txt.
IGNORABLE = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF)),
    *((0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
EMPTY = "\u2800\ufffc\U0001d159"
"""Characters whose glyph is empty."""


@cache
def _ignorable() -> frozenset[int]:
    return frozenset(code for first, last in IGNORABLE for code in range(first, last + 1))


@cache
def is_invisible(character: str) -> bool:
    """Whether nobody sees it, or it changes what is around it."""
    if character in KEPT_BLANKS or character in "\n\t":
        return False
    kind = unicodedata.category(character)
    return kind[0] == "C" or kind in ("Zl", "Zp", "Zs") or ord(character) in _ignorable() or character in EMPTY


def invisible_in(text: str) -> list[str]:
    """The invisible characters of a text, as their numbers."""
    return [hex(ord(one)) for one in text if is_invisible(one)]


@cache
def invisible_characters() -> tuple[str, ...]:
    """Return format and control characters, ignorable ones, and those without a glyph."""
    return tuple(_find_invisible())


def _find_invisible() -> Iterator[str]:
    for code in range(0x110000):
        kind = unicodedata.category(chr(code))
        named = kind in ("Cc", "Cf", "Zl", "Zp") or code in _ignorable() or chr(code) in EMPTY
        if named and is_invisible(chr(code)):
            yield chr(code)
