"""Markdown is parsed, rendered and split in a number of steps that grows with the text, and not with its square.

The lines of the parser, which is not ours, are counted too.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from frontdesk.chat.rendering import Renderer
from frontdesk.markdown import Document, Entities, Mrkdwn, Plain, pack, parse, render, split, to_blocks
from frontdesk.markdown.parse import close_open
from tests.linear import test_loops
from tests.linear.test_loops import lines_of

T = TypeVar("T")

UNITS = [
    *("a", " ", "\n", "a. ", "a\n", "字", "\u0301", "\u200d", "🇩", "\x00", "&amp;", "\\"),
    *("*", "_", "**a ", "*a_ ", "a**b", "~~a ~", "*a* ", "_a*", "~", "`", "`a``b```", "`a` ", "``` a\n"),
    *("[", "]", "![", "](", "[a](", "[a](<b", '[a](b "', "[a](b) ", "[a][", "*["),
    *("<", "<a:", "<!--", "https://a)", "https://((", "https://a.b/"),
    *("> ", "> a\n", "- ", "- a\n", "  - a\n", "1. a\n", "- \t", "- [x] a\n", "x\n> "),
    *("|a", "|a|b|\n|-|-|\n", "a|b\n-|-\na|b|c|d\n", "|-", "```\n", "    a\n"),
    *("# a\n", "a\n=\n", "---\n", "[a]: b\n\n[a] ", "[a\n", "[a]:\n", "[a]: b 'c\n"),
]

# Texts that grow in more than one place, by a number.
SHAPES: dict[str, Callable[[int], str]] = {
    "links in links": lambda size: "[" * size + "a" + "](b)" * size,
    "images in images": lambda size: "![" * size + "a" + "](b)" * size,
    "brackets and one end": lambda size: "![" * size + "]",
    "lists of all depths": lambda size: "".join(f"{'  ' * (number % 9)}- a\n" for number in range(size)),
    "quotes of all depths": lambda size: "".join(f"{'> ' * (number % 9)}a\n" for number in range(size)),
    "brackets and a definition": lambda size: "[a]: b\n\n" + "[" * size + "]" * size,
    "styles in styles": lambda size: "*a **b " * size + "c" + "***" * size,
    "a table of many rows": lambda size: "|a|b|\n|-|-|\n" + "|c|\n" * size,
    "a table with a long header": lambda size: f"|{'a' * size}|\n|-|\n" + "|c|\n" * size,
    "a table with many columns": lambda size: "|a" * size + "|\n" + "|-" * size + "|\n" + "|c|\n" * size,
    "a long URL referred to often": lambda size: f"[a]: https://b.c/{'d' * size}\n\n" + "[a] " * size,
    "a long line of code": lambda size: "```\n" + "a" * size,
    "many lines of code": lambda size: "```py\n" + "a = 1\n" * size,
    "backticks of all lengths": lambda size: "".join("a" + "`" * count for count in range(int((2 * size) ** 0.5))),
}

# What is done with a tree.
GROWING = Renderer(dialect=Entities(), limit=20, unit="utf16", to_blocks=to_blocks)
MAX_LINES_PER_CHARACTER = 900
"""The lines of the parser that a character may take. The parser scans brackets as often as its nesting limit allows."""

READERS: dict[str, Callable[[Document], Any]] = {
    "plain": lambda tree: render(tree, Plain()),
    "mrkdwn in short parts": lambda tree: split(tree, Mrkdwn(), 16),
    "mrkdwn in two parts": lambda tree: split(tree, Mrkdwn(), max(1, len(render(tree, Mrkdwn()).text) - 1)),
    "entities": lambda tree: split(tree, Entities(), 20, unit="utf16"),
    "blocks": lambda tree: [to_blocks(part) for part in pack(tree, Entities(), 20, unit="utf16")],
}

TEXT_READERS: dict[str, Callable[[str], Any]] = {
    "closing what is open": close_open,
    "an answer that is being written": GROWING.render_growing,
}
TEXTS: list[Callable[[int], str]] = [*SHAPES.values(), *(unit.__mul__ for unit in UNITS)]


def grow(make: Callable[[int], T], read: Callable[[T], Any], size: int) -> str | None:
    """Tell what is wrong with how the lines grow, if anything is."""
    small, large = make(size), make(3 * size)
    few, many = lines_of(lambda: read(small)), lines_of(lambda: read(large))
    return None if many <= 4 * few + 200 else f"{few} lines, for a text of three times the size {many}"


def test_parsing_takes_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    parse("a")
    monkeypatch.setattr(test_loops, "SOURCE", "")
    wrong = {make(3): told for make in TEXTS if (told := grow(make, parse, 48))}
    assert not wrong, wrong


@pytest.mark.parametrize("make", TEXTS, ids=lambda make: repr(make(2))[:30])
def test_a_character_takes_few_lines_of_the_parser(monkeypatch: pytest.MonkeyPatch, make: Callable[[int], str]) -> None:
    """80 KB of `![` took two seconds, in linear time."""
    parse("a")
    monkeypatch.setattr(test_loops, "SOURCE", "")
    text = make(200)
    assert lines_of(lambda: parse(text)) < MAX_LINES_PER_CHARACTER * len(text)
    if "]" not in text:
        # Brackets that no bracket closes are not scanned.
        assert lines_of(lambda: parse(text)) < MAX_LINES_PER_CHARACTER // 2 * len(text)


@pytest.mark.parametrize("name", TEXT_READERS)
def test_a_growing_text_takes_linear_time(name: str) -> None:
    wrong = {make(3): told for make in TEXTS if (told := grow(make, TEXT_READERS[name], 60))}
    assert not wrong, wrong


def test_headings_alone_took_quadratic_time() -> None:
    told = grow(lambda size: parse("# a\n" * size), lambda tree: pack(tree, Entities(), 20, unit="utf16"), 400)
    assert told is None, told


@pytest.mark.parametrize("name", READERS)
def test_a_tree_is_rendered_and_split_in_linear_time(name: str) -> None:
    trees = [lambda size, make=make: parse(make(size)) for make in TEXTS]
    wrong = {TEXTS[index](3): told for index, make in enumerate(trees) if (told := grow(make, READERS[name], 32))}
    assert not wrong, wrong
