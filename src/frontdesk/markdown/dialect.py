"""Markup dialects of platforms. A renderer only needs a subclass of `Dialect`."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from frontdesk.markdown.layout import Kind, Layout, Span, Style, Styles, length


class Dialect:
    """Base dialect without styles. Subclasses add what their platform supports."""

    entities: Mapping[Kind, str] = {}
    """The names of entities, for a platform that takes styles apart from the text."""
    link_schemes: tuple[str, ...] = ()
    """The beginnings of URLs that can be links; others are shown behind their text."""
    heading: Styles = ()
    """The styles of a heading."""
    quote_spans: bool = False
    """Whether a quote is a style; otherwise its lines begin with `>`."""
    styles_end_with_lines: bool = False
    """Whether a style has to be closed at the end of a line and opened again in the next."""
    bullet: str = "•"
    rule: str = "———"
    table_width: int = 60
    """The most columns of characters of a table that is shown as one."""

    def marks(self, style: Style, before: str, behind: str) -> tuple[str, str]:
        """Return the opening and closing marks of a style. `before` and `behind` are empty at the ends of the text."""
        return "", ""

    def escape(self, text: str, code: bool) -> str:
        """Escape a text, character by character, independent of context."""
        return text

    def disarm(self, text: str, kind: Kind | None) -> str:
        """Change text, or code of a kind, that would be read as markup and cannot be escaped."""
        return text

    def nest(self, styles: Styles) -> Styles:
        """Return the styles that can be nested in each other, outer ones first."""
        return styles


class Plain(Dialect):
    """Plain text."""


class Entity(msgspec.Struct, frozen=True, omit_defaults=True):
    """A style stored apart from its text, with offsets in UTF-16 code units."""

    type: str
    offset: int
    length: int
    url: str | None = None
    language: str | None = None


class Rendered(msgspec.Struct, frozen=True):
    """A rendered text, with its entities."""

    text: str
    entities: tuple[Entity, ...] = ()


class MarkedSpan(NamedTuple):
    span: Span
    opening: str
    closing: str


def mark_spans(layout: Layout, dialect: Dialect) -> list[MarkedSpan]:
    text = layout.text
    return [
        MarkedSpan(span, *dialect.marks(span.style, text[span.start - 1 : span.start], text[span.end : span.end + 1]))
        for span in layout.spans
    ]


def emit(
    layout: Layout, dialect: Dialect, spans: Iterable[MarkedSpan], start: int, end: int, repeat: bool | None = None
) -> Rendered:
    """Render a range with the spans that overlap it.

    `repeat` is True if the range starts at a line start, so that headers repeat. It is False if the range starts within
    a line, so that prefixes repeat.
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


_BREAK = "\u200b"
"""A space without width: a border of words where there is none, and harmless where there is one."""

_SIMPLE: dict[Kind, str] = {"bold": "*", "italic": "_", "strike": "~", "code": "`"}
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_FENCE = re.compile("``(?=`)")
# A mark between two words or two spaces is none; one that touches a word on one side is.
_LITERAL = re.compile(r"(?<=[^\W_])[*_~`](?![^\W_])|(?<![^\W_])[*_~`](?=\S)|(?<=\S)(?<![^\W_])[*_~`]")


class Mrkdwn(Dialect):
    """Slack mrkdwn: `& < >` are escaped. Other marks have no escape and are neutralized."""

    link_schemes = ("http://", "https://", "mailto:", "tel:")
    heading = (Style("bold"),)
    styles_end_with_lines = True

    def marks(self, style: Style, before: str, behind: str) -> tuple[str, str]:
        """Return the marks. Within a word they need a word boundary."""
        if style.kind == "pre":
            return "```\n", "\n```"
        if style.kind == "link":
            url = style.value.replace("|", "%7C").replace("<", "%3C").replace(">", "%3E")
            return f"<{self.escape(url, code=False)}|", ">"
        mark = _SIMPLE.get(style.kind, "")
        left = _BREAK if mark and before.isalnum() else ""
        right = _BREAK if mark and behind.isalnum() else ""
        return left + mark, mark + right

    def escape(self, text: str, code: bool) -> str:
        """Escape the three characters that Slack interprets everywhere, including in code."""
        return text.translate(_ESCAPES)

    def disarm(self, text: str, kind: Kind | None) -> str:
        """Neutralize marks in a text, and marks in code that would end it."""
        if kind == "pre":
            return _FENCE.sub(f"``{_BREAK}", text)
        if kind == "code":
            return text.replace("`", "\u02cb")
        text = _LITERAL.sub(lambda mark: mark[0] + _BREAK, text)
        return _BREAK + text if text.startswith(">") else text

    def nest(self, styles: Styles) -> Styles:
        """Omit styles within a link or within code, because their marks would be visible."""
        for index, style in enumerate(styles):
            if style.kind in ("link", "code"):
                return styles[: index + 1]
        return styles


_NAMES: dict[Kind, str] = {
    "bold": "bold",
    "italic": "italic",
    "strike": "strikethrough",
    "code": "code",
    "link": "text_link",
    "pre": "pre",
    "quote": "blockquote",
}


class Entities(Dialect):
    """Text with entities. Inline code takes no other style, and quotes cannot be nested."""

    entities = _NAMES
    link_schemes = ("http://", "https://")
    heading = (Style("bold"),)
    quote_spans = True
    table_width = 40

    def nest(self, styles: Styles) -> Styles:
        """Return code without other styles. In a link, omit code."""
        kinds = {style.kind for style in styles}
        if "code" not in kinds:
            return styles
        if "link" in kinds:
            return tuple(style for style in styles if style.kind != "code")
        return tuple(style for style in styles if style.kind == "code")


_MARKDOWN: dict[Kind, str] = {"bold": "**", "italic": "_", "strike": "~~", "code": "`"}
_MARKDOWN_ESCAPES = str.maketrans({**{mark: f"\\{mark}" for mark in "\\`*_[]<>~|#"}, "&": "&amp;", "\n": "  \n"})
# What begins a block at the start of a line: lists, rules and underlined headings.
_BLOCK_MARK = re.compile(r"(?m)^([^\S\n]*+)(?:([-+=])|(\d{1,9})([.)]))(?=\s|$|[-+=])")
_URL_ESCAPES = str.maketrans({"(": "%28", ")": "%29", "<": "%3C", ">": "%3E", " ": "%20", "\\": "%5C", "\n": "%0A"})


class CommonMark(Dialect):
    """Markdown, for platforms that render it themselves. Only what the agent has marked is markup."""

    link_schemes = ("http://", "https://", "mailto:", "tel:")
    heading = (Style("bold"),)
    table_width = 80

    def marks(self, style: Style, before: str, behind: str) -> tuple[str, str]:
        if style.kind == "pre":
            return f"```{style.value}\n", "\n```"
        if style.kind == "link":
            return "[", f"]({style.value.translate(_URL_ESCAPES)})"
        mark = _MARKDOWN.get(style.kind, "")
        # Within a word an underscore is no mark.
        mark = "*" if style.kind == "italic" and (before.isalnum() or behind.isalnum()) else mark
        return mark, mark

    def escape(self, text: str, code: bool) -> str:
        return text if code else text.translate(_MARKDOWN_ESCAPES)

    def disarm(self, text: str, kind: Kind | None) -> str:
        if kind == "pre":
            return _FENCE.sub(f"``{_BREAK}", text)
        if kind == "code":
            return text.replace("`", "\u02cb")
        return _BLOCK_MARK.sub(_disarm_block, text)

    def nest(self, styles: Styles) -> Styles:
        """Omit styles within code, because their marks would be visible."""
        for index, style in enumerate(styles):
            if style.kind == "code":
                return styles[: index + 1]
        return styles


def _disarm_block(found: re.Match[str]) -> str:
    if found[2]:
        return f"{found[1]}{_BREAK}{found[2]}"
    return f"{found[1]}{found[3]}{_BREAK}{found[4]}"
