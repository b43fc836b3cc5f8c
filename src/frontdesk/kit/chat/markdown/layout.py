"""Lays a tree out as one text with styled spans and places where it may be cut: what all renderers share."""

from bisect import bisect_left
from typing import Literal, NamedTuple

import msgspec

Kind = Literal["bold", "italic", "strike", "code", "link", "pre", "quote", "mark"]
"""The kind of a stretch of text; a `mark` is of the layout's own, such as a bullet, and is not escaped."""

BLOCK, INNER, LINE, HEADER = range(4)
"""The rank of a place: between blocks, between items or blocks within one, between lines, behind a table's header."""


class Style(msgspec.Struct, frozen=True):
    """A style of a stretch of text."""

    kind: Kind
    value: str = ""
    """The URL of a link, or the language of a block of code."""
    header: str = ""
    """The prefix of a part that begins with a later line of the stretch: the header of a table."""
    prefix: str = ""
    """The prefix of a part that begins within a line of the stretch: the mark of a quote."""


Styles = tuple[Style, ...]


class Span(msgspec.Struct, frozen=True):
    """A style and where it begins and ends, in characters of the layout."""

    start: int
    end: int
    style: Style


class Cut(NamedTuple):
    """A place between two parts: one ends, and the next begins; what is between them is left out."""

    end: int
    resume: int
    rank: int


class Layout(msgspec.Struct, frozen=True):
    """A text with its spans, outer ones first, and the places where it may be cut."""

    text: str
    spans: tuple[Span, ...]
    cuts: tuple[Cut, ...]

    code: tuple[Span, ...]
    """The blocks of code among the spans."""

    def code_around(self, place: int) -> Span | None:
        """Return the block of code that a place is inside of, or at the end of, if there is one."""
        index = bisect_left(self.code, place, key=lambda span: span.start) - 1
        return self.code[index] if index >= 0 and place <= self.code[index].end else None


class LayoutWriter:
    """Writes a layout from its beginning to its end."""

    def __init__(self) -> None:
        self.position = 0
        self._pieces: list[str] = []
        self._spans: list[Span] = []
        self._open: list[int] = []
        self._cuts: list[Cut] = []

    def write(self, text: str, styles: Styles) -> None:
        """Add text; a style that the text before it has too goes on."""
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
        """Add what separates two parts if they are not cut; the next part keeps it from the character `resume` on."""
        self._cuts.append(Cut(self.position, self.position + resume, rank))
        self.write(separator, styles)

    def finish(self) -> Layout:
        """Return the layout."""
        self._close(0)
        code = tuple(span for span in self._spans if span.style.kind == "pre")
        return Layout("".join(self._pieces), tuple(self._spans), tuple(self._cuts), code)

    def _close(self, keep: int) -> None:
        for index in self._open[keep:]:
            self._spans[index] = msgspec.structs.replace(self._spans[index], end=self.position)
        del self._open[keep:]
