"""The tree that an answer in Markdown is read into: blocks, and what is within their lines."""

from typing import Literal

import msgspec

Alignment = Literal["left", "center", "right"]


class Text(msgspec.Struct, frozen=True):
    """Words as they are to be shown."""

    text: str


class Code(msgspec.Struct, frozen=True):
    """Code within a line."""

    text: str


class Break(msgspec.Struct, frozen=True):
    """The end of a line within a paragraph; a soft one is only an end of a line in the source."""

    hard: bool = False


class Image(msgspec.Struct, frozen=True):
    """An image within a line, or as a block of its own."""

    alt: str
    url: str


class Strong(msgspec.Struct, frozen=True):
    """Strong emphasis."""

    children: tuple["Inline", ...]


class Emphasis(msgspec.Struct, frozen=True):
    """Emphasis."""

    children: tuple["Inline", ...]


class Strike(msgspec.Struct, frozen=True):
    """Words that are struck through."""

    children: tuple["Inline", ...]


class Link(msgspec.Struct, frozen=True):
    """A link, also one that was written as a bare URL."""

    children: tuple["Inline", ...]
    url: str


Inline = Text | Code | Break | Image | Strong | Emphasis | Strike | Link


class Paragraph(msgspec.Struct, frozen=True):
    """A paragraph."""

    children: tuple[Inline, ...]


class Heading(msgspec.Struct, frozen=True):
    """A heading of level 1 to 6."""

    level: int
    children: tuple[Inline, ...]


class CodeBlock(msgspec.Struct, frozen=True):
    """A block of code, without the end of its last line."""

    text: str
    language: str = ""


class Rule(msgspec.Struct, frozen=True):
    """A line across the page."""


class Quote(msgspec.Struct, frozen=True):
    """Blocks that are quoted."""

    blocks: tuple["Block", ...]


class Item(msgspec.Struct, frozen=True):
    """An item of a list; `checked` is None unless it is a task."""

    blocks: tuple["Block", ...]
    checked: bool | None = None


class List(msgspec.Struct, frozen=True):
    """A list; an ordered one has the number that it starts with."""

    items: tuple[Item, ...]
    start: int | None = None
    tight: bool = True


class Cell(msgspec.Struct, frozen=True):
    """A cell of a table."""

    children: tuple[Inline, ...]


class Table(msgspec.Struct, frozen=True):
    """A table; every row has as many cells as the header."""

    alignments: tuple[Alignment | None, ...]
    header: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]


Block = Paragraph | Heading | CodeBlock | Rule | Quote | List | Table | Image


class Document(msgspec.Struct, frozen=True):
    """An answer as a tree."""

    blocks: tuple[Block, ...]
