"""The threat model: every row names a test that exists, and every number is a limit of the code or was measured."""

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, tables
from tests.figures.rows import PAGE, TABLES, Row, blocks, render, without_blocks

TEXT = PAGE.read_text("utf-8")
RESULTS = json.loads((ROOT / "tests/figures/results.json").read_text("utf-8"))
ROWS = [(title, row) for title, rows in tables(PAGE).items() for row in rows]
COSTS = [row for rows in TABLES.values() for row in rows]
TITLES = {
    "Unauthenticated callers",
    "Other users",
    "Other tenants",
    "Group members",
    "Web pages on other origins",
    "Forged platform events",
    "Malicious content",
    "Stolen codes, links and tokens",
    "Operator mistakes",
    "Cost of unauthenticated callers",
    "Cost of one authenticated caller",
}
NUMBER = re.compile(r"`(\d+)`")
"""A status, a close code or a file mode: the test of its row has to name it."""
FIGURE = re.compile(r"\d|\b((half|third|quarter) of|percent|dozens?|hundreds?|thousands?|millions?)\b", re.IGNORECASE)
"""A number, or a share or number that is written as a word."""


@cache
def _tests(path: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_")
    }


@pytest.mark.parametrize(("title", "row"), ROWS, ids=lambda one: one if isinstance(one, str) else one[0])
def test_a_row_names_files_and_tests_that_exist(title: str, row: list[str]) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::([\w:]+)`", row[-1])
    assert len(named) == row[-1].count("`") / 2 > 0
    for path, name in named:
        assert name.rpartition("::")[2] in _tests(ROOT / path), name
    for file in re.findall(r"`([\w/]+\.py)`", row[1]):
        assert (ROOT / "src/frontdesk" / file).is_file(), file


@pytest.mark.parametrize(("title", "row"), ROWS, ids=lambda one: one if isinstance(one, str) else one[0])
def test_the_test_of_a_row_checks_its_status(title: str, row: list[str]) -> None:
    source = "".join((ROOT / path).read_text("utf-8") for path in re.findall(r"`(tests/[\w/]+\.py)", row[-1]))
    for number in NUMBER.findall(row[1]):
        assert number.lstrip("0") in source, number


def find_unexplained_numbers(text: str) -> list[str]:
    """Return the lines of a text with a number or a share of its own, outside code and placeholders."""
    return [line for line in text.splitlines() if FIGURE.search(re.sub(r"`[^`]*`|{\w+}", "", line))]


def test_no_number_is_written_by_hand() -> None:
    written = without_blocks(TEXT)
    assert find_unexplained_numbers(written) == []
    prose = "\n".join(line for line in written.splitlines() if not line.startswith("|"))
    assert NUMBER.findall(prose) == []
    assert [one for row in COSTS for one in find_unexplained_numbers(f"{row.sends}\n{row.limit}")] == []


@pytest.mark.parametrize("text", ["closed after 10 s", "{count} of 200 places", "`400` after 1.2 s", "Half of {all}"])
def test_a_number_of_its_own_is_found(text: str) -> None:
    assert find_unexplained_numbers(f"none\n{text}") == [text]


def test_limits_and_measurements_are_those_of_the_code_and_of_the_results() -> None:
    """After a changed default, run `make figures`."""
    assert sorted(blocks(TEXT)) == sorted([*TABLES, "setup"])
    assert render(TEXT, RESULTS) == TEXT


@pytest.mark.parametrize("row", [row for row in COSTS if row.attack], ids=lambda row: row.name)
def test_an_attack_was_measured_with_its_present_limits(row: Row) -> None:
    assert RESULTS[row.name]["values"] == row.values, f'run make figures ARGS="{row.name}"'


def test_only_attacks_of_the_page_have_results() -> None:
    assert list(RESULTS) == [row.name for row in COSTS if row.attack]


def test_every_attacker_is_there() -> None:
    assert {title for title, _ in ROWS} == TITLES


def test_the_page_is_short() -> None:
    assert len(TEXT.splitlines()) < 280
