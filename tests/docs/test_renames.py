"""The page of renamed modules leads from every old module to modules that exist."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

PAGE = ROOT / "docs/internals/renames.md"
OLD_MODULES = (Path(__file__).parent / "old_modules.txt").read_text("utf-8").split()
"""The modules of the package at 63d22cdb."""
PACKAGES = (ROOT / "src/frontdesk", ROOT / "packages/frontdesk-testing/src/frontdesk_testing")


def read_lines(text: str) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the renamed folders, and the new modules of each old module; none for a removed one."""
    blocks = re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    folders, modules = ([line.split(" -> ") for line in block.splitlines()] for block in blocks)
    moved = [(old, [] if new == "removed" else new.split()) for olds, new in modules for old in olds.split()]
    assert len(dict(moved)) == len(moved)
    return dict(map(tuple, folders)), dict(moved)


def find_new(old: str, text: str) -> list[str]:
    """Return the new modules of an old one: those of its line, else by the longest renamed folder, else its name."""
    folders, moved = read_lines(text)
    if old in moved:
        return moved[old]
    parents = [folder for folder in folders if old == folder or old.startswith(f"{folder}.")]
    longest = max(parents, key=len, default="")
    return [folders[longest] + old.removeprefix(longest)] if longest else [old]


def exists(name: str) -> bool:
    """Return True if the package or the testing kit has this module."""
    package = PACKAGES[1] if name.startswith("frontdesk_testing") else PACKAGES[0]
    path = package.joinpath(*name.removeprefix("frontdesk_testing").removeprefix("frontdesk").strip(".").split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


@pytest.mark.parametrize("old", OLD_MODULES)
def test_an_old_module_leads_to_modules_that_exist(old: str) -> None:
    new = find_new(old, PAGE.read_text("utf-8"))
    assert [name for name in new if not exists(name)] == []
    assert new or old == "kit"  # the only one that is gone, because it was empty


def test_the_page_names_old_modules_only() -> None:
    folders, moved = read_lines(PAGE.read_text("utf-8"))
    assert len(set(OLD_MODULES)) == 717
    assert set(moved) <= set(OLD_MODULES)
    assert all(any(old == folder or old.startswith(f"{folder}.") for old in OLD_MODULES) for folder in folders)


def test_a_line_decides_before_a_folder_and_the_longest_folder_counts() -> None:
    text = "```text\na -> b\na.c -> d\n```\n```text\na.x a.y -> z\na.gone -> removed\n```\n"
    assert [find_new(old, text) for old in ("a.x", "a.gone", "a.c.e", "a.f", "ids")] == [
        ["z"],
        [],
        ["d.e"],
        ["b.f"],
        ["ids"],
    ]
    assert not exists("access.no_gate")
