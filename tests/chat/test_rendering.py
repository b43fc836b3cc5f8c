"""From results to messages in each dialect: within the limits, with all words, and with what answers a question."""

import base64
from typing import Any

import pytest
from agent_framework import AgentResponse, Content, Message
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.chat.i18n.texts import Texts
from frontdesk.chat.i18n.wording import Wording
from frontdesk.chat.questions import read_button, read_words
from frontdesk.chat.rendering import Renderer
from frontdesk.markdown import Dialect, Entities, Mrkdwn, Plain, Unit
from frontdesk.markdown.layout import length
from frontdesk.models.reply import Reply, ReplyButton

DIALECTS: list[Dialect | None] = [None, Plain(), Entities(), Mrkdwn()]


def response(*contents: Content) -> AgentResponse[Any]:
    return AgentResponse(messages=[Message("assistant", list(contents))])


def build_question(approval_id: str) -> Content:
    call = Content.from_function_call("call-1", "pay", arguments={"note": "*five* <&>"})
    return Content.from_function_approval_request(id=approval_id, function_call=call)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: type(dialect).__name__)
@given(st.text(max_size=300), st.integers(20, 80), st.sampled_from(["characters", "utf16"]))
def test_any_answer_fits(dialect: Dialect | None, text: str, limit: int, unit: Unit) -> None:
    messages = Renderer(dialect=dialect, limit=limit, unit=unit).answer(text)
    assert all(length(message.text, unit) <= limit and message.text.strip() for message in messages)


@pytest.mark.parametrize("dialect", [None, Plain(), Entities()], ids=lambda dialect: type(dialect).__name__)
@given(st.lists(st.text("ab*_`#>- []()", min_size=1, max_size=12), max_size=12).map("\n".join))
def test_what_is_said_in_plain_text_is_shown_as_it_is(dialect: Dialect | None, text: str) -> None:
    messages = Renderer(dialect=dialect, limit=1_000).plain(text)
    assert "".join("".join(message.text for message in messages).split()) == "".join(text.split())
    assert not any(message.entities for message in messages)


def test_markup_in_plain_text_is_escaped() -> None:
    (message,) = Renderer(dialect=Mrkdwn(), limit=100).plain("a < b & *c*")
    assert "&lt;" in message.text
    assert "&amp;" in message.text


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: type(dialect).__name__)
def test_a_question_shows_its_arguments_and_two_buttons(dialect: Dialect | None) -> None:
    (message,) = Renderer(dialect=dialect, limit=1_000).answer(response(build_question("apr_1")))
    assert "pay" in message.text
    assert "five" in message.text
    assert [read_button(button.data) for button in message.buttons] == [("apr_1", True), ("apr_1", False)]


@given(st.from_regex(r"apr_[a-z0-9]{1,40}", fullmatch=True))
def test_without_buttons_the_words_of_a_question_answer_it(approval_id: str) -> None:
    messages = Renderer(dialect=None, limit=1_000, has_buttons=False).answer(response(build_question(approval_id)))
    assert not any(message.buttons for message in messages)
    assert f"yes {approval_id}" in messages[-1].text
    assert f"no {approval_id}" in messages[-1].text
    assert read_words(f"yes {approval_id}") == f"ok:{approval_id}"
    assert read_words(f" No  {approval_id}\n") == f"no:{approval_id}"


@given(st.text())
def test_other_words_answer_nothing(text: str) -> None:
    assert read_words(text) is None or "apr_" in text.lower()


def test_buttons_of_a_reply_are_under_its_last_part() -> None:
    reply = Reply("one two " * 30, buttons=(ReplyButton("Go", "go"),))
    *before, last = Renderer(dialect=None, limit=100).reply(reply)
    assert before
    assert [message.buttons for message in before] == [()] * len(before)
    assert [button.data for button in last.buttons] == ["go"]
    assert not any(message.buttons for message in Renderer(dialect=None, limit=100, has_buttons=False).reply(reply))


@pytest.mark.parametrize(("size", "sent"), [(9, True), (10, True), (11, False)])
def test_of_a_file_that_is_too_large_only_the_name_is_sent(size: int, sent: bool) -> None:
    uri = f"data:text/plain;base64,{base64.b64encode(b'x' * size).decode()}"
    content = Content.from_uri(uri, media_type="text/plain", additional_properties={"filename": "a.txt"})
    (message,) = Renderer(dialect=None, limit=100, max_sent_bytes=10).answer(response(content))
    assert bool(message.media) == sent
    assert sent or message.text == "a.txt is too large to be sent here."


def build_cited(*annotations: Any, text: str = "So it is.") -> AgentResponse[Any]:
    made: Any = [{"type": "citation", **annotation} for annotation in annotations]
    return response(Content.from_text(text, annotations=made))


PAGE = {"title": "A *page*\nof [ours]", "url": "https://a.example/b_c"}
FILE = {"title": "rules.pdf", "file_id": "file_1"}


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        (None, "So it is.\n\nSources:\n1. A *page* of [ours] https://a.example/b_c\n2. rules.pdf"),
        (Plain(), "So it is.\n\nSources:\n\n1. A *page* of [ours] (https://a.example/b_c)\n2. rules.pdf"),
        (Entities(), "So it is.\n\nSources:\n\n1. A *page* of [ours]\n2. rules.pdf"),
    ],
)
def test_sources_are_listed_under_an_answer(dialect: Dialect | None, expected: str) -> None:
    (message,) = Renderer(dialect=dialect, limit=1_000).answer(build_cited(PAGE, FILE, PAGE))
    assert message.text == expected
    links = [entity.url for entity in message.entities if entity.type == "text_link"]
    assert links == ([PAGE["url"]] if isinstance(dialect, Entities) else [])


@pytest.mark.parametrize(
    ("annotations", "text"),
    [
        ([], "So it is."),
        ([{"url": "https://a.example"}], "See https://a.example for more."),
        ([{"title": " "}, {"url": 5, "title": None}, {"url": "https://a b"}], "So it is."),
    ],
)
def test_an_answer_without_other_sources_has_no_list(annotations: list[Any], text: str) -> None:
    (message,) = Renderer(dialect=None, limit=1_000).answer(build_cited(*annotations, text=text))
    assert message.text == text


def test_sources_are_bounded_and_in_the_language_of_the_person() -> None:
    many = [{"title": "x" * 500, "url": f"https://a.example/{number}"} for number in range(50)]
    german = Wording(Texts(), "de")
    (message,) = Renderer(dialect=Entities(), limit=9_000, wording=german).answer(build_cited(*many))
    assert "Quellen:" in message.text
    assert len(message.text.splitlines()) == 24
    assert max(map(len, message.text.splitlines())) < 130
