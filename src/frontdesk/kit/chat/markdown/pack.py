"""Packs the blocks of a document into documents that fit into one message each."""

from frontdesk.kit.chat.markdown.dialect import Dialect
from frontdesk.kit.chat.markdown.emit import emit, mark_spans
from frontdesk.kit.chat.markdown.nodes import Block, Document, Heading
from frontdesk.kit.chat.markdown.units import Unit, length
from frontdesk.kit.chat.markdown.walk import lay_out

_BETWEEN = 2
"""The units of the empty line between two blocks."""


def pack(document: Document, dialect: Dialect, limit: int, *, unit: Unit) -> list[Document]:
    """Split a document between blocks; one that is too long by itself is a document of its own, with its heading.

    What was packed stays as it is while a document grows at its end, but for its last two blocks.
    """
    packed: list[list[Block]] = [[]]
    room = limit
    for block in document.blocks:
        size = _size(block, dialect, unit) + _BETWEEN
        # A heading stays with what it is about.
        if size > room and any(not isinstance(earlier, Heading) for earlier in packed[-1]):
            kept = [packed[-1].pop()] if isinstance(packed[-1][-1], Heading) else []
            packed.append([*kept])
            room = limit - sum(_size(heading, dialect, unit) + _BETWEEN for heading in kept)
        packed[-1].append(block)
        room -= size
    return [Document(tuple(blocks)) for blocks in packed if blocks]


def _size(block: Block, dialect: Dialect, unit: Unit) -> int:
    layout = lay_out(Document((block,)), dialect)
    return length(emit(layout, dialect, mark_spans(layout, dialect), 0, len(layout.text)).text, unit)
