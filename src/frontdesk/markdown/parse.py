"""Parses Markdown into a tree, in linear time. No text is dropped.

HTML is treated as text, and so are unused link definitions. Content that is nested too deeply is shown without its
markup.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, cast

from frontdesk.markdown.nodes import (
    Alignment,
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

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


_MAX_DEPTH = 12
"""The depth to which styles nest; those that are deeper are left out."""

# Not what a URL can't have, and not the marks that end a sentence where no space follows it.
_NO_URL = r"\s<>\"`\\^{|}\u3001\u3002\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f\u300d\u300f\u3011"
_URL = re.compile(rf"\bhttps?://[^{_NO_URL}]++")
_BRACKETS = {")": "(", "]": "["}
_STYLES = {"strong": Strong, "em": Emphasis, "s": Strike}


class References:
    """Tracks which link definitions are referenced, and limits how much they add to a text."""

    def __init__(self, tokens: Iterable["Token"], budget: int) -> None:
        self._urls: dict[str, str] = {}
        self._used: set[str] = set()
        self._budget = budget
        for token in tokens:
            if token.type == "definition":
                self._urls.setdefault(token.meta["id"], token.meta["url"])
            for child in token.children or ():
                if "label" in child.meta:
                    self._used.add(child.meta["label"])

    def has(self, definition: "Token") -> bool:
        """Return True if a reference uses this definition, and not an earlier one with the same label."""
        label = definition.meta["id"]
        return label in self._used and self._urls[label] == definition.meta["url"]

    def allow(self, token: "Token", url: str) -> bool:
        """Return True if a link may be expanded. A long URL with many references would multiply the text."""
        if "label" in token.meta:
            self._budget -= len(url)
        return self._budget >= 0


class InlineTree:
    def __init__(self, references: References) -> None:
        self._references = references
        self._nodes: list[Inline] = []
        self._open: list[tuple[Token, list[Inline]]] = []
        self._ignored = 0
        self._in_link = False

    def read(self, tokens: Iterable["Token"]) -> tuple[Inline, ...]:
        for token in tokens:
            if token.nesting > 0:
                self._begin(token)
            elif token.nesting < 0:
                self._end()
            else:
                self._here().extend(self._leaf(token))
        return tuple(self._nodes)

    def _here(self) -> list[Inline]:
        return self._open[-1][1] if self._open else self._nodes

    def _begin(self, token: "Token") -> None:
        if self._ignored or len(self._open) >= _MAX_DEPTH:
            self._ignored += 1
            return
        self._in_link = self._in_link or token.type == "link_open"
        self._open.append((token, []))

    def _end(self) -> None:
        if self._ignored:
            self._ignored -= 1
            return
        token, children = self._open.pop()
        here = self._here()
        if token.type == "link_open":
            self._in_link = False
            url = str(token.attrs["href"])
            here.extend([Link(tuple(children), url)] if self._references.allow(token, url) else children)
        else:
            here.append(_STYLES[token.type.removesuffix("_open")](tuple(children)))

    def _leaf(self, token: "Token") -> Iterable[Inline]:
        match token.type:
            case "softbreak" | "hardbreak":
                return (Break(hard=token.type == "hardbreak"),)
            case "code_inline":
                return (Code(token.content),)
            case "image":
                url = str(token.attrs["src"])
                alt = _words(token.children or ())
                return (Image(alt, url),) if self._references.allow(token, url) else (Text(alt),)
            case _ if not token.content:
                return ()
            case _ if self._in_link:
                return (Text(token.content),)
            case _:
                return link_bare_urls(token.content)


def link_bare_urls(text: str) -> tuple[Inline, ...]:
    nodes: list[Inline] = []
    place = 0
    for match in _URL.finditer(text):
        end = match.start() + _url_length(match[0])
        if text[end - 3 : end] == "://":
            continue
        if match.start() > place:
            nodes.append(Text(text[place : match.start()]))
        url = text[match.start() : end]
        nodes.append(Link((Text(url),), url))
        place = end
    if place < len(text):
        nodes.append(Text(text[place:]))
    return tuple(nodes)


def _url_length(url: str) -> int:
    """Return the length of a URL without the punctuation of the surrounding sentence."""
    surplus = {closing: url.count(closing) - url.count(opening) for closing, opening in _BRACKETS.items()}
    end = len(url)
    while end and (url[end - 1] in ".,;:!?'\"*_~" or surplus.get(url[end - 1], 0) > 0):
        if url[end - 1] in surplus:
            surplus[url[end - 1]] -= 1
        end -= 1
    return end


def _words(tokens: Iterable["Token"]) -> str:
    """Return the plain text of an image description. Styles are ignored."""
    return "".join(
        _words(token.children or ()) if token.type == "image" else token.content or " " * ("break" in token.type)
        for token in tokens
    )


_FENCE = re.compile(r"^[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)*+(`{3,}+|~{3,}+)([^\n]*+)", re.MULTILINE)
# Where styles of the line before it can't go on.
_BLOCK = re.compile(r"^[ \t>]*+(?:[-*+] |\d{1,9}[.)] |#{1,6} |\|)", re.MULTILINE)
# A line that can still become something else: a rule, an item, the line under a heading or under a table's header.
_OPEN_LINE = re.compile(r"(?:[-=]++|[*+]|#{1,6}|`{1,2}|~{1,2}|\|[-|: ]*+)")
_TOKEN = re.compile(r"\\[^\n]?|`++|\*++|_++|~++|!?\[|\]\(?")
_TICKS = re.compile(r"`++")
_BRACKET = re.compile(r"[()]")


def close_open(text: str) -> str:
    fence = _open_fence(text)
    above, newline, line = text.rpartition("\n")
    if fence is not None:
        # Backticks alone in the last line of a block of code are the beginning of its end.
        return above if newline and line.strip() and not line.strip().strip(fence) else text
    if _OPEN_LINE.fullmatch(line.strip(" \t>")):
        text = above
    text = text.rstrip()
    start = _last_block(text)
    return text[:start] + _close_inline(text[start:])


def _open_fence(text: str) -> str | None:
    opened: str | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            # Backticks around words in a line are no fence.
            opened = None if fence[1].startswith("`") and "`" in fence[2] else fence[1]
        elif fence[1].startswith(opened) and not fence[2].strip():
            opened = None
    return opened and opened[0]


def _last_block(text: str) -> int:
    start = text.rfind("\n\n") + 1
    for block in _BLOCK.finditer(text, start):
        start = block.end()
    # Styles end with the cell of a table.
    return max(start, text.rfind("|", start) + 1) if text[start - 1 : start] == "|" else start


def _close_inline(text: str) -> str:
    # A mark at the end has nothing to mark yet, or is a part of what ends a style.
    scan = _Scan(text.removesuffix("\\").rstrip("*_~").rstrip())
    scan.run()
    return scan.close()


class _Scan:
    """Finds unclosed styles, code and links in the last block of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._end = len(text)
        self._styles: list[tuple[str, int]] = []
        self._links: list[re.Match[str]] = []
        self._code: re.Match[str] | None = None
        self._behind_code = _code_ends(text)

    def run(self) -> None:
        place: int | None = 0
        while place is not None and (token := _TOKEN.search(self._text, place)):
            place = self._read(token)

    def _read(self, token: re.Match[str]) -> int | None:
        mark = token[0]
        if mark[0] == "`":
            if token.start() not in self._behind_code:
                self._code = token
            return self._behind_code.get(token.start())
        if mark[0] in "*_~":
            self._read_style(token)
        elif mark.endswith("["):
            self._links.append(token)
        elif mark[0] == "]" and self._links:
            return self._read_link(token)
        return token.end()

    def _read_link(self, token: re.Match[str]) -> int | None:
        behind = token.end()
        if token[0] == "](":
            behind = _behind_target(self._text, token.end())
        elif behind == len(self._text) and _is_label(self._text[self._links[-1].end() : token.start()]):
            behind = None
        if behind is None:
            self._end = token.start()
        else:
            self._links.pop()
        return behind

    def _read_style(self, token: re.Match[str]) -> None:
        mark, count = token[0][0], len(token[0])
        before, behind = _before(self._text, token), self._text[token.end() : token.end() + 1]
        closes = before.strip() and not (mark == "_" and behind.isalnum())
        opens = behind.strip() and not (mark == "_" and before.isalnum())
        while closes and count and (index := self._opener(mark)) is not None:
            opened = self._styles[index][1]
            del self._styles[index:]
            if opened > count:
                self._styles.append((mark, opened - count))
            count -= min(opened, count)
        if opens and count and len(self._styles) < _MAX_DEPTH:
            self._styles.append((mark, count))

    def _opener(self, mark: str) -> int | None:
        return next((index for index in reversed(range(len(self._styles))) if self._styles[index][0] == mark), None)

    def close(self) -> str:
        text = self._text[: self._end]
        if self._code is not None:
            inside = text[self._code.end() :].rstrip("`")
            text = text[: self._code.end()] + inside + self._code[0] if inside.strip() else text[: self._code.start()]
        if self._links:
            link = self._links[-1]
            if not _before(text, link).isalnum():
                text = text[: link.start()] + text[link.end() :]
        # A single tilde is no style.
        ends = [mark * count for mark, count in reversed(self._styles) if mark != "~" or count > 1]
        return text.rstrip() + "".join(ends)


def _code_ends(text: str) -> dict[int, int]:
    """Map each backtick run that starts code to the end of that code: the next run of equal length."""
    ends: dict[int, int] = {}
    last: dict[int, int] = {}
    for ticks in _TICKS.finditer(text):
        size = len(ticks[0])
        if size in last:
            ends[last[size]] = ticks.end()
        last[size] = ticks.start()
    return ends


def _is_label(text: str) -> bool:
    """Return True if a URL is likely to follow. Numbers and tasks stand in brackets by themselves."""
    return len(text) > 1 and not text.isdigit()


def _behind_target(text: str, place: int) -> int | None:
    depth = 1
    for bracket in _BRACKET.finditer(text, place):
        depth += 1 if bracket[0] == "(" else -1
        if not depth:
            return bracket.end()
    return None


def _before(text: str, token: re.Match[str]) -> str:
    return text[max(0, token.start() - 1) : token.start()]


_LINE_END = re.compile(r"\r\n?|\n")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN = re.compile(r"[^\W\d_][\w ,.;:!?'\"%()]*+(?<! )")
"""A line of words without anything that could be markup."""
_TASK = re.compile(r"\[([ xX])\][ \t\n]")


def parse(text: str, *, partial: bool = False) -> Document:
    """Parse a text. A `partial` text is still growing, and its open constructs are closed."""
    return _read(text, partial).document


def parse_growing(text: str) -> tuple[Document, tuple[int, ...]]:
    """Parse a growing text. Return the positions at which its blocks can be parsed independently.

    There is one position per block, its start in the text. A block that depends on an earlier link definition has the
    start of the text instead.
    """
    read = _read(text, partial=True)
    offsets = [0, *(line.end() for line in _LINE_END.finditer(text))]
    return read.document, tuple(offsets[min(line, len(offsets) - 1)] for line in read.lines)


class _Read(NamedTuple):
    document: Document
    lines: list[int]


def _read(text: str, partial: bool) -> _Read:
    if not partial and _PLAIN.fullmatch(text) and "_" not in text and "://" not in text:
        # Nothing in it can mean anything to the parser, which would take ten times as long.
        return _Read(Document((Paragraph((Text(text),)),)), [0])
    # A surrogate by itself can't be sent to anybody.
    text = _SURROGATE.sub("\ufffd", text)
    tokens = _parser().parse(close_open(text) if partial else text)
    blocks = _Blocks(tokens, References(tokens, budget=4 * len(text)))
    return _Read(Document(blocks.read()), blocks.lines)


@cache
def _parser() -> "MarkdownIt":
    from frontdesk.markdown.rules import make_parser

    return make_parser()


class _Blocks:
    def __init__(self, tokens: Sequence["Token"], references: References) -> None:
        self._tokens = iter(tokens)
        self._references = references
        self._loose: set[int] = set()
        self._defines = False
        self.lines: list[int] = []
        """The line of each block of the text itself; 0 behind a definition of a link."""

    def read(self, until: str = "") -> tuple[Block, ...]:
        blocks: list[Block] = []
        for token in self._tokens:
            if token.type == until:
                break
            self._defines = self._defines or token.type == "definition"
            block = self._block(token)
            if block is not None:
                blocks.append(block)
                if not until:
                    self.lines.append(token.map[0] if token.map and not self._defines else 0)
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
