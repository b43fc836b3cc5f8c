"""Splits a layout into parts that fit a platform's limit, in linear time.

A part ends at the best position in its second half: between blocks, between items or blocks within a block, between
lines, between sentences, between words. Then the first half is searched in the same way. The last resort is a position
between two grapheme clusters. Styles are closed at the end of a part and reopened in the next one. A code block or
table that fits into a part is not split.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple
from urllib.parse import unquote

from frontdesk.markdown.dialect import Dialect, MarkedSpan, Rendered, emit, mark_spans
from frontdesk.markdown.layout import (
    BLOCK,
    HEADER,
    INNER,
    LINE,
    Cut,
    Kind,
    Layout,
    LayoutWriter,
    Span,
    Style,
    Styles,
    Unit,
    last_boundary,
    length,
)
from frontdesk.markdown.nodes import (
    Alignment,
    Block,
    Break,
    Cell,
    Code,
    CodeBlock,
    Document,
    Emphasis,
    Heading,
    Image,
    Inline,
    Item,
    Link,
    List,
    Paragraph,
    Quote,
    Rule,
    Strike,
    Strong,
    Table,
    Text,
)

_SENTENCE = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+\s++|[\u3002\uff01\uff1f]++")
_MAX_CHARACTERS = 4096
"""The number of characters whose costs are kept."""
_NO_BREAK = "\u00a0\u202f\u2060\ufeff"


def split_layout(layout: Layout, dialect: Dialect, limit: int, unit: Unit) -> list[Rendered]:
    """Split a layout into parts no longer than `limit`. A layout without visible text has no parts."""
    return [part for part, _ in split_with_starts(layout, dialect, limit, unit)]


def split_with_starts(layout: Layout, dialect: Dialect, limit: int, unit: Unit) -> list[tuple[Rendered, int]]:
    """Split a layout as `split_layout` does. Return the parts with their start positions in the layout."""
    if limit < 1:
        raise ValueError("the limit of a part must be greater than 0")
    splitter = _Splitter(layout, dialect, limit, unit)
    parts: list[tuple[Rendered, int]] = []
    place: int | None = 0
    while place is not None:
        part, start, place = splitter.take(place)
        if part is not None:
            parts.append((part, start))
    return parts


class _Overhead(NamedTuple):
    """The cost of a part before its first character."""

    spans: list[MarkedSpan]
    cost: int
    repeat: bool | None


class _Costs:
    """Cumulative cost of a layout's characters and marks, in a unit."""

    def __init__(self, layout: Layout, dialect: Dialect, spans: list[MarkedSpan], unit: Unit) -> None:
        self.text = _count_character_costs(dialect, unit, code=False)
        self.marks = [length(marked.opening, unit) + length(marked.closing, unit) for marked in spans]
        code = _count_character_costs(dialect, unit, code=True)
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
        """Return the cost of the text between two positions, with the marks of spans that begin there."""
        return self.up_to[end] - self.up_to[start]


class _CharacterCosts(dict[str, int]):
    def __init__(self, dialect: Dialect, unit: Unit, *, code: bool) -> None:
        super().__init__()
        self._dialect, self._code = dialect, code
        self._unit: Unit = unit

    def __missing__(self, character: str) -> int:
        if len(self) >= _MAX_CHARACTERS:
            self.clear()
        cost = self[character] = length(self._dialect.escape(character, code=self._code), self._unit)
        return cost


# Kept from text to text: a channel has one dialect.
@lru_cache(maxsize=32)
def _count_character_costs(dialect: Dialect, unit: Unit, *, code: bool) -> _CharacterCosts:
    return _CharacterCosts(dialect, unit, code=code)


class _Splitter:
    def __init__(self, layout: Layout, dialect: Dialect, limit: int, unit: Unit) -> None:
        self._layout, self._dialect, self._limit = layout, dialect, limit
        self._unit: Unit = unit
        self._spans = mark_spans(layout, dialect)
        self._costs = _Costs(layout, dialect, self._spans, unit)
        self._ends = [cut.end for cut in layout.cuts]
        self._passed = 0
        self._open: list[int] = []

    def take(self, place: int) -> tuple[Rendered | None, int, int | None]:
        """Take a part. Return it, its start, and the start of the next part."""
        text = self._layout.text
        start, fresh = self._skip_space(place)
        if start == len(text):
            return None, start, None
        self._pass(start)
        overhead = self._overhead(start, fresh)
        if overhead is None:
            reach = self._find_unstyled_reach(start)
        else:
            remaining = self._costs.up_to[start] + self._limit - overhead.cost
            reach = max(bisect_right(self._costs.up_to, remaining) - 1, start + 1)
        end, resume = (reach, None) if reach == len(text) else self._cut(start, reach)
        end = self._strip_space(start, end)
        if text[start:end].isspace():
            return None, start, resume
        if overhead is None:
            return emit(self._layout, self._dialect, (), start, end), start, resume
        spans = [*overhead.spans, *self._spans_from(end)]
        return emit(self._layout, self._dialect, spans, start, end, overhead.repeat), start, resume

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
        """Record the spans opened before a position that continue there."""
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
        """Return the cost of reopened spans, or None if styles would leave less than half of the part for text."""
        spans = [self._spans[index] for index in self._open]
        cost = sum(self._costs.marks[index] for index in self._open)
        first = self._costs.between(start, start + 1)
        if cost + first > max(self._limit // 2, self._costs.text[self._layout.text[start]]):
            return None
        repeats = sum(length(_again(marked.span.style, fresh), self._unit) for marked in spans)
        if cost + repeats > min(self._limit // 2, self._limit - first):
            return _Overhead(spans, cost, None)
        return _Overhead(spans, cost + repeats, fresh)

    def _find_unstyled_reach(self, start: int) -> int:
        """Return the last possible end of a part without styles. A part has at least one character."""
        text = self._layout.text
        remaining = self._limit - self._costs.text[text[start]]
        place = start + 1
        while place < len(text) and (remaining := remaining - self._costs.text[text[place]]) >= 0:
            place += 1
        return place

    def _cut(self, start: int, reach: int) -> tuple[int, int]:
        code = self._layout.code_around(reach)
        if code is not None and start < code.start and reach < code.end and self._fits(code):
            index = bisect_right(self._ends, code.start) - 1
            if index >= 0 and self._layout.cuts[index].end > start:
                return self._layout.cuts[index].end, self._layout.cuts[index].resume
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
        """Return the start of the first style that a cut would split, if that style fits into one part."""
        for marked in self._spans_from(reach):
            span = marked.span
            if start < span.start < reach < span.end and self._fits(span):
                return span.start
        return None

    def _fits(self, code: Span) -> bool:
        return self._costs.between(code.start, code.end) <= self._limit

    def _best_cut(self, start: int, least: int, reach: int) -> Cut | None:
        """Return the last cut of the best rank up to `reach` after which the next part begins behind `least`."""
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


_MAX_KEY_LENGTH = 40


def align(rows: Sequence[Sequence[str]], alignments: Sequence[Alignment | None], widest: int) -> list[str] | None:
    """Return a table as aligned lines with a rule under the header, or None if they are too wide."""
    widths = [max(_width(cell) for cell in column) for column in zip(*rows, strict=True)]
    if sum(widths) + 3 * (len(widths) - 1) > widest:
        return None
    lines = [
        " | ".join(_pad(cell, width, side) for cell, width, side in zip(row, widths, alignments, strict=True)).rstrip()
        for row in rows
    ]
    return [lines[0], "-+-".join("-" * width for width in widths), *lines[1:]]


def has_short_keys(header: Sequence[str], rows: int) -> bool:
    """Return True if the header can be repeated before every cell. A long one would multiply the text."""
    return rows > 0 and all(len(key) <= _MAX_KEY_LENGTH for key in header)


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


_MARK = Style("mark")
_QUOTE_MARK = "> "
_KINDS: dict[type[Strong | Emphasis | Strike], Kind] = {Strong: "bold", Emphasis: "italic", Strike: "strike"}


def lay_out(document: Document, dialect: Dialect) -> Layout:
    walk = _Walk(dialect)
    walk.blocks(document.blocks, _Place(), BLOCK)
    return walk.finish()


class _Place(NamedTuple):
    prefix: str = ""
    styles: Styles = ()


class _Walk:
    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._writer = LayoutWriter()

    def finish(self) -> Layout:
        return self._writer.finish()

    def blocks(self, blocks: Sequence[Block], place: _Place, rank: int, *, apart: bool = True) -> None:
        for index, block in enumerate(blocks):
            if index:
                # A heading stays with what it is about.
                after_heading = isinstance(blocks[index - 1], Heading)
                self._separate(place, LINE if after_heading else rank, apart=apart)
            if rank == BLOCK:
                self._writer.begin_block()
            self._block(block, place)

    def _block(self, block: Block, place: _Place) -> None:
        match block:
            case Paragraph(children):
                self._inlines(children, place, ())
            case Heading(_, children):
                self._inlines(children, place, self._dialect.heading)
            case CodeBlock(text, language):
                self._code(self._dialect.disarm(text, "pre").split("\n"), place, Style("pre", language))
            case Rule():
                self._mark(self._dialect.rule, place)
            case Quote(blocks):
                self._quote(blocks, place)
            case List():
                self._list(block, place)
            case Table():
                self._table(block, place)
            case Image():
                self._inlines((block,), place, ())

    def _separate(self, place: _Place, rank: int, *, apart: bool) -> None:
        """Begin a new line, preceded by an empty one if the blocks are `apart`."""
        empty = f"\n{place.prefix.rstrip()}" if apart else ""
        separator = f"{empty}\n{place.prefix}"
        styles = (*place.styles, _MARK) if place.prefix.strip() else place.styles
        self._writer.cut(separator, len(separator) - len(place.prefix), styles, rank)

    def _mark(self, text: str, place: _Place) -> None:
        plain = self._dialect.escape(text, code=False) == text
        self._writer.write(text, place.styles if plain else (*place.styles, _MARK))

    def _code(self, lines: Sequence[str], place: _Place, style: Style, *, header: int = 0) -> None:
        """Write lines verbatim, also within quotes and lists. The first ones may be a table header."""
        styles = (*(outer for outer in place.styles if not outer.prefix), style)
        for index, line in enumerate(lines):
            if 0 < index < header:
                self._writer.write("\n", styles)
            elif index:
                self._writer.cut("\n", 1, styles, HEADER if index == header else LINE)
            self._writer.write(line, styles)

    def _quote(self, blocks: Sequence[Block], place: _Place) -> None:
        nested = any(style.kind == "quote" for style in place.styles)
        if self._dialect.quote_spans and not nested:
            self.blocks(blocks, place._replace(styles=(*place.styles, Style("quote"))), INNER)
            return
        prefix = place.prefix + _QUOTE_MARK
        others = tuple(style for style in place.styles if style.kind != "quote")
        styles = place.styles if self._dialect.quote_spans else (*others, Style("quote", prefix=prefix.lstrip()))
        self._mark(_QUOTE_MARK, place._replace(styles=styles))
        self.blocks(blocks, _Place(prefix, styles), INNER)

    def _list(self, node: List, place: _Place) -> None:
        for index, item in enumerate(node.items):
            if index:
                self._separate(place, INNER, apart=not node.tight)
            marker = self._dialect.bullet if node.start is None else f"{node.start + index}."
            self._item(item, marker, place, apart=not node.tight)

    def _item(self, item: Item, marker: str, place: _Place, *, apart: bool) -> None:
        self._mark(marker if item.checked is None else f"{marker} {'☑' if item.checked else '☐'}", place)
        inner = place._replace(prefix=place.prefix + " " * (len(marker) + 1))
        if item.blocks and isinstance(item.blocks[0], CodeBlock | Table):
            self._writer.write("\n", place.styles)
        elif item.blocks:
            self._writer.write(" ", place.styles)
        self.blocks(item.blocks, inner, INNER, apart=apart)

    def _table(self, table: Table, place: _Place) -> None:
        header = [self._words(cell) for cell in table.header]
        rows = [[self._words(cell) for cell in row] for row in table.rows]
        lines = align([header, *rows], table.alignments, self._dialect.table_width)
        if lines is not None:
            # The header is disarmed with the rest, and comes again where the table is cut.
            lines = [self._dialect.disarm(line, "pre") for line in lines]
            again = self._dialect.escape("\n".join([*lines[:2], ""]), code=True)
            self._code(lines, place, Style("pre", header=again), header=2)
        elif has_short_keys(header, len(rows)):
            self._records(table, header, place)
        else:
            self._rows([table.header, *table.rows], place)

    def _records(self, table: Table, header: Sequence[str], place: _Place) -> None:
        for index, row in enumerate(table.rows):
            if index:
                self._separate(place, INNER, apart=True)
            # The first row names every column, also those that are empty in it.
            cells = [(key, cell) for key, cell in zip(header, row, strict=True) if cell.children or not index]
            for number, (key, cell) in enumerate(cells):
                if number:
                    self._separate(place, LINE, apart=False)
                if key:
                    self._text(f"{key}:", place, self._dialect.heading)
                    self._writer.write(" ", place.styles)
                self._inlines(cell.children, place, ())

    def _rows(self, rows: Sequence[Sequence[Cell]], place: _Place) -> None:
        for index, row in enumerate(rows):
            if index:
                self._separate(place, LINE, apart=False)
            for number, cell in enumerate(row):
                if number:
                    self._mark(" | ", place)
                self._inlines(cell.children, place, () if index else self._dialect.heading)

    def _words(self, cell: Cell) -> str:
        return lay_out(Document((Paragraph(cell.children),)), _PLAIN).text

    def _inlines(self, nodes: Iterable[Inline], place: _Place, styles: Styles) -> None:
        for node in nodes:
            match node:
                case Text(text):
                    self._text(text, place, styles)
                case Code(text):
                    self._write_styled(self._dialect.disarm(text, "code"), place, _with(styles, Style("code")))
                case Break():
                    goes_on = () if self._dialect.styles_end_with_lines else self._dialect.nest(styles)
                    mark = (_MARK,) if place.prefix.strip() else goes_on
                    self._writer.cut(f"\n{place.prefix}", 1, (*place.styles, *mark), LINE)
                case Link(children, url):
                    self._link(children, url, place, styles)
                case Image(alt, url):
                    self._link((Text(alt),) if alt else (), url, place, styles)
                case Strong(children) | Emphasis(children) | Strike(children):
                    self._inlines(children, place, _with(styles, Style(_KINDS[type(node)])))

    def _text(self, text: str, place: _Place, styles: Styles) -> None:
        self._write_styled(self._dialect.disarm(text.replace("\n", " "), None), place, styles)

    def _write_styled(self, text: str, place: _Place, styles: Styles) -> None:
        self._writer.write(text, (*place.styles, *self._dialect.nest(styles)))

    def _link(self, children: Sequence[Inline], url: str, place: _Place, styles: Styles) -> None:
        label = "".join(_labels(children))
        if not label.strip():
            children = (Text(url),)
        if url.lower().startswith(self._dialect.link_schemes):
            self._inlines(children, place, _with(styles, Style("link", url)))
            return
        self._inlines(children, place, styles)
        if url and label.strip() and not url.endswith(label) and label != unquote(url):
            self._text(f" ({url})", place, styles)


_PLAIN = Dialect()


def _with(styles: Styles, style: Style) -> Styles:
    return styles if any(other.kind == style.kind for other in styles) else (*styles, style)


def _labels(nodes: Iterable[Inline]) -> Iterable[str]:
    for node in nodes:
        match node:
            case Text(text) | Code(text):
                yield text
            case Image(alt, _):
                yield alt
            case Break():
                yield "\n"
            case Strong(children) | Emphasis(children) | Strike(children) | Link(children, _):
                yield from _labels(children)


_BETWEEN = 2
"""The units of the empty line between two blocks."""


def pack(document: Document, dialect: Dialect, limit: int, *, unit: Unit) -> list[Document]:
    """Split a document between blocks. A block over the limit becomes its own document, with its heading.

    While a document grows at its end, all packed blocks except the last two stay unchanged.
    """
    packed: list[list[Block]] = [[]]
    remaining, has_text = limit, False
    for block in document.blocks:
        size = _size(block, dialect, unit) + _BETWEEN
        # A heading stays with what it is about.
        if size > remaining and has_text:
            kept = [packed[-1].pop()] if isinstance(packed[-1][-1], Heading) else []
            packed.append([*kept])
            remaining, has_text = limit - sum(_size(heading, dialect, unit) + _BETWEEN for heading in kept), False
        packed[-1].append(block)
        has_text = has_text or not isinstance(block, Heading)
        remaining -= size
    return [Document(tuple(blocks)) for blocks in packed if blocks]


def _size(block: Block, dialect: Dialect, unit: Unit) -> int:
    layout = lay_out(Document((block,)), dialect)
    return length(emit(layout, dialect, mark_spans(layout, dialect), 0, len(layout.text)).text, unit)
