"""Parses texts with `parse_mode` HTML."""

import re
from html import unescape
from typing import NamedTuple

from frontdesk_testing.telegram.markup.text import Entity, FormattedText, ParseError, byte_offset, in_order, units

_PLAIN = {
    **dict.fromkeys(("b", "strong"), "bold"),
    **dict.fromkeys(("i", "em"), "italic"),
    **dict.fromkeys(("u", "ins"), "underline"),
    **dict.fromkeys(("s", "strike", "del"), "strikethrough"),
    **dict.fromkeys(("tg-spoiler", "span"), "spoiler"),
    **{"a": "text_link", "code": "code", "pre": "pre", "tg-emoji": "custom_emoji", "blockquote": "blockquote"},
}
_NEXT = re.compile(r"[<&]")
_REFERENCE = re.compile(r"&(lt|gt|amp|quot|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});")
_NAME = re.compile(r"[a-zA-Z0-9-]*")
_ATTRIBUTE = re.compile(r"\s*([a-zA-Z0-9-]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([a-zA-Z0-9.-]+)))?")


class _Open(NamedTuple):
    name: str
    attributes: dict[str, str]
    begin: int
    offset: int


def parse_html(source: str) -> FormattedText:
    """Return the formatted text. Raise a `ParseError` with the text of the server."""
    return _Html(source).parse()


class _Html:
    def __init__(self, source: str) -> None:
        self._source = source
        self._index = 0
        self._text: list[str] = []
        self._units = 0
        self._open: list[_Open] = []
        self._entities: list[Entity] = []

    def parse(self) -> FormattedText:
        source = self._source
        while match := _NEXT.search(source, self._index):
            self._add(source[self._index : match.start()])
            self._index = match.start()
            if match.group() == "&":
                self._take_reference()
            elif source.startswith("</", self._index):
                self._close()
            else:
                self._start()
        self._add(source[self._index :])
        if self._open:
            raise ParseError(f'Can\'t find end tag corresponding to start tag "{self._open[-1].name}"')
        return FormattedText("".join(self._text), in_order(self._entities))

    def _add(self, text: str) -> None:
        self._text.append(text)
        self._units += units(text)

    def _take_reference(self) -> None:
        match = _REFERENCE.match(self._source, self._index)
        self._add(unescape(match.group()) if match else "&")
        self._index = match.end() if match else self._index + 1

    def _start(self) -> None:
        begin = self._index
        match = _NAME.match(self._source, begin + 1)
        name = match.group().lower() if match else ""
        if name not in _PLAIN:
            raise ParseError(f'Unsupported start tag "{name}" at byte offset {byte_offset(self._source, begin)}')
        index, attributes = begin + 1 + len(name), dict[str, str]()
        while attribute := _ATTRIBUTE.match(self._source, index):
            key, *values = attribute.groups()
            attributes[key.lower()] = unescape(next((value for value in values if value is not None), ""))
            index = attribute.end()
        end = index
        while self._source[end : end + 1].isspace():
            end += 1
        if not self._source.startswith(">", end):
            raise ParseError(f"Unclosed start tag at byte offset {byte_offset(self._source, begin)}")
        if name == "span" and attributes.get("class") != "tg-spoiler":
            place = byte_offset(self._source, begin)
            raise ParseError(f'Tag "span" must have class "tg-spoiler" at byte offset {place}')
        self._open.append(_Open(name, attributes, begin, self._units))
        self._index = end + 1

    def _close(self) -> None:
        begin = self._index
        if not self._open:
            raise ParseError(f"Unexpected end tag at byte offset {byte_offset(self._source, begin)}")
        match = _NAME.match(self._source, begin + 2)
        name = match.group().lower() if match else ""
        end = begin + 2 + len(name)
        if not self._source.startswith(">", end):
            raise ParseError(f"Unclosed end tag at byte offset {byte_offset(self._source, begin)}")
        opened = self._open.pop()
        if name and name != opened.name:
            place = byte_offset(self._source, begin)
            raise ParseError(
                f'Unmatched end tag at byte offset {place}, expected "</{opened.name}>", found "</{name}>"'
            )
        self._entities += self._build_entities(opened)
        self._index = end + 1

    def _build_entities(self, opened: _Open) -> list[Entity]:
        entity: Entity = {"type": _PLAIN[opened.name], "offset": opened.offset, "length": self._units - opened.offset}
        given = opened.attributes
        if opened.name == "a":
            return [{**entity, "url": given["href"]}] if given.get("href") else []
        if opened.name == "tg-emoji":
            return [{**entity, "custom_emoji_id": given.get("emoji-id", "")}]
        if opened.name == "blockquote" and "expandable" in given:
            return [{**entity, "type": "expandable_blockquote"}]
        if opened.name == "code" and self._open and self._open[-1].name == "pre":
            language = given.get("class", "").removeprefix("language-")
            if language and self._open[-1].offset == opened.offset:
                self._open[-1].attributes["language"] = language
            return []
        if opened.name == "pre" and "language" in given:
            return [{**entity, "language": given["language"]}]
        return [entity]
