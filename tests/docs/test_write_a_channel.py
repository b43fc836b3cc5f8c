"""The pages about writing a channel show channels that pass the contract, and these stay small."""

from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs/write-your-own/write-a-channel.md"
CHANNEL = ROOT / "tests/chat/postbox/channel.py"


def test_the_page_shows_the_channel_that_is_tested() -> None:
    first = next(block for block in blocks("python") if block.page == PAGE)
    assert first.text == CHANNEL.read_text("utf-8")


def test_the_channel_has_a_hundred_and_fifty_lines_at_most() -> None:
    assert len(CHANNEL.read_text("utf-8").splitlines()) <= 150


def test_the_page_about_protocols_shows_the_channel_that_is_tested() -> None:
    page = ROOT / "docs/write-your-own/write-an-http-channel.md"
    first = next(block for block in blocks("python") if block.page == page)
    assert first.text == (ROOT / "tests/contracts/plain_channel.py").read_text("utf-8")
