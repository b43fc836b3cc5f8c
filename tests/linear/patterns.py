"""Every regular expression of the package, and how it is used."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import frontdesk

PACKAGE = Path(frontdesk.__file__).parent
_HARMLESS = {"compile", "escape", "Pattern", "Match", "error"}
_FLAGS = re.compile(r"[A-Z]+")
_ANCHORED = {"match", "fullmatch"}


class Found(NamedTuple):
    """A pattern, where it is, and whether it is only ever tried at the beginning of a text."""

    place: str
    pattern: re.Pattern[Any]
    anchored: bool

    def __str__(self) -> str:
        return f"{self.place}: {self.pattern.pattern!r}"


def modules(root: Path = PACKAGE) -> Iterator[tuple[str, ast.Module]]:
    """Every module of the package that knows `re`, or has patterns in its types."""
    for path in sorted(root.rglob("*.py")):
        text = path.read_text("utf-8")
        if re.search(r"^\s*(import re\b|from re\b|import regex|from msgspec import.*Meta)", text, re.MULTILINE):
            yield path.relative_to(root).with_suffix("").as_posix(), ast.parse(text)


def find_hidden(root: Path = PACKAGE) -> list[str]:
    """Uses of `re` that the tests can't see: patterns that are made when a function runs, or under another name."""
    wrong: list[str] = []
    for place, tree in modules(root):
        inside = {
            id(node)
            for function in ast.walk(tree)
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            for node in ast.walk(function)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "re":
                wrong.append(f"{place}:{node.lineno} imports from re")
            if not isinstance(node, ast.Attribute) or ast.unparse(node.value) != "re" or _FLAGS.fullmatch(node.attr):
                continue
            if node.attr not in _HARMLESS or (node.attr == "compile" and id(node) in inside):
                wrong.append(f"{place}:{node.lineno} makes a pattern at run time: re.{node.attr}")
    return wrong


def patterns() -> list[Found]:
    """All of them; a module that compiles more than is found in it is an error."""
    found: list[Found] = []
    for place, tree in modules():
        module = importlib.import_module(f"frontdesk.{place.replace('/', '.').removesuffix('.__init__')}")
        uses = _uses(tree)
        here: dict[re.Pattern[Any], bool] = {}
        for name, value in vars(module).items():
            for pattern in _within(value, set()):
                here[pattern] = here.get(pattern, True) and uses.get(name, {"search"}) <= _ANCHORED
        calls = sum(isinstance(node, ast.Attribute) and _is_compile(node) for node in ast.walk(tree))
        assert len(here) >= calls, f"{place} compiles {calls} patterns, and {len(here)} were found"
        found += [Found(place, pattern, anchored) for pattern, anchored in here.items()]
    return found


def _is_compile(node: ast.Attribute) -> bool:
    return node.attr == "compile" and isinstance(node.value, ast.Name) and node.value.id == "re"


def _uses(tree: ast.Module) -> dict[str, set[str]]:
    """The methods that are called on each name."""
    uses: dict[str, set[str]] = {}
    named = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            uses.setdefault(node.value.id, set()).add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in named:
            # Handed on to somebody who may do anything with it.
            uses.setdefault(node.id, set()).add("search")
    return uses


def _within(value: Any, seen: set[int]) -> Iterator[re.Pattern[Any]]:
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, (tuple, list, set, frozenset)):
        for one in value:
            yield from _within(one, seen)
    elif isinstance(value, dict):
        yield from _within([*value, *value.values()], seen)
    elif isinstance(value, msgspec.Meta):
        if value.pattern is not None:
            yield re.compile(value.pattern)
    elif hasattr(value, "__metadata__"):
        yield from _within(value.__metadata__, seen)
    elif isinstance(value, type) and value.__module__.startswith("frontdesk"):
        yield from _within(list(vars(value).values()), seen)
