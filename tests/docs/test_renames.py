"""The page of old and new modules names every old module once, and modules that exist."""

import re

from tests.docs.pages import ROOT

PAGE = ROOT / "docs/internals/renames.md"
OLD_MODULES = 717
"""The modules of the package at 63d22cdb."""
PACKAGES = (ROOT / "src/frontdesk", ROOT / "packages/frontdesk-testing/src/frontdesk_testing")


def renames(text: str) -> list[tuple[str, list[str]]]:
    """The old modules in the order of the page, each with its new ones; none if it was removed."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("| `"):
            old, new = (re.findall(r"`([^`]+)`", cell) for cell in line.split("|")[1:3])
            if old[0].endswith(".*"):
                folders = old[0].removesuffix("*"), new[0].removesuffix("*")
                found += [(folders[0] + name, [folders[1] + name]) for name in old[1:]]
            else:
                found += [(name, new) for name in old]
    for unchanged in re.findall(r"^Unchanged: ([^.].*?)\.$", text, re.MULTILINE | re.DOTALL):
        found += [(name, [name]) for name in re.findall(r"`([^`]+)`", unchanged)]
    return found


def missing(text: str) -> list[str]:
    """The new modules of a page that don't exist."""
    return sorted({name for _, new in renames(text) for name in new if not exists(name)})


def exists(name: str) -> bool:
    """Return True if the package or the testing kit has this module."""
    package = PACKAGES[1] if name.startswith("frontdesk_testing") else PACKAGES[0]
    path = package.joinpath(*name.removeprefix("frontdesk_testing").removeprefix("frontdesk").strip(".").split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def test_every_old_module_is_on_the_page_once() -> None:
    old = [name for name, _ in renames(PAGE.read_text("utf-8"))]
    assert len(set(old)) == len(old) == OLD_MODULES


def test_every_new_module_exists() -> None:
    assert missing(PAGE.read_text("utf-8")) == []


def test_only_an_empty_module_has_no_new_one() -> None:
    assert [name for name, new in renames(PAGE.read_text("utf-8")) if not new] == ["kit"]


def test_a_new_module_that_does_not_exist_is_found() -> None:
    text = "| `a.b` | `access.no_gate` |\n| `kit.*`: `clock`, `dice` | `access.*` |\n\nUnchanged: `gone`, `ids`.\n"
    assert missing(text) == ["access.clock", "access.dice", "access.no_gate", "gone"]
