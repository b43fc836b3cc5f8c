"""The pages about writing a channel show channels that pass the contract, and these stay small."""

from tests.docs.pages import ROOT, Block, blocks

PAGE = ROOT / "docs/write-your-own/write-a-channel.md"
HTTP_PAGE = ROOT / "docs/write-your-own/write-an-http-channel.md"
CHANNEL = ROOT / "tests/chat/postbox/channel.py"
LETTERBOX = ROOT / "tests/chat/letterbox/channel.py"
LETTERBOX_TEST = ROOT / "tests/contracts/test_letterbox.py"
MAX_BOILERPLATE_LINES = 60


def outside(text: str) -> str:
    """Return a test with the imports that it has in a package of its author."""
    return text.replace("from tests.chat.letterbox.channel import", "from letterbox import")


def find_blocks(page: object, language: str) -> list[Block]:
    return [block for block in blocks(language) if block.page == page]


def test_the_page_shows_the_channel_that_is_tested() -> None:
    assert find_blocks(PAGE, "python")[0].text == LETTERBOX.read_text("utf-8")


def test_the_page_shows_the_fake_that_is_tested() -> None:
    assert outside(LETTERBOX_TEST.read_text("utf-8")) in [block.text for block in find_blocks(PAGE, "py")]


def test_a_fake_and_its_tests_have_few_lines() -> None:
    assert len(LETTERBOX_TEST.read_text("utf-8").splitlines()) <= MAX_BOILERPLATE_LINES


def test_the_channel_has_a_hundred_and_fifty_lines_at_most() -> None:
    assert len(CHANNEL.read_text("utf-8").splitlines()) <= 150


def test_the_page_about_protocols_shows_the_channel_that_is_tested() -> None:
    assert find_blocks(HTTP_PAGE, "python")[0].text == (ROOT / "tests/contracts/plain_channel.py").read_text("utf-8")


def test_the_page_about_protocols_shows_parts_of_the_larger_channel() -> None:
    lines = [line.strip() for line in (ROOT / "tests/contracts/plain_runs_channel.py").read_text("utf-8").splitlines()]
    shown = "\n".join(lines)
    parts = [
        block.text for block in find_blocks(HTTP_PAGE, "py") if block.text.startswith(("async def", "class Events"))
    ]
    assert len(parts) == 3
    for part in parts:
        assert "\n".join(line.strip() for line in part.splitlines()) in shown
