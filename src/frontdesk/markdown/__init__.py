"""Parses, renders and splits Markdown for all platforms.

`render(parse(text), Mrkdwn())` is a complete text, `split(parse(text), Entities(), 4096, unit="utf16")` its parts.
"""

from frontdesk.markdown.blocks import to_blocks
from frontdesk.markdown.dialect import CommonMark, Dialect, Entities, Entity, Mrkdwn, Plain, Rendered, emit, mark_spans
from frontdesk.markdown.layout import Kind, Style, Styles, Unit
from frontdesk.markdown.nodes import Document
from frontdesk.markdown.parse import parse, parse_growing
from frontdesk.markdown.split import lay_out, pack, split_layout, split_with_starts

__all__ = [
    "CommonMark",
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
    "lay_out",
    "pack",
    "parse",
    "parse_growing",
    "render",
    "split",
    "split_with_starts",
    "to_blocks",
]


def render(document: Document, dialect: Dialect) -> Rendered:
    layout = lay_out(document, dialect)
    return emit(layout, dialect, mark_spans(layout, dialect), 0, len(layout.text))


def split(document: Document, dialect: Dialect, limit: int, *, unit: Unit = "characters") -> list[Rendered]:
    """Render a document as parts no longer than `limit`, counted in the platform's unit."""
    return split_layout(lay_out(document, dialect), dialect, limit, unit)
