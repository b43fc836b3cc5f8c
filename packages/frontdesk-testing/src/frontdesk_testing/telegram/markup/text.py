"""A text and its entities, counted in UTF-16 units as Telegram does."""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

import msgspec

Entity = dict[str, Any]


class FormattedText(msgspec.Struct, frozen=True):
    """A text and its entities, in their order."""

    text: str
    entities: tuple[Entity, ...] = ()


class ParseError(ValueError):
    """A text with invalid markup."""


def units(text: str) -> int:
    """Count the UTF-16 units of a text."""
    return len(text) + sum(character > "\uffff" for character in text)


def boundaries(text: str) -> list[int]:
    """Return the offset in UTF-16 units of every character, and of the end."""
    offsets, offset = [0], 0
    for character in text:
        offset += 2 if character > "\uffff" else 1
        offsets.append(offset)
    return offsets


def byte_offset(text: str, index: int) -> int:
    """Return the offset in bytes of a character, as the server's errors name it."""
    return len(text[:index].encode("utf-8", "surrogatepass"))


def in_order(entities: Iterable[Entity]) -> tuple[Entity, ...]:
    """Return entities by their beginning, the longer ones first, without those of no length."""
    kept = [entity for entity in entities if entity["length"] > 0]
    return tuple(sorted(kept, key=lambda entity: (entity["offset"], -entity["length"], "quote" not in entity["type"])))


def trim(formatted: FormattedText) -> FormattedText:
    """Remove the space around a text, as the server does before it counts it."""
    text = formatted.text.rstrip()
    offsets = boundaries(text)
    first = min((entity["offset"] for entity in formatted.entities), default=offsets[-1])
    spaces = len(text) - len(text.lstrip())
    # Space that an entity covers stays.
    cut = min(spaces, bisect_left(offsets, first))
    start, end = offsets[cut], offsets[-1]
    moved: list[Entity] = []
    for entity in formatted.entities:
        length = min(entity["offset"] + entity["length"], end) - entity["offset"]
        moved.append({**entity, "offset": entity["offset"] - start, "length": length})
    return FormattedText(text[cut:], in_order(moved))
