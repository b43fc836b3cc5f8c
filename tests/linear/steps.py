"""Counts the steps of a regular expression: a backtracking matcher like the one of `re`, which can't be asked.

It walks the parsed tree as the real engine walks its code, and counts each character that is compared. What the engine
skips by tricks of its own is counted here, so that the real cost is never higher by more than a factor.
"""

import re
from collections.abc import Iterator
from re import _constants as op  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
from re import _parser as parser  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
from typing import Any

Node = tuple[Any, Any]
_SPACES = " \t\n\r\f\v"


class TooManyStepsError(Exception):
    """The budget is used up."""


class Steps:
    """One pattern, and how many characters were compared for it."""

    def __init__(self, pattern: re.Pattern[Any], budget: int = 2_000_000) -> None:
        source = pattern.pattern
        self._text = source if isinstance(source, str) else source.decode("latin-1")
        self._ascii = isinstance(source, bytes) or bool(pattern.flags & re.ASCII)
        tree: Any = parser.parse(self._text, pattern.flags & ~re.UNICODE if self._ascii else pattern.flags)
        self.tree: list[Node] = list(tree)
        self._flags = pattern.flags
        self._budget = budget
        self._known: dict[Any, bool] = {}
        self.count = 0

    def restart(self, budget: int) -> None:
        """Count again from nothing, up to a budget."""
        self.count, self._budget = 0, budget

    def fullmatch(self, text: str) -> bool:
        """Tell whether the whole text matches."""
        return any(end == len(text) for end in self._items(self.tree, 0, text, 0, {}, self._flags))

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Find all that `finditer` finds."""
        found: list[tuple[int, int]] = []
        place, must_advance = 0, False
        while place <= len(text):
            self._step()
            ends = self._items(self.tree, 0, text, place, {}, self._flags)
            end = next((end for end in ends if not must_advance or end > place), None)
            if end is None:
                place, must_advance = place + 1, False
            else:
                found.append((place, end))
                place, must_advance = end, end == place
        return found

    def fits(self, node: Node, character: str, flags: int | None = None) -> bool:
        """Tell whether a node that stands for one character stands for this one."""
        key = (id(node[1]), node[0], character, flags)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._fits(node, character, self._flags if flags is None else flags)
        return known

    def _step(self) -> None:
        self.count += 1
        if self.count > self._budget:
            raise TooManyStepsError

    def _items(self, items: Any, index: int, text: str, at: int, groups: dict[int, str], flags: int) -> Iterator[int]:
        if index == len(items):
            yield at
            return
        for end in self._item(items[index], text, at, groups, flags):
            yield from self._items(items, index + 1, text, end, groups, flags)

    def _item(self, node: Node, text: str, at: int, groups: dict[int, str], flags: int) -> Iterator[int]:
        kind, value = node
        if is_single(node):
            self._step()
            if at < len(text) and self.fits(node, text[at], flags):
                yield at + 1
        elif kind is op.AT:
            if self._is_at(value, text, at, flags):
                yield at
        elif kind is op.BRANCH:
            for branch in value[1]:
                yield from self._items(branch, 0, text, at, groups, flags)
        elif kind is op.SUBPATTERN:
            number, added, removed, inner = value
            for end in self._items(inner, 0, text, at, groups, (flags | added) & ~removed):
                if number is not None:
                    groups[number] = text[at:end]
                yield end
        elif kind is op.ATOMIC_GROUP:
            yield from _first(self._items(value, 0, text, at, groups, flags))
        elif kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            found = self._repeat(kind, value, text, at, groups, flags)
            yield from _first(found) if kind is op.POSSESSIVE_REPEAT else found
        elif kind in (op.ASSERT, op.ASSERT_NOT):
            if self._looks(value, text, at, groups, flags) == (kind is op.ASSERT):
                yield at
        elif kind is op.GROUPREF:
            known = groups.get(value)
            self._step()
            if known is not None and text.startswith(known, at):
                yield at + len(known)
        else:
            raise NotImplementedError(str(kind))

    def _looks(self, value: Any, text: str, at: int, groups: dict[int, str], flags: int) -> bool:
        direction, inner = value
        if direction > 0:
            return next(self._items(inner, 0, text, at, groups, flags), None) is not None
        width = inner.getwidth()[0]
        if at < width:
            return False
        return any(end == at for end in self._items(inner, 0, text, at - width, groups, flags))

    def _repeat(self, kind: Any, value: Any, text: str, at: int, groups: dict[int, str], flags: int) -> Iterator[int]:
        least, most, inner = value
        body: Any = inner
        most = len(text) + 1 if most is op.MAXREPEAT else int(most)
        if len(body) == 1 and is_single(body[0]):
            yield from self._repeat_one(kind, body[0], least, most, text, at, flags)
        else:
            yield from self._repeat_group(kind, body, least, most, text, at, groups, flags)

    def _repeat_one(
        self, kind: Any, node: Node, least: int, most: int, text: str, at: int, flags: int
    ) -> Iterator[int]:
        def fits(place: int) -> bool:
            self._step()
            return place < len(text) and self.fits(node, text[place], flags)

        count = 0
        wanted = least if kind is op.MIN_REPEAT else most
        while count < wanted and fits(at + count):
            count += 1
        if count < least:
            return
        yield at + count
        if kind is op.MIN_REPEAT:
            while count < most and fits(at + count):
                count += 1
                yield at + count
        else:
            while count > least:
                self._step()
                count -= 1
                yield at + count

    def _repeat_group(
        self,
        kind: Any,
        body: Any,
        least: int,
        most: int,
        text: str,
        at: int,
        groups: dict[int, str],
        flags: int,
    ) -> Iterator[int]:
        self._step()
        if kind is op.MIN_REPEAT and least <= 0:
            yield at
        if most > 0:
            for end in self._items(body, 0, text, at, groups, flags):
                # A round that takes nothing would never end.
                if end > at or least > 0:
                    yield from self._repeat_group(kind, body, least - 1, most - 1, text, end, groups, flags)
        if kind is not op.MIN_REPEAT and least <= 0:
            yield at

    def _fits(self, node: Node, character: str, flags: int) -> bool:
        if flags & re.IGNORECASE:
            return any(self._is_one(node, one, flags) for one in {character, character.lower(), character.upper()})
        return self._is_one(node, character, flags)

    def _is_one(self, node: Node, character: str, flags: int) -> bool:
        kind, value = node
        if kind is op.ANY:
            return bool(flags & re.DOTALL) or character != "\n"
        if kind is op.LITERAL:
            return character in self._both(chr(value), flags)
        if kind is op.NOT_LITERAL:
            return character not in self._both(chr(value), flags)
        if kind is op.RANGE:
            return value[0] <= ord(character[0]) <= value[1]
        if kind is op.CATEGORY:
            return self._in_category(value, character)
        members = [one for one in value if one[0] is not op.NEGATE]
        return any(self._is_one(one, character, flags) for one in members) == (len(members) == len(value))

    @staticmethod
    def _both(character: str, flags: int) -> set[str]:
        return {character.lower(), character.upper(), character} if flags & re.IGNORECASE else {character}

    def _in_category(self, category: Any, character: str) -> bool:
        ascii_only = self._ascii and ord(character[0]) > 127
        if category in (op.CATEGORY_WORD, op.CATEGORY_NOT_WORD):
            found = not ascii_only and (character.isalnum() or character == "_")
            return found == (category is op.CATEGORY_WORD)
        if category in (op.CATEGORY_DIGIT, op.CATEGORY_NOT_DIGIT):
            found = not ascii_only and character.isdecimal()
            return found == (category is op.CATEGORY_DIGIT)
        found = character in _SPACES if self._ascii else character.isspace()
        return found == (category is op.CATEGORY_SPACE)

    def _is_at(self, place: Any, text: str, at: int, flags: int) -> bool:
        self._step()
        if place is op.AT_BEGINNING:
            return at == 0 or bool(flags & re.MULTILINE and text[at - 1] == "\n")
        if place is op.AT_BEGINNING_STRING:
            return at == 0
        if place is op.AT_END_STRING:
            return at == len(text)
        if place is op.AT_END:
            at_line_end = at < len(text) and text[at] == "\n"
            return at == len(text) or (at_line_end and (bool(flags & re.MULTILINE) or at == len(text) - 1))
        before = at > 0 and self._in_category(op.CATEGORY_WORD, text[at - 1])
        behind = at < len(text) and self._in_category(op.CATEGORY_WORD, text[at])
        return (before != behind) == (place is op.AT_BOUNDARY)


def is_single(node: Node) -> bool:
    return node[0] in (op.ANY, op.LITERAL, op.NOT_LITERAL, op.IN, op.RANGE, op.CATEGORY)


def _first(found: Iterator[int]) -> Iterator[int]:
    for end in found:
        yield end
        return
