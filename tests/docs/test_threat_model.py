"""The threat model: every row names something that stops the attack, and a test that answers it."""

import ast
import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, tables

PAGE = ROOT / "docs/why/threat-model.md"
ROWS = [(who, row) for who, rows in tables(PAGE).items() for row in rows]
# Whom the page has to speak of.
ATTACKERS = {
    "A stranger",
    "Another user",
    "Another tenant",
    "A member of a group",
    "A web page on another origin",
    "An impostor of the platform",
    "Malicious content",
    "The holder of a stolen code, link or token",
    "A mistake of the operator's",
    "What a stranger can cost",
    "What one caller can cost",
}


def _tests(path: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_")
    }


@pytest.mark.parametrize(("who", "row"), ROWS, ids=lambda one: one if isinstance(one, str) else one[0])
def test_a_row_names_a_test_that_exists(who: str, row: list[str]) -> None:
    _, stops, answered = row
    path, _, name = answered.strip("`").partition("::")
    name = name.rpartition("::")[2]
    found = ROOT / path
    assert found.is_file(), path
    assert name in _tests(found) if name else _tests(found), answered
    for file in re.findall(r"`([\w/]+\.py)`", stops):
        assert (ROOT / "src/frontdesk" / file).is_file(), file


def test_every_attacker_is_there() -> None:
    assert {who for who, _ in ROWS} == ATTACKERS


def test_the_page_is_short() -> None:
    assert len(PAGE.read_text("utf-8").splitlines()) < 250
