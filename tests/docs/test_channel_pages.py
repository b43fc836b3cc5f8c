"""The reference page of every channel is made by one template."""

import re
from pathlib import Path

import pytest

from frontdesk.channels.telegram import TelegramChannel
from frontdesk.channels.telegram.render import CAPTION_LIMIT, TEXT_LIMIT, TOAST_LIMIT
from frontdesk.channels.web import WebChatChannel
from frontdesk.channels.web.config import FeedLimits
from frontdesk.channels.web.mailbox import MAX_TITLE_LENGTH
from frontdesk.channels.web.theme import MAX_LOGO_BYTES
from frontdesk.chat.config import ChatConfig
from frontdesk.chat.media import MediaLimits
from frontdesk.framework.notes import MAX_CITATIONS, MAX_DETAIL_LENGTH, MAX_TOOLS
from frontdesk.framework.request_forms import MAX_CHOICES, MAX_FIELDS
from tests.docs.pages import ROOT, prose_of, tables
from tests.docs.test_reference import signature, spans

REFERENCE = ROOT / "docs/reference"
PAGES = {
    "a2a": "A2AChannel",
    "agui": "AGUIChannel",
    "activity": "ActivityChannel",
    "chat-completions": "ChatCompletionsChannel",
    "conversations": "ConversationsChannel",
    "invocations": "InvocationsChannel",
    "mcp": "MCPChannel",
    "responses": "ResponsesChannel",
    "telegram": "TelegramChannel",
    "web-chat": "WebChatChannel",
}
WEB, TELEGRAM = REFERENCE / "web-chat.md", REFERENCE / "telegram.md"
MIB = 1024 * 1024


def headings(page: Path) -> list[str]:
    return re.findall(r"^## (.+)$", prose_of(page), re.MULTILINE)


def test_every_channel_has_a_page() -> None:
    channels = {path.parent.name for path in (ROOT / "src/frontdesk/channels").glob("*/channel.py")}
    assert {name.removesuffix("-chat").replace("-", "_") for name in PAGES} == channels


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_the_headings_of_the_template_in_their_order(name: str) -> None:
    page = REFERENCE / f"{name}.md"
    template = ["Routes", PAGES[name], "What goes in", "What comes out", "Errors", "Limits"]
    found = headings(page)
    assert [heading for heading in found if heading in template] == template
    # What is special to a channel stands behind what all have; a second table of settings belongs to the first.
    own = [heading for heading in found[: found.index("What comes out")] if heading not in template]
    assert all(heading.endswith("Config") for heading in own)
    opening = prose_of(page).partition("## ")[0]
    assert f"`{PAGES[name]}`" in opening
    assert all(heading in tables(page) for heading in ("Routes", PAGES[name], "What goes in", "Errors", "Limits"))


def test_contributors_are_told_the_template() -> None:
    page = ROOT / "docs/write-your-own/add-to-frontdesk.md"
    rows = [heading for heading, _ in tables(page)["The reference page"]]
    expected = ["the title", "Routes", "the name of the class", "What goes in", "What comes out", "Errors", "Limits"]
    assert [heading for heading in rows if heading in expected] == expected


def test_every_code_of_the_web_chat_is_documented() -> None:
    documented = {code for _, codes in tables(WEB)["Errors"] for code in spans(codes)}
    source = "".join(path.read_text("utf-8") for path in (ROOT / "src/frontdesk/channels/web").glob("*.py"))
    # These two are on no response: the code of a notice, and of a dead letter.
    assert set(re.findall(r'code="(\w+)"', source)) - {"failed", "no_conversation"} <= documented


def test_the_limits_of_the_web_chat_are_those_of_the_code() -> None:
    rows = {what: much for what, much, _ in tables(WEB)["Limits"]}
    given = {name: parameter.default for name, parameter in signature(WebChatChannel).items()}
    assert rows == {
        "a message": f"{given['max_text']} characters",
        "files of a message": f"{given['max_files']}, and {given['max_file_bytes'] // MIB} MiB together",
        "conversations of a visitor, and their branches": f"{given['max_conversations']}",
        "a title": f"{MAX_TITLE_LENGTH} characters",
        "tools of an answer": (
            f"the last {MAX_TOOLS}, with {MAX_DETAIL_LENGTH} characters of arguments and of a result each"
        ),
        "sources of an answer": f"the first {MAX_CITATIONS}",
        "a form": f"{MAX_FIELDS} fields, and {MAX_CHOICES} choices of each",
        "open pages": f"{FeedLimits().max_open}, and {FeedLimits().max_open_per_caller} of a visitor",
        "the time for the body": f"{given['body_timeout']:g} s",
        "the logo": f"{MAX_LOGO_BYTES // 1024} KiB",
        "how long a message is kept": f"{given['keep_days']:g} days after it was last changed",
    }


def test_the_limits_of_telegram_are_those_of_the_code() -> None:
    rows = {what: re.findall(r"\d+", much) for what, much, _ in tables(TELEGRAM)["Limits"]}
    media, config, terms = MediaLimits(), ChatConfig(), TelegramChannel.push_terms
    assert rows["the text of a message"][0] == str(TEXT_LIMIT)
    assert rows["the text under a file"][0] == str(CAPTION_LIMIT)
    assert rows["the pop-up of a button"] == [str(TOAST_LIMIT)]
    assert rows["sent messages"] == [f"{terms.per_second:g}", f"{(terms.per_group or 0) * 60:g}"]
    assert rows["files of an incoming message"] == [str(media.max_files), str(media.max_bytes // MIB)]
    assert rows["a sent file"] == [str((media.max_sent_bytes or 0) // MIB)]
    assert rows["the body of an update"] == [str(config.max_body_bytes // MIB), f"{config.body_timeout:g}"]
