"""Renders documents as blocks of Telegram's rich messages, with native tables and without escaping. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

from frontdesk.markdown.nodes import (
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

MAX_BLOCKS, MAX_DEPTH, MAX_COLUMNS = 500, 16, 20
_STYLES: dict[type[Strong | Emphasis | Strike], str] = {Strong: "bold", Emphasis: "italic", Strike: "strikethrough"}
_SCHEMES = ("http://", "https://")


class _TooMuchError(Exception):
    """Raised if a document exceeds the platform's limits, or has a block without content."""


def to_blocks(document: Document) -> list[dict[str, Any]] | None:
    """Return the Slack blocks of a document, or `None` if the platform would reject them."""
    if all(isinstance(block, Rule) for block in document.blocks):
        return None
    try:
        return _Blocks().blocks(document.blocks, 1)
    except _TooMuchError:
        return None


class _Blocks:
    def __init__(self) -> None:
        self._left = MAX_BLOCKS

    def blocks(self, blocks: Sequence[Block], depth: int) -> list[dict[str, Any]]:
        return [self._block(block, depth) for block in blocks]

    def _inner(self, blocks: Sequence[Block], depth: int) -> list[dict[str, Any]]:
        if not blocks or depth > MAX_DEPTH:
            raise _TooMuchError
        return self.blocks(blocks, depth)

    def _block(self, block: Block, depth: int) -> dict[str, Any]:
        self._left -= 1
        if self._left < 0:
            raise _TooMuchError
        match block:
            case Paragraph(children):
                return {"type": "paragraph", "text": _text(children, depth)}
            case Heading(level, children):
                return {"type": "heading", "size": level, "text": _text(children, depth)}
            case CodeBlock(text, language):
                return {"type": "pre", "text": _require_text(text), **({"language": language} if language else {})}
            case Rule():
                return {"type": "divider"}
            case Quote(blocks):
                return {"type": "blockquote", "blocks": self._inner(blocks, depth + 1)}
            case List(items, start):
                numbers = [None] * len(items) if start is None else range(start, start + len(items))
                return {
                    "type": "list",
                    "items": [self._item(*pair, depth) for pair in zip(items, numbers, strict=True)],
                }
            case Table():
                return _table(block, depth)
            case Image():
                return {"type": "paragraph", "text": _text((block,), depth)}

    def _item(self, item: Item, number: int | None, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {"blocks": self._inner(item.blocks, depth + 2)}
        if number is not None:
            made |= {"value": number, "type": "1"}
        if item.checked is not None:
            made |= {"has_checkbox": True, **({"is_checked": True} if item.checked else {})}
        return made


def _table(table: Table, depth: int) -> dict[str, Any]:
    if len(table.header) > MAX_COLUMNS:
        raise _TooMuchError
    header = _row(table.header, table, depth, is_header=True)
    rows = [_row(row, table, depth) for row in table.rows]
    return {"type": "table", "cells": [header, *rows], "is_bordered": True}


def _row(cells: Sequence[Cell], table: Table, depth: int, *, is_header: bool = False) -> list[dict[str, Any]]:
    return [
        {
            "text": _parts(cell.children, depth + 2),
            "align": alignment or "left",
            "valign": "top",
            **({"is_header": True} if is_header else {}),
        }
        for cell, alignment in zip(cells, table.alignments, strict=True)
    ]


def _text(nodes: Iterable[Inline], depth: int) -> Any:
    """Return a rich text that is not empty."""
    text = _parts(nodes, depth)
    _require_text("".join(plain_text(text)))
    return text


def _require_text(text: str) -> str:
    if not text.strip():
        raise _TooMuchError
    return text


def _parts(nodes: Iterable[Inline], depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise _TooMuchError
    parts = [part for node in nodes for part in _inline(node, depth)]
    return parts[0] if len(parts) == 1 else parts or ""


def _inline(node: Inline, depth: int) -> list[Any]:
    match node:
        case Text(text):
            return [text.replace("\n", " ")]
        case Code(text):
            return [{"type": "code", "text": text}]
        case Break():
            return ["\n"]
        case Link(children, url):
            return _link(_parts(children, depth + 1), url)
        case Image(alt, url):
            return _link(alt, url)
        case Strong(children) | Emphasis(children) | Strike(children):
            return [{"type": _STYLES[type(node)], "text": _parts(children, depth + 1)}]


def _link(label: Any, url: str) -> list[Any]:
    words = "".join(plain_text(label)).strip()
    if url.lower().startswith(_SCHEMES):
        return [{"type": "url", "text": label if words else url, "url": url}]
    if not words:
        return [url]
    return [label] if not url or url.endswith(words) else [label, f" ({url})"]


def plain_text(text: Any) -> Iterable[str]:
    if isinstance(text, str):
        yield text
    elif isinstance(text, dict):
        yield from plain_text(cast("dict[str, Any]", text).get("text", ""))
    else:
        for part in text:
            yield from plain_text(part)
