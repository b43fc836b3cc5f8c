"""Builds the text of a message from the parameters of a call: parsed, validated, trimmed, with its entities."""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from frontdesk_testing.telegram.errors import bad_request
from frontdesk_testing.telegram.markup.html import parse_html
from frontdesk_testing.telegram.markup.markdown import parse_markdown, parse_markdown_v2
from frontdesk_testing.telegram.markup.text import (
    Entity,
    FormattedText,
    ParseError,
    boundaries,
    in_order,
    trim,
)

_PARSERS = {"html": parse_html, "markdownv2": parse_markdown_v2, "markdown": parse_markdown}
_NEEDED = {"text_link": "url", "text_mention": "user", "custom_emoji": "custom_emoji_id", "date_time": "unix_time"}
_STYLES = {"bold", "italic", "underline", "strikethrough", "spoiler", "blockquote", "expandable_blockquote"}
_FOUND = {"mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number"}
KINDS = _STYLES | _FOUND | {"code", "pre"} | _NEEDED.keys()
"""The types of entities."""
MAX_ENTITIES = 100
"""The number of entities that a message keeps; the server drops the others without a word."""
_VERBATIM = {"code", "pre"}
_QUOTES = {"blockquote", "expandable_blockquote"}
_PATTERNS = {
    "mention": re.compile(r"(?<![\w/@])@[A-Za-z0-9_]{3,32}+(?!\w)"),
    "bot_command": re.compile(r"(?<![\w/@<>])/[A-Za-z0-9_]{1,64}+(?:@[A-Za-z0-9_]{3,32}+)?+(?![\w/])"),
    "hashtag": re.compile(r"(?<!\w)#\w++"),
    "url": re.compile(r"(?<!\w)https?://[^\s<>\"]++"),
    "email": re.compile(r"(?<![\w.+-])[\w.+-]{1,64}+@[A-Za-z0-9-]{1,63}+\.[A-Za-z0-9-]{2,63}+(?!\w)"),
}


def format_text(text: str, parse_mode: str | None, entities: Sequence[Entity] | None) -> FormattedText:
    """Return the text of a message as stored by the server."""
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise bad_request("strings must be encoded in UTF-8")
    if parse_mode and entities is None:
        parse = _PARSERS.get(parse_mode.lower())
        if parse is None:
            raise bad_request("unsupported parse_mode")
        try:
            parsed = parse(text)
        except ParseError as error:
            raise bad_request(f"can't parse entities: {error}") from None
    else:
        check_entities(text, entities or ())
        parsed = FormattedText(text, in_order(entities or ()))
    found = with_found(trim(parsed))
    return FormattedText(found.text, found.entities[:MAX_ENTITIES])


def check_entities(text: str, entities: Sequence[Entity]) -> None:
    """Check that entities lie within a text, on whole characters, and that one is within another or beside it."""
    offsets = boundaries(text)
    for entity in entities:
        begin, end = entity["offset"], entity["offset"] + entity["length"]
        if entity["type"] not in KINDS:
            raise bad_request(f'can\'t parse entities: unsupported type "{entity["type"]}" of an entity')
        if (needed := _NEEDED.get(entity["type"])) and needed not in entity:
            raise bad_request(f"can't parse entities: Can't find field \"{needed}\"")
        if begin < 0 or entity["length"] <= 0:
            raise bad_request(f"entity beginning at UTF-16 offset {begin} has a wrong length")
        if end > offsets[-1]:
            place = f"entity beginning at UTF-16 offset {begin} ends after the end of the text at UTF-16 offset"
            raise bad_request(f"{place} {offsets[-1]}")
        if not _is_boundary(offsets, begin):
            raise bad_request(f"entity begins in a middle of a UTF-16 symbol at UTF-16 offset {begin}")
        if not _is_boundary(offsets, end):
            place = f"entity beginning at UTF-16 offset {begin} ends in a middle of a UTF-16 symbol at UTF-16 offset"
            raise bad_request(f"{place} {end}")
    _check_nesting(in_order(entities))


def _is_boundary(offsets: Sequence[int], offset: int) -> bool:
    place = bisect_left(offsets, offset)
    return place < len(offsets) and offsets[place] == offset


def _check_nesting(entities: Sequence[Entity]) -> None:
    around: list[Entity] = []
    quoted_until = 0
    for entity in entities:
        begin, end = entity["offset"], entity["offset"] + entity["length"]
        while around and around[-1]["offset"] + around[-1]["length"] <= begin:
            around.pop()
        if around and end > around[-1]["offset"] + around[-1]["length"]:
            raise bad_request(
                f"can't parse entities: {_describe_entity(around[-1])} and {_describe_entity(entity)} overlap"
            )
        quotes = entity["type"] in _QUOTES
        if around and (_excludes(around[-1]["type"], entity["type"]) or (quotes and begin < quoted_until)):
            raise bad_request(
                f"can't parse entities: {_describe_entity(entity)} can't be within {_describe_entity(around[-1])}"
            )
        quoted_until = end if quotes else quoted_until
        around.append(entity)


def _excludes(outer: str, inner: str) -> bool:
    return outer in _VERBATIM or (inner in _VERBATIM and outer not in _QUOTES)


def _describe_entity(entity: Mapping[str, Any]) -> str:
    return f"{entity['type']} at UTF-16 offset {entity['offset']}"


def with_found(given: FormattedText) -> FormattedText:
    """Add the mentions, commands, hashtags and links of a text, where no other entity excludes them."""
    if not any(mark in given.text for mark in "@/#"):
        return given
    offsets = boundaries(given.text)
    taken = sorted(
        (entity["offset"], entity["offset"] + entity["length"])
        for entity in given.entities
        if entity["type"] not in _STYLES
    )
    found: list[Entity] = []
    for kind, pattern in _PATTERNS.items():
        for match in pattern.finditer(given.text):
            begin, end = offsets[match.start()], offsets[match.end()]
            found.append({"type": kind, "offset": begin, "length": end - begin})
    kept = _beside(taken, in_order(found))
    return FormattedText(given.text, in_order([*given.entities, *kept]))


def _beside(taken: Sequence[tuple[int, int]], found: Sequence[Entity]) -> list[Entity]:
    """Return the matches outside of the ranges that are taken, and not within something found before."""
    kept: list[Entity] = []
    last = place = 0
    for entity in found:
        begin, end = entity["offset"], entity["offset"] + entity["length"]
        while place < len(taken) and taken[place][1] <= begin:
            place += 1
        if begin >= last and (place == len(taken) or end <= taken[place][0]):
            kept.append(entity)
            last = end
    return kept
