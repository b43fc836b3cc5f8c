"""`frontdesk.chat` is the one import root of authors of chat channels."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import frontdesk.chat

ROOT = Path(__file__).parents[2]
PAGES = ("docs/write-your-own/write-a-channel.md",)


@pytest.mark.parametrize("name", frontdesk.chat.__all__)
def test_every_name_can_be_imported(name: str) -> None:
    assert getattr(frontdesk.chat, name) is not None
    assert name in dir(frontdesk.chat)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="NoSuchName"):
        _ = frontdesk.chat.NoSuchName


def test_the_package_imports_nothing_until_a_name_is_used() -> None:
    code = "import sys, frontdesk.chat; print([m for m in sys.modules if m.startswith('frontdesk.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['frontdesk.chat']"


@pytest.mark.parametrize("page", PAGES)
def test_the_guide_imports_from_one_root(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    roots = set(re.findall(r"^from (frontdesk[.\w]*) import", text, re.MULTILINE))
    assert roots <= {"frontdesk", "frontdesk.chat", "frontdesk_testing"}
