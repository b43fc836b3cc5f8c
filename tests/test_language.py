"""Words that our texts and names do not use. Each rule finds a planted violation."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.sample_text import ROOT, Text, list_pages, list_sources, read_docstrings, read_messages

METAPHORS = r"house|door|room|floor|drawer|shelf|shelves|desk|noun|bell"

TEXT_RULES = {
    "a metaphor": rf"(?<!-)\b(?:{METAPHORS})s?\b(?!-)",
    "tell whether": r"\btells? whether\b",
    "return what": r"\breturns? what\b",
    "nobody": r"\bnobody\b",
    "whoever": r"\bwhoever\b",
    "of whom": r"\bof whom\b",
    "takes note": r"\btakes? note\b",
    "is told": r"\b(?:is|are) told\b",
    "by now": r"\bby now\b",
}
NAME_RULES = {
    "*_of": r"_of$",
    "MOST_": r"^_?(?:MOST|LONGEST|LARGEST|SHORTEST)_",
    "need_": r"^_?need_",
    "a metaphor": rf"(?i:(?:^|_)(?:{METAPHORS})s?(?:_|$))",
}

ALLOWED_NAMES = {
    "link_of": "deprecated alias",
    "calls_of": "deprecated alias",
    "home_of": "deprecated alias",
    "callers_of": "public setting",
    "keep_ids_of": "public setting",
    "instead_of": "a parameter",
}
"""Names that stay, each with its reason."""

ALLOWED_TEXTS = {"Book a room": "the tool of a hotel in the demo"}
"""Texts that stay, by a part of the text, each with its reason."""


def find_words(texts: Iterator[Text]) -> list[str]:
    """Return a line for each text that a rule forbids. Code in backticks and code blocks do not count."""
    found: list[str] = []
    for where, text in texts:
        prose = re.sub(r"```.*?```|``.*?``|`[^`]*`|\(https?:[^)]*\)|\]\([^)]*\)", " ", text, flags=re.DOTALL)
        found += [
            f"{where}: {rule}: {match[0]!r} in {_excerpt(prose, match)!r}"
            for rule, pattern in TEXT_RULES.items()
            for match in re.finditer(pattern, prose, re.IGNORECASE)
            if not any(allowed in _excerpt(prose, match) for allowed in ALLOWED_TEXTS)
        ]
    return found


def _excerpt(prose: str, match: re.Match[str]) -> str:
    return " ".join(prose[max(0, match.start() - 40) : match.end() + 40].split())


def find_names(path: str, tree: ast.Module) -> list[str]:
    """Return a line for each defined name that a rule forbids."""
    names = {
        node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else str(_name(node))
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.arg) or _is_assigned(node)
    }
    return [
        f"{path}: {rule}: {name}"
        for name in sorted(names - set(ALLOWED_NAMES))
        for rule, pattern in NAME_RULES.items()
        if re.search(pattern, re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name))
    ]


def _is_assigned(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _name(node: ast.AST) -> str:
    return node.arg if isinstance(node, ast.arg) else node.id if isinstance(node, ast.Name) else ""


def _read_pages() -> Iterator[Text]:
    return (Text(str(page.relative_to(ROOT)), page.read_text("utf-8")) for page in list_pages())


def test_docstrings_use_plain_terms() -> None:
    found = find_words(read_docstrings())
    assert not found, "\n".join(found)


def test_messages_use_plain_terms() -> None:
    found = find_words(read_messages())
    assert not found, "\n".join(found)


def test_pages_use_plain_terms() -> None:
    found = find_words(_read_pages())
    assert not found, "\n".join(found)


def test_names_use_plain_terms() -> None:
    found = [
        line
        for path in list_sources()
        if "demo" not in path.parts  # a hotel has rooms
        for line in find_names(str(path.relative_to(ROOT)), ast.parse(path.read_text("utf-8")))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "Open the door.",
        "Tell whether it is one.",
        "Return what was asked.",
        "Nobody may vote.",
        "whoever asks",
        "a person of whom nothing is known",
        "It takes note of the link.",
        "The caller is told so.",
        "It is a supergroup by now.",
    ],
)
def test_a_planted_text_is_found(text: str) -> None:
    assert find_words(iter([Text("planted", text)]))


@pytest.mark.parametrize("name", ["text_of", "MOST_ROWS", "_LONGEST_NAME", "need_schema", "AdminDesk", "has_room"])
def test_a_planted_name_is_found(name: str) -> None:
    assert find_names("planted.py", ast.parse(f"def {name}(): ..."))
    assert find_names("planted.py", ast.parse(f"{name} = 1"))


@pytest.mark.parametrize("text", ["Open `door`.", "Frontdesk answers.", "```\nthe house\n```", "a built-in floor-plan"])
def test_code_and_the_product_are_not_words(text: str) -> None:
    assert not find_words(iter([Text("planted", text)]))


def test_the_folders_that_are_read_exist() -> None:
    assert (Path(ROOT) / "src").is_dir()
    assert len(list_sources()) > 300
