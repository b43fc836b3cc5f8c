"""Makes the tree of what is within a line: styles, links and images, and links for bare URLs."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from frontdesk.kit.chat.markdown.nodes import Break, Code, Emphasis, Image, Inline, Link, Strike, Strong, Text

if TYPE_CHECKING:
    from markdown_it.token import Token

_DEEPEST = 12
"""The depth to which styles nest; those that are deeper are left out."""

# Not what a URL can't have, and not the marks that end a sentence where no space follows it.
_NO_URL = r"\s<>\"`\\^{|}\u3001\u3002\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f\u300d\u300f\u3011"
_URL = re.compile(rf"\bhttps?://[^{_NO_URL}]++")
_BRACKETS = {")": "(", "]": "["}
_STYLES = {"strong": Strong, "em": Emphasis, "s": Strike}


class References:
    """Knows which definitions of links are referred to, and bounds how much they add to a text."""

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
        """Tell whether something refers to a definition, and not to an earlier one of the same label."""
        label = definition.meta["id"]
        return label in self._used and self._urls[label] == definition.meta["url"]

    def allow(self, token: "Token", url: str) -> bool:
        """Tell whether a link may be one: a long URL that is referred to often would multiply the text."""
        if "label" in token.meta:
            self._budget -= len(url)
        return self._budget >= 0


class InlineTree:
    """Makes a tree of the parser's tokens."""

    def __init__(self, references: References) -> None:
        self._references = references
        self._nodes: list[Inline] = []
        self._open: list[tuple[Token, list[Inline]]] = []
        self._ignored = 0
        self._in_link = False

    def read(self, tokens: Iterable["Token"]) -> tuple[Inline, ...]:
        """Read the tokens of one block."""
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
        if self._ignored or len(self._open) >= _DEEPEST:
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
    """Make links of the URLs that stand in a text as they are."""
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
    """Return the length of a URL without the punctuation of the sentence around it."""
    surplus = {closing: url.count(closing) - url.count(opening) for closing, opening in _BRACKETS.items()}
    end = len(url)
    while end and (url[end - 1] in ".,;:!?'\"*_~" or surplus.get(url[end - 1], 0) > 0):
        if url[end - 1] in surplus:
            surplus[url[end - 1]] -= 1
        end -= 1
    return end


def _words(tokens: Iterable["Token"]) -> str:
    """Return the words of an image's description, in which styles mean nothing."""
    return "".join(
        _words(token.children or ()) if token.type == "image" else token.content or " " * ("break" in token.type)
        for token in tokens
    )
