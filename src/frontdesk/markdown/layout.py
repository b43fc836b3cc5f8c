"""Lays out a Markdown tree as one text with styled spans and cut positions, for all renderers."""

import unicodedata
from bisect import bisect_left
from typing import Literal, NamedTuple

import msgspec

Kind = Literal["bold", "italic", "strike", "code", "link", "pre", "quote", "mark"]
"""The kind of a stretch of text; a `mark` is of the layout's own, such as a bullet, and is not escaped."""

BLOCK, INNER, LINE, HEADER = range(4)
"""The rank of a place: between blocks, between items or blocks within one, between lines, behind a table's header."""


class Style(msgspec.Struct, frozen=True):
    kind: Kind
    value: str = ""
    """The URL of a link, or the language of a block of code."""
    header: str = ""
    """The prefix of a part that begins with a later line of the stretch: the header of a table."""
    prefix: str = ""
    """The prefix of a part that begins within a line of the stretch: the mark of a quote."""


Styles = tuple[Style, ...]


class Span(msgspec.Struct, frozen=True):
    """A style with its start and end, in characters of the layout."""

    start: int
    end: int
    style: Style


class Cut(NamedTuple):
    """A possible boundary between two parts. The characters between end and next start are dropped."""

    end: int
    resume: int
    rank: int


class Layout(msgspec.Struct, frozen=True):
    """A text with its spans, outer ones first, and its possible cuts."""

    text: str
    spans: tuple[Span, ...]
    cuts: tuple[Cut, ...]

    code: tuple[Span, ...]
    """The blocks of code among the spans."""
    starts: tuple[int, ...] = ()
    """The start of each block of the document itself."""

    def code_around(self, place: int) -> Span | None:
        """Return the code block that contains a position or ends there, if any."""
        index = bisect_left(self.code, place, key=lambda span: span.start) - 1
        return self.code[index] if index >= 0 and place <= self.code[index].end else None


class LayoutWriter:
    def __init__(self) -> None:
        self.position = 0
        self._pieces: list[str] = []
        self._spans: list[Span] = []
        self._open: list[int] = []
        self._cuts: list[Cut] = []
        self._starts: list[int] = []

    def begin_block(self) -> None:
        self._starts.append(self.position)

    def write(self, text: str, styles: Styles) -> None:
        """Add text. A style shared with the preceding text continues."""
        if not text:
            return
        shared = 0
        while shared < min(len(styles), len(self._open)) and self._spans[self._open[shared]].style == styles[shared]:
            shared += 1
        self._close(shared)
        for style in styles[shared:]:
            self._open.append(len(self._spans))
            self._spans.append(Span(self.position, self.position, style))
        self._pieces.append(text)
        self.position += len(text)

    def cut(self, separator: str, resume: int, styles: Styles, rank: int) -> None:
        """Add the separator between two parts. After a cut, the next part keeps it from character `resume` on."""
        self._cuts.append(Cut(self.position, self.position + resume, rank))
        self.write(separator, styles)

    def finish(self) -> Layout:
        self._close(0)
        code = tuple(span for span in self._spans if span.style.kind == "pre")
        return Layout("".join(self._pieces), tuple(self._spans), tuple(self._cuts), code, tuple(self._starts))

    def _close(self, keep: int) -> None:
        for index in self._open[keep:]:
            self._spans[index] = msgspec.structs.replace(self._spans[index], end=self.position)
        del self._open[keep:]


Unit = Literal["characters", "utf16", "bytes"]
"""The unit in which a platform counts: code points, code units of UTF-16, or bytes of UTF-8."""

_JOINER = "\u200d"


def length(text: str, unit: Unit) -> int:
    if unit == "characters":
        return len(text)
    if unit == "bytes":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def last_boundary(text: str, start: int, end: int) -> int:
    """Return the last position after `start`, at most `end`, that splits no visible character, else `end`."""
    place = end
    while place > start and splits(text, start, place):
        place -= 1
    return place if place > start else end


def splits(text: str, start: int, place: int) -> bool:
    """Return True if a position splits a visible character. The start of a part at `start` never does."""
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
