"""Decides how a table is shown: aligned in columns if it is narrow, as lines of `header: cell` otherwise. Pure."""

import unicodedata
from collections.abc import Sequence

from frontdesk.kit.chat.markdown.nodes import Alignment

_LONGEST_KEY = 40


def align(rows: Sequence[Sequence[str]], alignments: Sequence[Alignment | None], widest: int) -> list[str] | None:
    """Return the lines of a table in columns, with a line under the header; None if they are too wide."""
    widths = [max(_width(cell) for cell in column) for column in zip(*rows, strict=True)]
    if sum(widths) + 3 * (len(widths) - 1) > widest:
        return None
    lines = [
        " | ".join(_pad(cell, width, side) for cell, width, side in zip(row, widths, alignments, strict=True)).rstrip()
        for row in rows
    ]
    return [lines[0], "-+-".join("-" * width for width in widths), *lines[1:]]


def has_short_keys(header: Sequence[str], rows: int) -> bool:
    """Tell whether the header can stand before every cell: a long one would multiply the text."""
    return rows > 0 and all(len(key) <= _LONGEST_KEY for key in header)


def _pad(cell: str, width: int, side: Alignment | None) -> str:
    space = width - _width(cell)
    left = space if side == "right" else space // 2 if side == "center" else 0
    return " " * left + cell + " " * (space - left)


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
