"""The page about writing a channel shows the channel that passes the contract, and it stays small."""

from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs/how-to/write-a-channel.md"
CHANNEL = ROOT / "tests/kit/chat/postbox/channel.py"


def test_the_page_shows_the_channel_that_is_tested() -> None:
    first = next(block for block in blocks("python") if block.page == PAGE)
    assert first.text == CHANNEL.read_text("utf-8")


def test_the_channel_has_two_hundred_lines_at_most() -> None:
    assert len(CHANNEL.read_text("utf-8").splitlines()) <= 200
