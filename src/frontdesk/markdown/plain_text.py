"""Splits plain text into parts that fit a platform's limit. Pure.

The joined parts equal the text. A part ends at the best position that fits: after a paragraph, a line, a sentence or a
word, and otherwise between two grapheme clusters. A fenced code block stays in one part if it fits, and is otherwise
split after a line.
"""

import re
from bisect import bisect_left
from typing import Literal

from frontdesk.markdown.layout import last_boundary, splits

Units = Literal["characters", "utf16"]
"""The unit in which a platform counts: code points, or those of UTF-16."""

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n]*)", re.MULTILINE)
_ENDS = ".!?…。！？"  # noqa: RUF001
# None begins within what another could have taken, so that each character is looked at a few times only.
_BREAKS = tuple(
    re.compile(pattern)
    for pattern in (
        r"\n[ \t]*+\n++",
        r"\n",
        rf"(?<![{_ENDS}])[{_ENDS}]++[\"'”’)\]]*+\s++",
        r"[ \t]++",
    )
)


def split_text(text: str, limit: int, *, units: Units = "characters") -> list[str]:
    """Split a text into parts no longer than `limit`. An empty text has no parts."""
    if limit < 1:
        raise ValueError("the limit of a part must be greater than 0")
    if text_length(text, units) <= limit:
        return [text] if text else []
    blocks = _Blocks(text)
    parts: list[str] = []
    start = 0
    while start < len(text):
        end = _reach(text, start, limit, units)
        if end < len(text):
            end = _best_end(text, start, end, blocks)
        parts.append(text[start:end])
        start = end
    return parts


def one_line(text: str) -> str:
    """Return a text as one line. Runs of invisible characters and spaces become one space."""
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())


def text_length(text: str, units: Units = "characters") -> int:
    return len(text) if units == "characters" else len(text) + sum(character > "\uffff" for character in text)


def _reach(text: str, start: int, limit: int, units: Units) -> int:
    """Return the last possible end of a part. A part has at least one character."""
    end = min(len(text), start + limit)
    if units == "characters":
        return end
    remaining = limit
    for place in range(start, end):
        remaining -= 2 if text[place] > "\uffff" else 1
        if remaining < 0:
            return max(place, start + 1)
    return end


class _Blocks:
    """Finds the ranges of code blocks. An unclosed block extends to the end."""

    def __init__(self, text: str) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        opened: re.Match[str] | None = None
        for fence in _FENCE.finditer(text):
            if opened is None:
                # Three backticks around words in a line are no fence.
                opened = None if "`" in fence[2] else fence
            elif fence[1].startswith(opened[1]) and not fence[2].strip():
                self._add(opened.start(), min(fence.end() + 1, len(text)))
                opened = None
        if opened is not None:
            self._add(opened.start(), len(text))

    def _add(self, start: int, end: int) -> None:
        self._starts.append(start)
        self._ends.append(end)

    def around(self, place: int) -> int | None:
        last = bisect_left(self._starts, place) - 1
        return self._starts[last] if last >= 0 and place < self._ends[last] else None


def _best_end(text: str, start: int, end: int, blocks: _Blocks) -> int:
    opened = blocks.around(end)
    if opened is not None:
        if opened > start:
            return opened
        # It began with this part, or before, and is too long for one; the line of the fence alone would say nothing.
        line = text.rfind("\n", start, end) + 1
        return line if line > text.find("\n", max(opened, start), end) + 1 else last_boundary(text, start, end)
    # A good place near the beginning is worse than a fair one that fills the part.
    for least in (start + (end - start) // 2, start):
        for kind in _BREAKS:
            places = [match.end() for match in kind.finditer(text, start, end) if match.end() > least]
            good = [place for place in places if blocks.around(place) is None and not splits(text, start, place)]
            if good and text[start : good[-1]].strip():
                return good[-1]
    return last_boundary(text, start, end)
