"""The parser's rules: CommonMark with tables and strikethrough, without HTML, and bounded.

Imported by `parse` when the first text is parsed: the parser takes longer to import than most hosts take to start a
channel, and a host without a chat never needs it.
"""

import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, blockquote, list_block, table
from markdown_it.token import Token

_DEEPEST = 16
"""The depth to which quotes and lists nest; a list counts twice. What is deeper is text."""

_MOST_COLUMNS = 64
_LONGEST_URL = 2_048
_PIPE = re.compile(r"(?<!\\)\|")


def make_parser() -> MarkdownIt:
    """Make a parser that takes linear time and drops no text."""
    # The parser itself drops blocks that are nested deeper than `maxNesting`, which our own bound keeps out of reach.
    options = {"html": False, "maxNesting": 24, "inline_definitions": True, "store_labels": True}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    inner = ["paragraph", "reference", "blockquote"]
    parser.block.ruler.at("blockquote", _bounded_quote, {"alt": [*inner, "list"]})
    parser.block.ruler.at("list", _bounded_list, {"alt": inner})
    parser.block.ruler.at("table", _bounded_table, {"alt": ["paragraph", "reference"]})
    allows = parser.validateLink
    parser.validateLink = lambda url: len(url) <= _LONGEST_URL and allows(url)
    return parser


def _bounded_quote(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    return state.level < _DEEPEST and blockquote(state, start, end, silent)


def _bounded_list(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    return state.level < _DEEPEST and list_block(state, start, end, silent)


def _bounded_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    # A short row is filled with empty cells, so that many columns times many rows would be a square.
    header = state.src[state.bMarks[start] : state.eMarks[start]]
    if header.count("|") > _MOST_COLUMNS:
        return False
    before = len(state.tokens)
    if not table(state, start, end, silent):
        return False
    _keep_surplus_cells(state, state.tokens[before:])
    return True


def _keep_surplus_cells(state: StateBlock, tokens: Sequence[Token]) -> None:
    """Add to the last cell of a row what the header has no columns for, and the parser therefore drops."""
    cells: list[Token] = []
    columns = sum(token.type == "th_open" for token in tokens)
    for token in tokens:
        if token.type == "tr_open":
            cells = []
        elif token.type == "inline":
            cells.append(token)
        elif token.type == "tr_close" and cells[-1].map is not None:
            line = cells[-1].map[0]
            source = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].strip(" \t")
            surplus = [cell.strip() for cell in _PIPE.split(source.removeprefix("|"))[columns:]]
            cells[-1].content = " | ".join([cells[-1].content, *filter(None, surplus)])
