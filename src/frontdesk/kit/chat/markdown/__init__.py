"""Markdown once: an answer is parsed into a tree, which platforms render and split.

`render(parse(text), Mrkdwn())` is a whole text, `split(parse(text), Entities(), 4096, unit="utf16")` its parts.
"""

from frontdesk.kit.chat.markdown.blocks import to_blocks
from frontdesk.kit.chat.markdown.dialect import Dialect, Plain
from frontdesk.kit.chat.markdown.emit import Entity, Rendered, emit, mark_spans
from frontdesk.kit.chat.markdown.entities import Entities
from frontdesk.kit.chat.markdown.layout import Kind, Style, Styles
from frontdesk.kit.chat.markdown.mrkdwn import Mrkdwn
from frontdesk.kit.chat.markdown.nodes import Document
from frontdesk.kit.chat.markdown.pack import pack
from frontdesk.kit.chat.markdown.parse import parse
from frontdesk.kit.chat.markdown.split import split_layout
from frontdesk.kit.chat.markdown.units import Unit
from frontdesk.kit.chat.markdown.walk import lay_out

__all__ = [
    "Dialect",
    "Document",
    "Entities",
    "Entity",
    "Kind",
    "Mrkdwn",
    "Plain",
    "Rendered",
    "Style",
    "Styles",
    "Unit",
    "pack",
    "parse",
    "render",
    "split",
    "to_blocks",
]


def render(document: Document, dialect: Dialect) -> Rendered:
    """Render a document as one text."""
    layout = lay_out(document, dialect)
    return emit(layout, dialect, mark_spans(layout, dialect), 0, len(layout.text))


def split(document: Document, dialect: Dialect, limit: int, *, unit: Unit = "characters") -> list[Rendered]:
    """Render a document as parts no longer than `limit`, counted in the platform's unit."""
    return split_layout(lay_out(document, dialect), dialect, limit, unit)
