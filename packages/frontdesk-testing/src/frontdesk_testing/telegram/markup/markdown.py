"""Parses texts with `parse_mode` MarkdownV2, and with the older Markdown."""

from typing import NamedTuple

from frontdesk_testing.telegram.markup.text import Entity, FormattedText, ParseError, byte_offset, in_order, units

_RESERVED = frozenset("_*[]()~`>#+-=|{}.!")
_MARKS = {"*": "bold", "_": "italic", "__": "underline", "~": "strikethrough", "||": "spoiler", "`": "code"}
_SPOKEN = {
    **{"bold": "Bold", "italic": "Italic", "underline": "Underline", "strikethrough": "Strikethrough"},
    **{"spoiler": "Spoiler", "code": "Code", "pre": "Pre", "text_link": "TextUrl", "custom_emoji": "CustomEmoji"},
    **{"blockquote": "BlockQuote"},
}
_EMOJI = "tg://emoji?id="


class _Open(NamedTuple):
    kind: str
    mark: str
    begin: int
    offset: int
    language: str = ""


def parse_markdown_v2(source: str) -> FormattedText:
    """Return the formatted text. Raise a `ParseError` with the text of the server."""
    return _MarkdownV2(source).parse()


class _MarkdownV2:
    def __init__(self, source: str) -> None:
        self._source = source
        self._index = 0
        self._text: list[str] = []
        self._units = 0
        self._open: list[_Open] = []
        self._entities: list[Entity] = []

    def parse(self) -> FormattedText:
        source = self._source
        while self._index < len(source):
            character = source[self._index]
            if character == "\\" and "\0" < source[self._index + 1 : self._index + 2] < "\x7f":
                self._add(source[self._index + 1], 2)
            elif self._open and self._open[-1].kind in ("code", "pre"):
                self._within_code(character)
            elif character == "\n":
                self._end_line()
            elif character == ">" and self._begins_line():
                self._quote()
            elif character in _RESERVED:
                self._mark(character)
            else:
                self._add(character, 1)
        self._end_quote()
        if self._open:
            raise self._endless(self._open[-1])
        return FormattedText("".join(self._text), in_order(self._entities))

    def _endless(self, opened: _Open) -> ParseError:
        place = byte_offset(self._source, opened.begin)
        return ParseError(f"Can't find end of {_SPOKEN[opened.kind]} entity at byte offset {place}")

    def _add(self, text: str, width: int) -> None:
        self._text.append(text)
        self._units += units(text)
        self._index += width

    def _begins_line(self) -> bool:
        return self._index == 0 or self._source[self._index - 1] == "\n"

    def _within_code(self, character: str) -> None:
        mark = self._open[-1].mark
        if self._source.startswith(mark, self._index):
            self._end(len(mark))
        else:
            self._add(character, 1)

    def _quoted(self) -> bool:
        return any(opened.kind == "blockquote" for opened in self._open)

    def _quote(self) -> None:
        if not self._quoted():
            self._open.append(_Open("blockquote", ">", self._index, self._units))
        self._index += 1

    def _end_line(self) -> None:
        if not self._source.startswith(">", self._index + 1):
            self._end_quote()
        self._add("\n", 1)

    def _end_quote(self) -> None:
        if self._quoted():
            if self._open[-1].kind != "blockquote":
                raise self._endless(self._open[-1])
            self._end(0)

    def _mark(self, character: str) -> None:
        source, index = self._source, self._index
        if character in "_|" and source.startswith(character * 2, index):
            self._toggle(character * 2)
        elif character in "*_~":
            self._toggle(character)
        elif character == "`":
            self._begin_code()
        elif character == "[" or (character == "!" and source.startswith("[", index + 1)):
            self._begin_link(character)
        elif character == "]" and self._open and self._open[-1].kind in ("text_link", "custom_emoji"):
            self._link()
        else:
            raise ParseError(f"Character '{character}' is reserved and must be escaped with the preceding '\\'")

    def _toggle(self, mark: str) -> None:
        if self._open and self._open[-1].mark == mark:
            self._end(len(mark))
        elif mark == "||" and self._quoted() and self._source[self._index + 2 : self._index + 3] in ("", "\n"):
            self._open[-1] = self._open[-1]._replace(mark="||>")
            self._index += 2
        elif any(opened.mark == mark for opened in self._open):
            raise self._endless(self._open[-1])
        else:
            self._open.append(_Open(_MARKS[mark], mark, self._index, self._units))
            self._index += len(mark)

    def _begin_code(self) -> None:
        index = self._index
        if not self._source.startswith("```", index):
            self._open.append(_Open("code", "`", index, self._units))
            self._index += 1
            return
        line = index + 3
        while line < len(self._source) and not self._source[line].isspace() and self._source[line] != "`":
            line += 1
        language = self._source[index + 3 : line] if self._source.startswith("\n", line) else ""
        self._open.append(_Open("pre", "```", index, self._units, language))
        self._index = line + 1 if self._source.startswith("\n", line) else index + 3

    def _begin_link(self, mark: str) -> None:
        if any(opened.mark in "[!" for opened in self._open):
            raise self._endless(self._open[-1])
        kind = "custom_emoji" if mark == "!" else "text_link"
        self._open.append(_Open(kind, mark, self._index, self._units))
        self._index += 2 if mark == "!" else 1

    def _link(self) -> None:
        opened = self._open[-1]
        self._index += 1
        url = ""
        if self._source.startswith("(", self._index):
            begin, index, parts = self._index, self._index + 1, list[str]()
            while index < len(self._source) and self._source[index] != ")":
                index += self._source[index] == "\\" and index + 1 < len(self._source)
                parts.append(self._source[index])
                index += 1
            if index >= len(self._source):
                place = byte_offset(self._source, begin)
                raise ParseError(f"Can't find end of a URL at byte offset {place}")
            url, self._index = "".join(parts), index + 1
        self._open.pop()
        entity: Entity = {"type": opened.kind, "offset": opened.offset, "length": self._units - opened.offset}
        if opened.kind == "custom_emoji":
            self._entities.append({**entity, "custom_emoji_id": url.removeprefix(_EMOJI)})
        elif url:
            self._entities.append({**entity, "url": url})

    def _end(self, width: int) -> None:
        opened = self._open.pop()
        self._index += width
        kind = "expandable_blockquote" if opened.mark == "||>" else opened.kind
        entity: Entity = {"type": kind, "offset": opened.offset, "length": self._units - opened.offset}
        self._entities.append({**entity, "language": opened.language} if opened.language else entity)


def parse_markdown(source: str) -> FormattedText:
    """Return the text of legacy Markdown. Its entities can't be nested."""
    text: list[str] = []
    entities: list[Entity] = []
    index = offset = 0
    while index < len(source):
        character = source[index]
        if character == "\\" and source[index + 1 : index + 2] in tuple("_*`["):
            text.append(source[index + 1])
            index, offset = index + 2, offset + 1
        elif character in "_*`[":
            inner, entity, index = _older_entity(source, index)
            text.append(inner)
            length = units(inner)
            entities += [{**entity, "offset": offset, "length": length}] if entity else []
            offset += length
        else:
            text.append(character)
            index, offset = index + 1, offset + units(character)
    return FormattedText("".join(text), in_order(entities))


def _older_entity(source: str, index: int) -> tuple[str, Entity, int]:
    mark = "```" if source.startswith("```", index) else source[index]
    close = "]" if mark == "[" else mark
    end = source.find(close, index + len(mark))
    if end < 0:
        raise ParseError(f"Can't find end of the entity starting at byte offset {byte_offset(source, index)}")
    inner, after = source[index + len(mark) : end], end + len(close)
    if mark != "[":
        kind = "pre" if mark == "```" else _MARKS[mark]
        return (inner.removeprefix("\n") if mark == "```" else inner), {"type": kind}, after
    if not source.startswith("(", after):
        return inner, {}, after
    close_url = source.find(")", after)
    if close_url < 0:
        raise ParseError(f"Can't find end of the entity starting at byte offset {byte_offset(source, index)}")
    url = source[after + 1 : close_url]
    return inner, {"type": "text_link", "url": url} if url else {}, close_url + 1
