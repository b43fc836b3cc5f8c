"""Parses the Markdown of an answer into a tree, in linear time. No text is dropped.

HTML is text. A definition of a link that nothing refers to is text too. What is nested too deeply is shown without its
markup.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, cast

from frontdesk.kit.chat.markdown.inlines import InlineTree, References, link_bare_urls
from frontdesk.kit.chat.markdown.nodes import (
    Alignment,
    Block,
    Cell,
    CodeBlock,
    Document,
    Heading,
    Image,
    Inline,
    Item,
    List,
    Paragraph,
    Quote,
    Rule,
    Table,
    Text,
)
from frontdesk.kit.chat.markdown.partial import close_open

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_SURROGATE = re.compile("[\ud800-\udfff]")
_TASK = re.compile(r"\[([ xX])\][ \t\n]")


def parse(text: str, *, partial: bool = False) -> Document:
    """Parse a text; a `partial` one is still growing, and what it has left open is closed."""
    # A surrogate by itself can't be sent to anybody.
    text = _SURROGATE.sub("\ufffd", text)
    tokens = _parser().parse(close_open(text) if partial else text)
    return Document(_Blocks(tokens, References(tokens, budget=4 * len(text))).read())


@cache
def _parser() -> "MarkdownIt":
    from frontdesk.kit.chat.markdown.rules import make_parser

    return make_parser()


class _Blocks:
    """Makes blocks of the parser's flat list of tokens."""

    def __init__(self, tokens: Sequence["Token"], references: References) -> None:
        self._tokens = iter(tokens)
        self._references = references
        self._loose: set[int] = set()

    def read(self, until: str = "") -> tuple[Block, ...]:
        """Read blocks up to the token that closes them."""
        blocks: list[Block] = []
        for token in self._tokens:
            if token.type == until:
                break
            block = self._block(token)
            if block is not None:
                blocks.append(block)
        return tuple(blocks)

    def _block(self, token: "Token") -> Block | None:
        match token.type:
            case "paragraph_open":
                # The parser hides the paragraphs of a tight list; the list itself is two levels up.
                if not token.hidden:
                    self._loose.add(token.level - 2)
                return _paragraph(self._inlines())
            case "heading_open":
                return Heading(int(token.tag[1:]), self._inlines())
            case "fence" | "code_block":
                language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
                return CodeBlock(token.content.removesuffix("\n"), language)
            case "hr":
                return Rule()
            case "blockquote_open":
                return Quote(self.read("blockquote_close"))
            case "bullet_list_open":
                return self._list(token, None)
            case "ordered_list_open":
                return self._list(token, int(token.attrs.get("start", 1)))
            case "table_open":
                return self._table()
            case "definition":
                return None if self._references.has(token) else Paragraph(link_bare_urls(_source(token)))
            case _:
                return None

    def _inlines(self) -> tuple[Inline, ...]:
        inline, _close = next(self._tokens), next(self._tokens)
        return InlineTree(self._references).read(inline.children or ())

    def _list(self, opened: "Token", start: int | None) -> List:
        self._loose.discard(opened.level)
        items: list[Item] = []
        for token in self._tokens:
            if token.type != "list_item_open":
                break
            items.append(_item(self.read("list_item_close")))
        return List(tuple(items), start, tight=opened.level not in self._loose)

    def _table(self) -> Table:
        rows: list[list[Cell]] = []
        alignments: list[Alignment | None] = []
        for token in self._tokens:
            match token.type:
                case "tr_open":
                    rows.append([])
                case "th_open":
                    style = str(token.attrs.get("style", ""))
                    alignments.append(cast(Alignment, style.removeprefix("text-align:")) if style else None)
                    rows[-1].append(Cell(self._inlines()))
                case "td_open":
                    rows[-1].append(Cell(self._inlines()))
                case "table_close":
                    break
                case _:
                    pass
        header, *body = (tuple(row) for row in rows)
        return Table(tuple(alignments), header, tuple(body))


def _paragraph(children: tuple[Inline, ...]) -> Block:
    match children:
        case (Image() as image,):
            return image
        case _:
            return Paragraph(children)


def _item(blocks: tuple[Block, ...]) -> Item:
    match blocks:
        case (Paragraph(children=(Text(text=text), *others)), *rest) if task := _TASK.match(text):
            first = Paragraph((Text(text[task.end() :]), *others))
            return Item((first, *rest), checked=task[1] != " ")
        case _:
            return Item(blocks)


def _source(token: "Token") -> str:
    title = f' "{token.meta["title"]}"' if token.meta["title"] else ""
    return f"[{token.meta['label']}]: {token.meta['url']}{title}"
