"""Texts that make a pattern work as hard as it can, found in its own tree."""

from collections.abc import Iterator
from re import _constants as op  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
from typing import Any

from tests.linear.steps import Node, Steps, is_single

_TRIED = "a0-_ .:/@=\"'`,;!()\n\tA\x00é"
_TAILS = ("", "\x00")
_LARGE = 8
_GAPS = ("", "-", " ", "\n")


def attacks(steps: Steps, size: int, *, anchored: bool) -> Iterator[tuple[str, str]]:
    """Texts of about a size, each beside one of three times as many rounds, for each repetition that can be long."""
    seen: set[str] = set()
    for prefix, pumps in _repeats(steps, steps.tree, ""):
        units = [(prefix, pump) for pump in pumps]
        if not anchored:
            units += [("", pump) for pump in pumps]
            # A new start in what an earlier one is still looking at.
            units += [("", gap + prefix + pump * few) for pump in pumps for gap in _GAPS for few in (1, 12)]
            units += [("", gap + prefix) for gap in _GAPS if prefix]
        for before, unit in units:
            rounds = max(size // len(unit), 3)
            for tail in _TAILS:
                text = before + unit * rounds + tail
                if text not in seen:
                    seen.add(text)
                    yield text, before + unit * (3 * rounds) + tail


def _repeats(steps: Steps, items: list[Node], prefix: str) -> Iterator[tuple[str, list[str]]]:
    """Each long repetition: an example of what comes before it, and examples of one round."""
    for index, (kind, value) in enumerate(items):
        before = prefix + _example(steps, items[:index])
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            _, most, inner = value
            body = list(inner)
            if most is op.MAXREPEAT or most > _LARGE:
                yield before, _rounds(steps, body)
            yield from _repeats(steps, body, before)
        elif not is_single((kind, value)) and kind is not op.AT and kind is not op.GROUPREF:
            for inner in _inside((kind, value)):
                yield from _repeats(steps, list(inner), before)


def _rounds(steps: Steps, body: list[Node]) -> list[str]:
    if len(body) == 1 and is_single(body[0]):
        return _alike(steps, body[0])
    # Two rounds that differ, where a round can be empty or longer.
    whole = _example(steps, body, longer=True)
    return [one for one in dict.fromkeys((_example(steps, body), whole)) if one]


def _alike(steps: Steps, node: Node) -> list[str]:
    """One of each kind of the characters that a node stands for: two of a kind are the same to the whole pattern."""
    singles = list(_singles(steps.tree))
    kinds: dict[tuple[bool, ...], str] = {}
    for character in _TRIED + "".join(chr(one[1]) for one in singles if one[0] is op.LITERAL):
        if steps.fits(node, character):
            kinds.setdefault(tuple(steps.fits(one, character) for one in singles), character)
    return list(kinds.values()) or [_member(node)]


def _singles(items: Any) -> Iterator[Node]:
    for node in items:
        if is_single(node):
            yield node
        elif node[0] is not op.AT and node[0] is not op.GROUPREF:
            for inner in _inside(node):
                yield from _singles(inner)


def _inside(node: Node) -> list[Any]:
    kind, value = node
    if kind is op.BRANCH:
        return list(value[1])
    if kind is op.ATOMIC_GROUP:
        return [value]
    return [value[-1]]


def _example(steps: Steps, items: list[Node], *, longer: bool = False) -> str:
    return "".join(_one(steps, node, longer) for node in items)


def _one(steps: Steps, node: Node, longer: bool) -> str:
    kind: Any
    kind, value = node
    if kind is op.LITERAL:
        return chr(value)
    if is_single(node):
        return next((one for one in _TRIED if steps.fits(node, one)), None) or _member(node)
    if kind is op.BRANCH:
        return _example(steps, list(value[1][0]), longer=longer)
    if kind is op.SUBPATTERN:
        return _example(steps, list(value[3]), longer=longer)
    if kind is op.ATOMIC_GROUP:
        return _example(steps, list(value), longer=longer)
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        return _example(steps, list(value[2]), longer=longer) * max(value[0], 1 if longer else 0)
    return ""


def _member(node: Node) -> str:
    kind, value = node
    if kind is op.IN:
        return _member(next(one for one in value if one[0] is not op.NEGATE))
    return chr(value[0] if kind is op.RANGE else value)
