"""What the page about the fake Telegram says is what there is."""

import re
from dataclasses import fields

from frontdesk_testing.telegram import FakeTelegram, FloodLimits
from frontdesk_testing.telegram.api import ELSEWHERE, METHODS
from frontdesk_testing.telegram.page.routes import PeoplePage
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/reference/fake-telegram.md").read_text("utf-8")


def test_every_method_that_is_acted_on_is_listed() -> None:
    section = PAGE.partition("<!-- methods -->")[2].partition("<!-- end -->")[0]
    assert re.findall(r"`(\w+)`", section) == list(METHODS)


def test_parameters_that_lead_elsewhere_are_listed() -> None:
    assert all(f"`{name}`" in PAGE for name in ELSEWHERE)


def test_every_call_of_the_tables_is_there() -> None:
    rows = re.findall(r"^\| (`.*?`(?:, `.*?`)*) \|", PAGE.partition("## What people do")[2], re.MULTILINE)
    names = {name for row in rows for name in re.findall(r"`(\w+)", row)}
    assert len(names) > 25
    assert all(callable(getattr(FakeTelegram, name)) for name in names)


def test_every_action_of_the_page_is_named() -> None:
    section = PAGE.partition("What the page does")[2].partition("\n## ")[0]
    assert all(f"`{action}`" in section for action in PeoplePage(FakeTelegram())._actions)


def test_the_limits_are_those_of_the_platform() -> None:
    limits = FloodLimits()
    assert {field.name: getattr(limits, field.name) for field in fields(limits)} == {
        "private": (1, 1.0),
        "group": (20, 60.0),
        "overall": (30, 1.0),
        "webhook": (1, 1.0),
    }
