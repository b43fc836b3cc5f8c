"""The nodes of the Markdown tree: blocks, and inline nodes."""

from typing import Literal

import msgspec

Alignment = Literal["left", "center", "right"]


class Text(msgspec.Struct, frozen=True):
    """Text to display as is."""

    text: str


class Code(msgspec.Struct, frozen=True):
    text: str


class Break(msgspec.Struct, frozen=True):
    """A line break within a paragraph. A soft break exists only in the source."""

    hard: bool = False


class Image(msgspec.Struct, frozen=True):
    alt: str
    url: str


class Strong(msgspec.Struct, frozen=True):
    children: tuple["Inline", ...]


class Emphasis(msgspec.Struct, frozen=True):
    children: tuple["Inline", ...]


class Strike(msgspec.Struct, frozen=True):
    children: tuple["Inline", ...]


class Link(msgspec.Struct, frozen=True):
    children: tuple["Inline", ...]
    url: str


Inline = Text | Code | Break | Image | Strong | Emphasis | Strike | Link


class Paragraph(msgspec.Struct, frozen=True):
    children: tuple[Inline, ...]


class Heading(msgspec.Struct, frozen=True):
    level: int
    children: tuple[Inline, ...]


class CodeBlock(msgspec.Struct, frozen=True):
    """A code block, without its final line break."""

    text: str
    language: str = ""


class Rule(msgspec.Struct, frozen=True):
    """A line across the page."""


class Quote(msgspec.Struct, frozen=True):
    blocks: tuple["Block", ...]


class Item(msgspec.Struct, frozen=True):
    """A list item. `checked` is None unless it is a task."""

    blocks: tuple["Block", ...]
    checked: bool | None = None


class List(msgspec.Struct, frozen=True):
    """A list. An ordered list has a start number."""

    items: tuple[Item, ...]
    start: int | None = None
    tight: bool = True


class Cell(msgspec.Struct, frozen=True):
    children: tuple[Inline, ...]


class Table(msgspec.Struct, frozen=True):
    """A table. Every row has as many cells as the header."""

    alignments: tuple[Alignment | None, ...]
    header: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]


Block = Paragraph | Heading | CodeBlock | Rule | Quote | List | Table | Image


class Document(msgspec.Struct, frozen=True):
    """A message as a syntax tree."""

    blocks: tuple[Block, ...]
