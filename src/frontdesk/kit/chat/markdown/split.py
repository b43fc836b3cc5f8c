"""Cuts a layout into parts that a platform takes, in linear time.

A part ends at the best place in its second half: between blocks, between items or blocks within a block, between
lines, between sentences, between words; then the same in its first half; and at worst between two characters as people
see them. Styles are closed at its end and opened again in the next part. A block of code or a table that fits into a
part is not cut.
"""

import re
from bisect import bisect_right
from itertools import accumulate
from typing import NamedTuple

from frontdesk.kit.chat.markdown.dialect import Dialect
from frontdesk.kit.chat.markdown.emit import MarkedSpan, Rendered, emit, mark_spans
from frontdesk.kit.chat.markdown.layout import BLOCK, Cut, Layout, Span, Style
from frontdesk.kit.chat.markdown.units import Unit, last_boundary, length

_SENTENCE = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+\s++|[\u3002\uff01\uff1f]++")
_NO_BREAK = "\u00a0\u202f\u2060\ufeff"


def split_layout(layout: Layout, dialect: Dialect, limit: int, unit: Unit) -> list[Rendered]:
    """Split a layout into parts no longer than `limit`; one that says nothing has none."""
    if limit < 1:
        raise ValueError("a part must have room for something")
    splitter = _Splitter(layout, dialect, limit, unit)
    parts: list[Rendered] = []
    place: int | None = 0
    while place is not None:
        part, place = splitter.take(place)
        if part is not None:
            parts.append(part)
    return parts


class _Overhead(NamedTuple):
    """The cost of a part before its first character."""

    spans: list[MarkedSpan]
    cost: int
    repeat: bool | None


class _Costs:
    """Counts what the characters and the marks of a layout cost in a unit, up to each place."""

    def __init__(self, layout: Layout, dialect: Dialect, spans: list[MarkedSpan], unit: Unit) -> None:
        self.text = _CharacterCosts(dialect, unit, code=False)
        self.marks = [length(marked.opening, unit) + length(marked.closing, unit) for marked in spans]
        code = _CharacterCosts(dialect, unit, code=True)
        costs = [self.text[character] for character in layout.text]
        for span in layout.spans:
            stretch = layout.text[span.start : span.end]
            if span.style.kind in ("code", "pre"):
                costs[span.start : span.end] = [code[character] for character in stretch]
            elif span.style.kind == "mark":
                costs[span.start : span.end] = [length(character, unit) for character in stretch]
        for marked, cost in zip(spans, self.marks, strict=True):
            costs[marked.span.start] += cost
        self.up_to = [0, *accumulate(costs)]

    def between(self, start: int, end: int) -> int:
        """Return what the text between two places costs, with the marks of the spans that begin there."""
        return self.up_to[end] - self.up_to[start]


class _CharacterCosts(dict[str, int]):
    def __init__(self, dialect: Dialect, unit: Unit, *, code: bool) -> None:
        super().__init__()
        self._dialect, self._code = dialect, code
        self._unit: Unit = unit

    def __missing__(self, character: str) -> int:
        cost = self[character] = length(self._dialect.escape(character, code=self._code), self._unit)
        return cost


class _Splitter:
    def __init__(self, layout: Layout, dialect: Dialect, limit: int, unit: Unit) -> None:
        self._layout, self._dialect, self._limit = layout, dialect, limit
        self._unit: Unit = unit
        self._spans = mark_spans(layout, dialect)
        self._costs = _Costs(layout, dialect, self._spans, unit)
        self._ends = [cut.end for cut in layout.cuts]
        self._passed = 0
        self._open: list[int] = []

    def take(self, place: int) -> tuple[Rendered | None, int | None]:
        """Take a part from a place on; return it, and where the next one begins."""
        text = self._layout.text
        start, fresh = self._skip_space(place)
        if start == len(text):
            return None, None
        self._pass(start)
        overhead = self._overhead(start, fresh)
        if overhead is None:
            reach = self._unstyled_reach(start)
        else:
            room = self._costs.up_to[start] + self._limit - overhead.cost
            reach = max(bisect_right(self._costs.up_to, room) - 1, start + 1)
        end, resume = (reach, None) if reach == len(text) else self._cut(start, reach)
        end = self._strip_space(start, end)
        if text[start:end].isspace():
            return None, resume
        if overhead is None:
            return emit(self._layout, self._dialect, (), start, end), resume
        spans = [*overhead.spans, *self._spans_from(end)]
        return emit(self._layout, self._dialect, spans, start, end, overhead.repeat), resume

    def _skip_space(self, place: int) -> tuple[int, bool]:
        """Return where the next text begins, and whether that is the beginning of a line."""
        text = self._layout.text
        fresh = place == 0 or text[place - 1] == "\n"
        while place < len(text) and text[place].isspace() and not self._layout.code_around(place + 1):
            fresh = fresh or text[place] == "\n"
            place += 1
        return place, fresh

    def _strip_space(self, start: int, end: int) -> int:
        text = self._layout.text
        while end > start + 1 and text[end - 1].isspace() and not self._layout.code_around(end):
            end -= 1
        return end

    def _pass(self, start: int) -> None:
        """Take note of the spans that were opened before a place and go on there."""
        while self._passed < len(self._spans) and self._spans[self._passed].span.start < start:
            self._open.append(self._passed)
            self._passed += 1
        self._open = [index for index in self._open if self._spans[index].span.end > start]

    def _spans_from(self, end: int) -> list[MarkedSpan]:
        last = self._passed
        while last < len(self._spans) and self._spans[last].span.start < end:
            last += 1
        return self._spans[self._passed : last]

    def _overhead(self, start: int, fresh: bool) -> _Overhead | None:
        """Return what is opened again; None if styles would leave less than half of the part for its text."""
        spans = [self._spans[index] for index in self._open]
        cost = sum(self._costs.marks[index] for index in self._open)
        first = self._costs.between(start, start + 1)
        if cost + first > max(self._limit // 2, self._costs.text[self._layout.text[start]]):
            return None
        repeats = sum(length(_again(marked.span.style, fresh), self._unit) for marked in spans)
        if cost + repeats > min(self._limit // 2, self._limit - first):
            return _Overhead(spans, cost, None)
        return _Overhead(spans, cost + repeats, fresh)

    def _unstyled_reach(self, start: int) -> int:
        """Return how far a part without styles reaches; it takes one character in any case."""
        text = self._layout.text
        room = self._limit - self._costs.text[text[start]]
        place = start + 1
        while place < len(text) and (room := room - self._costs.text[text[place]]) >= 0:
            place += 1
        return place

    def _cut(self, start: int, reach: int) -> tuple[int, int]:
        code = self._layout.code_around(reach)
        if code is not None and start < code.start and reach < code.end and self._fits(code):
            before = self._layout.cuts[bisect_right(self._ends, code.start) - 1]
            if before.end > start:
                return before.end, before.resume
        # A good place near the beginning is worse than a fair one that fills the part.
        for least in (start + (reach - start) // 2, start):
            cut = self._best_cut(start, least, reach)
            if cut is not None:
                return cut.end, cut.resume
            if code is not None and least > start:
                # The end of any line of code is better than one of its spaces.
                continue
            place = self._sentence_end(least, reach) or self._word_end(least, reach)
            if place is not None:
                return place, place
        place = self._span_begin(start, reach) or last_boundary(self._layout.text, start, reach)
        return place, place

    def _span_begin(self, start: int, reach: int) -> int | None:
        """Return where the first style begins that a cut would split, if a part of its own has room for it."""
        for marked in self._spans_from(reach):
            span = marked.span
            if start < span.start < reach < span.end and self._fits(span):
                return span.start
        return None

    def _fits(self, code: Span) -> bool:
        return self._costs.between(code.start, code.end) <= self._limit

    def _best_cut(self, start: int, least: int, reach: int) -> Cut | None:
        """Return the last one of the best rank up to `reach` that lets the next part begin behind `least`."""
        best: Cut | None = None
        for index in range(bisect_right(self._ends, reach) - 1, -1, -1):
            cut = self._layout.cuts[index]
            if cut.resume <= least or cut.end <= start or (best is not None and best.rank == BLOCK):
                break
            if best is None or cut.rank < best.rank:
                best = cut
        return best

    def _sentence_end(self, least: int, reach: int) -> int | None:
        places = [match.end() for match in _SENTENCE.finditer(self._layout.text, least, reach)]
        good = (place for place in reversed(places) if place > least and not self._layout.code_around(place))
        return next(good, None)

    def _word_end(self, least: int, reach: int) -> int | None:
        text = self._layout.text
        for place in range(reach, least, -1):
            if _is_space(text[place - 1]) or _is_space(text[place]):
                return place
        return None


def _again(style: Style, fresh: bool) -> str:
    return style.header if fresh else style.prefix


def _is_space(character: str) -> bool:
    return character.isspace() and character not in _NO_BREAK
