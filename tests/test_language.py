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
    "MOST_": r"^_?(?:MOST|LONGEST|LARGEST|SHORTEST|DEEPEST|LEAST)(?:_|$)",
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

PARTICIPLE = re.compile(
    r"(?!(?:bring|embed|exceed|feed|need|nothing|proceed|ring|seed|shed|something|speed|string|succeed)$)(?:\w{3,}(?:ed|ing)|"
    r"begun|bound|built|chosen|done|driven|drawn|fed|found|frozen|given|gone|heard|held|hidden|kept|known|left|lost|made|"
    r"meant|met|paid|said|seen|sent|shown|shut|spoken|stolen|struck|taken|thought|told|understood|withheld|written)"
)
"""A word that is a participle, except for verbs and nouns that end like one."""

ALLOWED_FUNCTIONS = {
    "crashing": "public function of frontdesk_testing",
    "serving": "public function of frontdesk_testing",
    "serving_app": "public function of frontdesk_testing",
    "keyed": "public function for HTTP channels",
    "opening_hours": "tool that the model of the demo sees",
}
"""Functions that are named by a participle, each with its reason."""

ALLOWED_METHODS = {
    "asked_as": "stores implement it",
    "expired": "stores implement it",
    "failed": "stores implement it",
    "linked_as": "stores implement it",
    "lost": "stores implement it",
    "moved_on": "stores implement it",
    "pending": "stores implement it",
    "stranded": "stores implement it",
    "waiting": "stores implement it",
    "waiting_for": "stores implement it",
    "kept": "linkers call it",
    "reached": "targets call it",
    "settled_question": "channels implement it",
    "typing": "channels implement it",
    "checked": "channels call it",
    "decided": "channels call it",
    "described": "channels call it",
    "undecided": "channels call it",
    "shown": "test platforms implement it",
    "shut": "test platforms implement it",
    "signed": "test platforms implement it",
    "linked_claim_allowlist": "public policy",
    "mixed": "public policy",
    "working": "public method of the host",
}
"""Methods that are named by a participle, each with its reason."""

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


def find_participles(path: str, tree: ast.Module) -> list[str]:
    """Return a line for each function whose name begins with a participle. It may if it returns a bool."""
    methods = {id(node) for owner in ast.walk(tree) if isinstance(owner, ast.ClassDef) for node in owner.body}
    return [
        f"{path}:{node.lineno}: a participle: {node.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and _is_participle(node.name)
        and node.name not in (ALLOWED_METHODS if id(node) in methods else ALLOWED_FUNCTIONS)
        and not _returns_bool(node)
        and not _is_property(node)
    ]


def _is_participle(name: str) -> bool:
    return not name.startswith("__") and PARTICIPLE.fullmatch(name.strip("_").partition("_")[0]) is not None


def _returns_bool(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    returns = "" if node.returns is None else ast.unparse(node.returns).strip("'\"")
    return returns == "bool" or returns.startswith(("TypeGuard[", "TypeIs["))


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(one).endswith(("property", ".setter")) for one in node.decorator_list)


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


def test_functions_are_verbs() -> None:
    found = [
        line
        for path in list_sources()
        for line in find_participles(str(path.relative_to(ROOT)), ast.parse(path.read_text("utf-8")))
    ]
    assert not found, "\n".join(found)


def test_each_allowed_participle_exists() -> None:
    text = "\n".join(path.read_text("utf-8") for path in list_sources())
    assert [name for name in (*ALLOWED_FUNCTIONS, *ALLOWED_METHODS) if f"def {name}(" not in text] == []


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


@pytest.mark.parametrize(
    "name", ["text_of", "MOST_ROWS", "_LONGEST_NAME", "_DEEPEST", "need_schema", "AdminDesk", "has_room"]
)
def test_a_planted_name_is_found(name: str) -> None:
    assert find_names("planted.py", ast.parse(f"def {name}(): ..."))
    assert find_names("planted.py", ast.parse(f"{name} = 1"))


@pytest.mark.parametrize(
    "code",
    [
        "def gated(): ...",
        "async def _stopped(task: Task) -> None: ...",
        "class A:\n    def given_back(self) -> int: ...",
        "class A:\n    def serving(self) -> None: ...",
        "def waiting() -> list[str]: ...",
        "def outer():\n    def watched() -> None: ...",
        "@contextmanager\ndef running() -> Iterator[None]: ...",
    ],
)
def test_a_planted_participle_is_found(code: str) -> None:
    assert len(find_participles("planted.py", ast.parse(code))) == 1


@pytest.mark.parametrize(
    "code",
    [
        "def allowed(name: str) -> bool: ...",
        "def bounded(value: object) -> TypeGuard[int]: ...",
        "class A:\n    @property\n    def shown_name(self) -> str: ...",
        "class A:\n    async def pending(self, owner: str) -> list[str]: ...",
        "def from_stored(text: str) -> A: ...",
        "def need() -> str: ...",
    ],
)
def test_verbs_and_predicates_are_no_participles(code: str) -> None:
    assert find_participles("planted.py", ast.parse(code)) == []


@pytest.mark.parametrize("text", ["Open `door`.", "Frontdesk answers.", "```\nthe house\n```", "a built-in floor-plan"])
def test_code_and_the_product_are_not_words(text: str) -> None:
    assert not find_words(iter([Text("planted", text)]))


def test_the_folders_that_are_read_exist() -> None:
    assert (Path(ROOT) / "src").is_dir()
    assert len(list_sources()) > 300
