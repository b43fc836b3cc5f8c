"""The page about the architecture: its folders, its files and functions, and how many files a request runs."""

import ast
import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, tables
from tools.request_files import REQUESTS, count

PAGE = ROOT / "docs/internals/architecture.md"
PACKAGE = ROOT / "src/frontdesk"
REQUESTS_TABLE = "Files and layer changes of five requests"


def absent(text: str) -> list[str]:
    """The files and functions of a text that the package does not have."""
    found = set(re.findall(r"(?<![\w/.])((?:\w+/)*\w+\.py)(?::([A-Za-z_][\w.]*\w))?", text))
    return sorted(f"{path}:{name}" for path, name in found if not has(PACKAGE / path, name))


def has(path: Path, name: str) -> bool:
    """Return True if a file exists and defines a name, such as `Class.method`."""
    if not path.is_file():
        return False
    body: list[ast.stmt] = ast.parse(path.read_text("utf-8")).body
    for part in name.split(".") if name else ():
        node = next((one for one in body if part in list_defined(one)), None)
        if node is None:
            return False
        body = getattr(node, "body", [])
    return True


def list_defined(node: ast.stmt) -> set[str]:
    """The names that a statement defines."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def test_every_file_and_function_on_the_page_exists() -> None:
    assert absent(PAGE.read_text("utf-8").replace("file.py:name", "").replace("tests/test_architecture.py", "")) == []


@pytest.mark.parametrize(
    "named", ["access/door.py", "access/gate.py:Gate.nothing", "access/gate.py:Nobody.admit", "access/gate.py:nothing"]
)
def test_a_file_or_function_that_does_not_exist_is_found(named: str) -> None:
    assert absent(f"`clock.py`, `access/gate.py:Gate.admit` and `{named}`") == [named if ":" in named else f"{named}:"]


@pytest.mark.parametrize("added", ["a span", "a retry rule", "a stored record", "a channel", "an approval rule"])
def test_the_page_says_where_something_is_added(added: str) -> None:
    (where,) = [where for what, where in tables(PAGE)["Where to add what"] if what == added]
    assert re.search(r"`[\w/]+\.py:\w+", where)


def test_the_layout_lists_every_folder_and_module_once() -> None:
    listed = [name for cell, _ in tables(PAGE)["Layout"] for name in re.findall(r"`([^`]+)`", cell)]
    folders = {f"{path.parent.name}/" for path in PACKAGE.glob("*/__init__.py")}
    modules = {path.name for path in PACKAGE.glob("*.py")} - {"__init__.py", "__main__.py"}
    assert sorted(listed) == sorted(folders | modules)


def test_the_page_has_the_requests_of_the_script() -> None:
    assert [row[0] for row in tables(PAGE)[REQUESTS_TABLE]] == list(REQUESTS)


@pytest.mark.parametrize("request_name", list(REQUESTS))
def test_a_request_runs_at_most_the_files_that_the_page_states(request_name: str) -> None:
    (row,) = [row for row in tables(PAGE)[REQUESTS_TABLE] if row[0] == request_name]
    counted = count(request_name)
    assert "pipeline.py" in counted.files or request_name.startswith("`host.deliver`")
    assert 0 < len(counted.files) <= int(row[1]), sorted(counted.files)
    assert 0 < len(counted.crossings) <= int(row[3])
