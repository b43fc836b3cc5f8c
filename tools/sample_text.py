"""Draw a random sample of our texts, for a reader with the style rules in hand.

`python -m tools.sample_text --seed 7` prints 200 docstrings, 60 messages, 10 pages and the last 40 commit titles.
`tests/test_language.py` reads all texts with the functions of this module.
"""

import argparse
import ast
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
CODE = ("src", "packages")
LOG_CALLS = frozenset({"debug", "info", "warning", "error", "exception", "critical", "log"})
MIN_MESSAGE_LENGTH = 12


class Text(NamedTuple):
    """A text and where it is."""

    where: str
    text: str


def list_sources(root: Path = ROOT) -> list[Path]:
    """Return the Python files of the two distributions."""
    return sorted(path for folder in CODE for path in (root / folder).rglob("*.py"))


def list_pages(root: Path = ROOT) -> list[Path]:
    """Return the Markdown pages of the documentation and of the root folder, without the changelog."""
    pages = [root / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    return [page for page in pages if page.exists()] + sorted((root / "docs").rglob("*.md"))


def read_docstrings(root: Path = ROOT) -> Iterator[Text]:
    for path, tree in _parse(root):
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                docstring = ast.get_docstring(node)
                if docstring:
                    name = "" if isinstance(node, ast.Module) else f" {node.name}"
                    yield Text(f"{path}{name}", docstring)


def read_messages(root: Path = ROOT) -> Iterator[Text]:
    """Yield the messages of raised errors and of log calls."""
    for path, tree in _parse(root):
        for node in ast.walk(tree):
            for message in _find_messages(node):
                text = _format_message(message)
                if len(text) >= MIN_MESSAGE_LENGTH:
                    yield Text(f"{path}:{message.lineno}", text)


def read_commit_titles(root: Path = ROOT, count: int = 40) -> list[Text]:
    log = ["git", "-C", str(root), "log", f"-{count}", "--format=%h %s"]
    done = subprocess.run(log, capture_output=True, text=True, check=True)  # noqa: S603 (constant arguments)
    return [Text(*line.split(" ", 1)) for line in done.stdout.splitlines()]


def _parse(root: Path) -> Iterator[tuple[Path, ast.Module]]:
    for path in list_sources(root):
        yield path.relative_to(root), ast.parse(path.read_text("utf-8"))


def _find_messages(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        yield from (argument for argument in node.exc.args[:2] if isinstance(argument, ast.Constant | ast.JoinedStr))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOG_CALLS:
        yield from (argument for argument in node.args[:2] if isinstance(argument, ast.Constant | ast.JoinedStr))


def _format_message(message: ast.expr) -> str:
    if isinstance(message, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.Constant) else "{...}" for part in message.values)
        return "".join(str(part) for part in parts)
    return message.value if isinstance(message, ast.Constant) and isinstance(message.value, str) else ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.sample_text", description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--docstrings", type=int, default=200)
    parser.add_argument("--messages", type=int, default=60)
    parser.add_argument("--pages", type=int, default=10)
    given = parser.parse_args()
    draw = random.Random(given.seed)  # noqa: S311 (a sample is no secret)
    samples = {
        "docstring": draw.sample(list(read_docstrings()), given.docstrings),
        "message": draw.sample(list(read_messages()), given.messages),
        "page": [
            Text(str(page.relative_to(ROOT)), page.read_text("utf-8"))
            for page in draw.sample(list_pages(), given.pages)
        ],
        "commit": read_commit_titles(),
    }
    for kind, texts in samples.items():
        for text in texts:
            print(f"--- {kind}: {text.where}\n{text.text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
