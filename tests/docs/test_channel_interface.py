"""The reference of the channel interface is generated from the code, and short."""

from frontdesk.interfaces.channel import Channel, ChannelContext
from frontdesk.interfaces.context_groups import DeprecatedCall, DeprecatedCalls
from tools.channel_reference import MAX_WORDS, PAGE, count_words, page


def test_the_page_is_the_one_that_the_code_makes() -> None:
    assert PAGE.read_text("utf-8") == page(), "Run `python -m tools.channel_reference`."


def test_the_page_can_be_read_in_ten_minutes() -> None:
    assert 0 < count_words(page()) <= MAX_WORDS


def test_the_page_has_every_attribute_and_every_call() -> None:
    text = page()
    for name in (*Channel.__annotations__, *ChannelContext.__abstractmethods__):
        assert f"`{name}" in text or name == "abilities", name
    for old in vars(DeprecatedCalls).values():
        if isinstance(old, DeprecatedCall):
            group = text.partition(f"### context.{old.group}\n")[2].partition("\n#")[0]
            assert f"- `{old.new_name}(" in group, old.new_name
