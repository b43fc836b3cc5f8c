"""Walks a tree and lays it out as a dialect wants it: the walk that all platforms share."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from frontdesk.kit.chat.markdown import tables
from frontdesk.kit.chat.markdown.dialect import Dialect
from frontdesk.kit.chat.markdown.layout import BLOCK, HEADER, INNER, LINE, Kind, Layout, LayoutWriter, Style, Styles
from frontdesk.kit.chat.markdown.nodes import (
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

_MARK = Style("mark")
_QUOTE_MARK = "> "
_KINDS: dict[type[Strong | Emphasis | Strike], Kind] = {Strong: "bold", Emphasis: "italic", Strike: "strike"}


def lay_out(document: Document, dialect: Dialect) -> Layout:
    """Lay a document out for a dialect."""
    walk = _Walk(dialect)
    walk.blocks(document.blocks, _Place(), BLOCK)
    return walk.finish()


class _Place(NamedTuple):
    """The place of a block: the prefix of its lines, and the styles around it."""

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
        """Begin a new line, with an empty one before it if the blocks are `apart`."""
        empty = f"\n{place.prefix.rstrip()}" if apart else ""
        separator = f"{empty}\n{place.prefix}"
        styles = (*place.styles, _MARK) if place.prefix.strip() else place.styles
        self._writer.cut(separator, len(separator) - len(place.prefix), styles, rank)

    def _mark(self, text: str, place: _Place) -> None:
        plain = self._dialect.escape(text, code=False) == text
        self._writer.write(text, place.styles if plain else (*place.styles, _MARK))

    def _code(self, lines: Sequence[str], place: _Place, style: Style, *, header: int = 0) -> None:
        """Write lines verbatim, also within quotes and lists; the first ones may be a table's header."""
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
        lines = tables.align([header, *rows], table.alignments, self._dialect.table_width)
        if lines is not None:
            # The header is disarmed with the rest, and comes again where the table is cut.
            lines = [self._dialect.disarm(line, "pre") for line in lines]
            again = self._dialect.escape("\n".join([*lines[:2], ""]), code=True)
            self._code(lines, place, Style("pre", header=again), header=2)
        elif tables.has_short_keys(header, len(rows)):
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
                    self._styled(self._dialect.disarm(text, "code"), place, _with(styles, Style("code")))
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
        self._styled(self._dialect.disarm(text.replace("\n", " "), None), place, styles)

    def _styled(self, text: str, place: _Place, styles: Styles) -> None:
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
