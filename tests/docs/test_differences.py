"""The page on differences: what its left columns say is tried, and ours differs as the row says (AUDIT 285)."""

import inspect
from pathlib import Path
from typing import Any

import pytest

from tests.docs.differences.channels import CHANNELS
from tests.docs.differences.hooks import ACCESS, HOOKS
from tests.docs.differences.host import HOST, LATER
from tests.docs.pages import ROOT
from tests.docs.test_reference import tables

PAGE = ROOT / "docs/internals/differences.md"
TRIED = {
    "The host": HOST,
    "Channels": CHANNELS,
    "Hooks and sessions": HOOKS,
    "Who may come in": ACCESS,
    "Runs later": LATER,
}
ROWS = [(title, row) for title, rows in TRIED.items() for row in rows]


def test_audit_285_every_row_is_tried_and_no_other() -> None:
    written = {title: [row[0] for row in rows] for title, rows in tables(PAGE).items()}
    assert written == {title: list(rows) for title, rows in TRIED.items()}


@pytest.mark.parametrize(("title", "row"), ROWS, ids=[row for _, row in ROWS])
async def test_audit_285_the_design_differs_as_the_row_says(title: str, row: str, tmp_path: Path) -> None:
    trial: Any = TRIED[title][row]
    needs = {"tmp_path": tmp_path} if "tmp_path" in inspect.signature(trial).parameters else {}
    done = trial(**needs)
    if inspect.isawaitable(done):
        await done


DENIED = ("openapi_spec", "ChannelSession.attributes", "`reply` with buttons", "a linker with a lifecycle")


@pytest.mark.parametrize("row", DENIED)
def test_audit_285_the_page_denied_what_the_code_does(row: str) -> None:
    assert row not in PAGE.read_text("utf-8")


def test_audit_49_and_test_audit_282_are_rows() -> None:
    text = PAGE.read_text("utf-8")
    assert "its record has `background` and `instructions`" in text
    assert "`host.authorize(..., allowlist=None)` is the open rule" in text
