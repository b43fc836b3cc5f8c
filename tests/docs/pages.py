"""Reads the documents: their code, their commands, their links and their tables."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from frontdesk import errors

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "docs/examples").glob("*.py"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "bench/README.md"])

# Where a host answers that was started with no options; code that names it is a client's.
ADDRESS = "http://127.0.0.1:8000"

# The variable from which the documents take the address of a database.
DATABASE = "DATABASE_URL"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A piece of code in a document."""

    page: Path
    language: str
    text: str
    line: int

    def __str__(self) -> str:
        return f"{get_name(self.page)}:{self.line}"


def get_name(page: Path) -> str:
    """The page as it is called in the tree."""
    return page.relative_to(ROOT).as_posix()


def blocks(*languages: str, calling: bool | None = None) -> Iterator[Block]:
    """Every fenced block in some language, from all pages; those of clients, all others, or both."""
    for page in PAGES:
        text = page.read_text("utf-8")
        for found in _FENCE.finditer(text):
            client = ADDRESS in found.group(2)
            if found.group(1) in languages and calling in (None, client):
                yield Block(page, found.group(1), found.group(2), text[: found.start()].count("\n") + 2)


def prose_of(page: Path) -> str:
    """A page without its fenced blocks."""
    return _FENCE.sub("", page.read_text("utf-8"))


def commands(program: str) -> Iterator[tuple[str, str]]:
    """Every line that calls a program, in shell blocks and in code spans, with the page that names it."""
    for block in blocks("sh", "text", "console"):
        for line in block.text.replace("\\\n", " ").splitlines():
            command = line.strip().removeprefix("$ ")
            if command.startswith(f"{program} "):
                yield get_name(block.page), re.split(r" #| > ", command)[0].strip()
    for page in PAGES:
        for span in re.findall(r"`([^`\n]+)`", prose_of(page)):
            if span.startswith(f"{program} "):
                yield get_name(page), span


def links(page: Path) -> list[str]:
    """Where a page points to, outside its code."""
    return re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose_of(page)))


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    titles = re.findall(r"^#+ (.+)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def tables(page: Path) -> dict[str, list[list[str]]]:
    """The rows of the first table under each heading."""
    found: dict[str, list[list[str]]] = {}
    title = ""
    for line in prose_of(page).splitlines():
        if line.startswith("#"):
            title = line.lstrip("# ")
        elif line.startswith("|"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            found.setdefault(title, []).append(cells)
    return {title: rows[2:] for title, rows in found.items()}


def request_errors() -> list[type[errors.RequestError]]:
    """Every kind of error that a caller can be shown."""
    kinds = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.RequestError)]
    return [one for one in kinds if one is not errors.RequestError]
