"""Writes a stretch of a layout in a dialect, with the styles that were open before it opened again."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from frontdesk.kit.chat.markdown.dialect import Dialect
from frontdesk.kit.chat.markdown.layout import Layout, Span
from frontdesk.kit.chat.markdown.units import length


class Entity(msgspec.Struct, frozen=True, omit_defaults=True):
    """A style apart from its text, counted in code units of UTF-16."""

    type: str
    offset: int
    length: int
    url: str | None = None
    language: str | None = None


class Rendered(msgspec.Struct, frozen=True):
    """A text as a platform takes it."""

    text: str
    entities: tuple[Entity, ...] = ()


class MarkedSpan(NamedTuple):
    """A span and what opens and closes it."""

    span: Span
    opening: str
    closing: str


def mark_spans(layout: Layout, dialect: Dialect) -> list[MarkedSpan]:
    """Find what opens and closes each span."""
    text = layout.text
    return [
        MarkedSpan(span, *dialect.marks(span.style, text[span.start - 1 : span.start], text[span.end : span.end + 1]))
        for span in layout.spans
    ]


def emit(
    layout: Layout, dialect: Dialect, spans: Iterable[MarkedSpan], start: int, end: int, repeat: bool | None = None
) -> Rendered:
    """Write a stretch with the spans that it touches.

    `repeat` says whether the stretch begins with a line (true: headers come again) or within one (false: prefixes do).
    """
    output = _Output(layout, dialect, start, end)
    for marked in spans:
        output.open(marked)
        if marked.span.start < start and repeat is not None:
            output.add(marked.span.style.header if repeat else marked.span.style.prefix)
    return output.finish()


class _Output:
    def __init__(self, layout: Layout, dialect: Dialect, start: int, end: int) -> None:
        self._layout, self._dialect = layout, dialect
        self._place, self._end = start, end
        self._pieces: list[str] = []
        self._open: list[tuple[MarkedSpan, int, int]] = []
        self._entities: list[tuple[int, Entity]] = []
        self._opened = 0
        self._length = 0

    def open(self, marked: MarkedSpan) -> None:
        self._advance(marked.span.start)
        self.add(marked.opening)
        self._open.append((marked, self._length, self._opened))
        self._opened += 1

    def finish(self) -> Rendered:
        self._advance(self._end)
        while self._open:
            self._close()
        # In the order in which they were opened: by their offsets, and outer ones first.
        entities = tuple(entity for _, entity in sorted(self._entities, key=lambda numbered: numbered[0]))
        return Rendered("".join(self._pieces), entities)

    def add(self, text: str) -> None:
        self._pieces.append(text)
        self._length += length(text, "utf16")

    def _advance(self, place: int) -> None:
        """Write up to a place, and close what ends before it or there."""
        while self._open and self._open[-1][0].span.end <= place:
            self._write(self._open[-1][0].span.end)
            self._close()
        self._write(place)

    def _write(self, place: int) -> None:
        place = min(place, self._end)
        if place > self._place:
            kinds = {marked.span.style.kind for marked, _, _ in self._open}
            text = self._layout.text[self._place : place]
            self.add(text if "mark" in kinds else self._dialect.escape(text, code=bool(kinds & {"code", "pre"})))
            self._place = place

    def _close(self) -> None:
        marked, start, number = self._open.pop()
        style = marked.span.style
        name = self._dialect.entities.get(style.kind)
        if name is not None and self._length > start:
            url = style.value if style.kind == "link" else None
            language = style.value or None if style.kind == "pre" else None
            self._entities.append((number, Entity(name, start, self._length - start, url, language)))
        self.add(marked.closing)
