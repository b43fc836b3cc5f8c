"""Messages as activities: formats of platforms, sizes, and text that is not taken for markup."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from frontdesk.activity.render import (
    MAX_ACTIVITY_BYTES,
    card_body,
    final_activity,
    is_too_large,
    message_activity,
    stream_activity,
)
from frontdesk.activity.schema import Reference
from frontdesk.chat.messages import Button, Card, OutboundFile, OutboundMessage
from frontdesk.chat.rendering import Renderer
from frontdesk.markdown import CommonMark, parse, render

TEAMS = Reference(
    url="https://smba.trafficmanager.net/emea/",
    channel="msteams",
    conversation="a:1",
    bot="28:bot",
    user="29:ada",
    tenant="t",
    kind="personal",
)
APPROVE = Button(text="Approve", data="ok:1")
_RENDERER = Renderer(dialect=CommonMark(), limit=10_000, unit="utf16")
_MARKDOWN = MarkdownIt("commonmark").enable("strikethrough").enable("table")


def _reference(channel: str) -> Reference:
    return msgspec.structs.replace(TEAMS, channel=channel)


def test_from_and_recipient_are_swapped() -> None:
    activity = message_activity(OutboundMessage(text="hello"), TEAMS)
    assert activity["from"] == {"id": "28:bot"}
    assert activity["recipient"] == {"id": "29:ada"}
    assert activity["conversation"] == {"id": "a:1", "conversationType": "personal", "tenantId": "t"}
    assert (activity["text"], activity["textFormat"]) == ("hello", "markdown")


def test_the_words_of_a_card_are_in_the_card() -> None:
    activity = message_activity(OutboundMessage(text="Pay 5?", buttons=(APPROVE,)), TEAMS)
    assert "text" not in activity
    (attachment,) = activity["attachments"]
    card = attachment["content"]
    assert card["body"][0]["text"] == "Pay 5?"
    (action,) = card["actions"]
    assert (action["type"], action["data"]) == ("Action.Execute", {"frontdesk": "ok:1"})
    assert action["fallback"]["type"] == "Action.Submit"


@pytest.mark.parametrize(
    ("channel", "kind"),
    [("webchat", "card.adaptive"), ("directline", "card.adaptive"), ("slack", "card.hero"), ("telegram", "card.hero")],
)
def test_other_platforms_get_the_buttons_that_they_show(channel: str, kind: str) -> None:
    (attachment,) = message_activity(OutboundMessage(text="?", buttons=(APPROVE,)), _reference(channel))["attachments"]
    assert attachment["contentType"].endswith(kind)
    assert "Action.Execute" not in msgspec.json.encode(attachment).decode()


def test_teams_gets_images_and_no_other_files_in_an_activity() -> None:
    picture = OutboundFile(media_type="image/png", data="AAAA", name="a.png")
    other = OutboundFile(media_type="application/pdf", data="AAAA", name="a.pdf")
    assert len(message_activity(OutboundMessage(media=(picture, other)), TEAMS)["attachments"]) == 1
    assert len(message_activity(OutboundMessage(media=(picture, other)), _reference("webchat"))["attachments"]) == 2


def test_a_stream_has_a_sequence_until_its_end() -> None:
    first = stream_activity("a", TEAMS, sequence=1)
    assert first["entities"] == [{"type": "streaminfo", "streamType": "streaming", "streamSequence": 1}]
    assert stream_activity("ab", TEAMS, sequence=2, stream_id="s")["entities"][0]["streamId"] == "s"
    final = final_activity(OutboundMessage(text="abc"), TEAMS, "s")
    assert final["type"] == "message"
    assert final["entities"] == [{"type": "streaminfo", "streamType": "final", "streamId": "s"}]


def test_a_click_is_answered_with_a_card_or_a_text() -> None:
    card = msgspec.json.decode(card_body(Card(card="done")))
    assert (card["statusCode"], card["type"]) == (200, "application/vnd.microsoft.card.adaptive")
    text = msgspec.json.decode(card_body(Card(notice="not yours")))
    assert (text["type"], text["value"]) == ("application/vnd.microsoft.activity.message", "not yours")


@pytest.mark.parametrize("letter", ["x", "ä", "😀", '"', "\\", "\n"])
def test_the_longest_message_fits(letter: str) -> None:
    for message in _RENDERER.markdown(letter * 30_000) + _RENDERER.plain(letter * 30_000):
        for reference in (TEAMS, _reference("slack")):
            activity = message_activity(msgspec.structs.replace(message, buttons=(APPROVE,)), reference)
            assert not is_too_large(activity)
            assert len(msgspec.json.encode(activity).decode().encode("utf-16-le")) <= MAX_ACTIVITY_BYTES


def _shown(text: str) -> str:
    """Return the text that a renderer of Markdown shows. Fail if there is any markup."""
    lines: list[str] = []
    for token in _MARKDOWN.parse(text):
        assert token.type in ("paragraph_open", "inline", "paragraph_close"), (token.type, text)
        for child in token.children or ():
            assert child.type in ("text", "softbreak", "hardbreak", "text_special"), (child.type, text)
            lines.append("\n" if child.type.endswith("break") else child.content)
        if token.type == "paragraph_close":
            lines.append("\n\n")
    return " ".join("".join(lines).replace("\u200b", "").split())


@given(st.text(alphabet="ab1. -+=*_`#>[]()!<&~|\\:/\n", max_size=60))
def test_a_text_that_is_no_markdown_is_shown_as_it_is(text: str) -> None:
    for message in _RENDERER.plain(text):
        if not message.text.startswith("    "):
            assert _shown(message.text) == " ".join(message.text and text.split())


@given(st.text(alphabet="ab *_`#>[]()!<&~|\\\n-1.", max_size=60))
def test_markdown_is_written_without_pictures_and_html(text: str) -> None:
    for token in _MARKDOWN.parse(render(parse(text), CommonMark()).text):
        assert token.type != "html_block"
        assert not any(child.type in ("image", "html_inline") for child in token.children or ())


def test_what_the_agent_has_marked_is_marked() -> None:
    text = "# Title\n\nsome **bold** and _soft_ `code` [link](https://example.com/a_b)\n\n```py\nx < 1\n```"
    shown = _MARKDOWN.render(render(parse(text), CommonMark()).text)
    for piece in ("<strong>Title</strong>", "<strong>bold</strong>", "<em>soft</em>", "<code>code</code>"):
        assert piece in shown
    assert '<a href="https://example.com/a_b">link</a>' in shown
    assert 'class="language-py">x &lt; 1' in shown
