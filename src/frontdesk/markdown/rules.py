"""The parser configuration: CommonMark with tables and strikethrough, without HTML, with limits.

`parse` imports this module when the first text is parsed. Importing the parser takes longer than starting most
channels, and hosts without chat channels never need it.
"""

import re
from collections.abc import Sequence

from markdown_it import MarkdownIt, helpers
from markdown_it.rules_block import StateBlock, blockquote, list_block, table
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

_MAX_DEPTH = 16
"""The depth to which quotes and lists nest; a list counts twice. What is deeper is text."""

_MAX_COLUMNS = 64
_MAX_URL_LENGTH = 2_048
_LAST_BRACKET = -1
"""The key of the last `]` of a text in the cache of the parser, whose other keys are positions."""
_PIPE = re.compile(r"(?<!\\)\|")


def make_parser() -> MarkdownIt:
    """Create a parser that takes linear time and drops no text."""
    # The parser itself drops blocks that are nested deeper than `maxNesting`, which our own bound keeps out of reach.
    options = {"html": False, "maxNesting": 24, "inline_definitions": True, "store_labels": True}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    inner = ["paragraph", "reference", "blockquote"]
    parser.block.ruler.at("blockquote", _bounded_quote, {"alt": [*inner, "list"]})
    parser.block.ruler.at("list", _bounded_list, {"alt": inner})
    parser.block.ruler.at("table", _bounded_table, {"alt": ["paragraph", "reference"]})
    parser.helpers = _Helpers  # pyright: ignore[reportAttributeAccessIssue]
    allows = parser.validateLink
    parser.validateLink = lambda url: len(url) <= _MAX_URL_LENGTH and allows(url)
    return parser


def _parse_link_label(state: StateInline, start: int, disableNested: bool = False) -> int:
    """Return the end of a link label, or -1 if there is none.

    The parser's own function gives the same results, but scans past the last `]` and calls a function for each known
    token: up to `maxNesting` times for each bracket of a text.
    """
    source, known, before = state.src, state.cache, state.pos
    last = known.get(_LAST_BRACKET)
    if last is None:
        last = known[_LAST_BRACKET] = source.rfind("]")
    place, level, found = start + 1, 1, -1
    most = min(state.posMax - 1, last)
    while place <= most:
        mark = source[place]
        level -= mark == "]"
        if not level:
            found = place
            break
        behind = known.get(place)
        if behind is None:
            state.pos = place
            state.md.inline.skipToken(state)
            behind = state.pos
        if mark == "[":
            if behind > place + 1 and disableNested:
                break
            level += behind == place + 1
        place = behind
    state.pos = before
    return found


class _Helpers:
    parseLinkLabel = staticmethod(_parse_link_label)
    parseLinkDestination = staticmethod(helpers.parseLinkDestination)
    parseLinkTitle = staticmethod(helpers.parseLinkTitle)


def _bounded_quote(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    return state.level < _MAX_DEPTH and blockquote(state, start, end, silent)


def _bounded_list(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    return state.level < _MAX_DEPTH and list_block(state, start, end, silent)


def _bounded_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    # A short row is filled with empty cells, so that many columns times many rows would be a square.
    header = state.src[state.bMarks[start] : state.eMarks[start]]
    if header.count("|") > _MAX_COLUMNS:
        return False
    before = len(state.tokens)
    if not table(state, start, end, silent):
        return False
    _keep_surplus_cells(state, state.tokens[before:])
    return True


def _keep_surplus_cells(state: StateBlock, tokens: Sequence[Token]) -> None:
    """Add cells beyond the header's columns to the row's last cell. The parser would drop them."""
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
