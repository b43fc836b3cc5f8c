"""From results to messages."""

from typing import Any

import pytest
from agent_framework import AgentResponse, Content, Message
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.chat.i18n.wording import ENGLISH_WORDING
from frontdesk.chat.questions import find_question, read_button
from frontdesk.errors import ForbiddenError, LinkRequiredError, NotFoundError
from frontdesk.models.approval import PendingApproval
from tests.testing.messages.samples import get_components


def response(*contents: Content | str, role: Any = "assistant") -> AgentResponse[Any]:
    told = [Content.from_text(one) if isinstance(one, str) else one for one in contents]
    return AgentResponse(messages=[Message(role, told)])


def build_question(approval_id: str, **arguments: Any) -> Content:
    call = Content.from_function_call("call-1", "pay", arguments=arguments)
    return Content.from_function_approval_request(id=approval_id, function_call=call)


def question(approval_id: str) -> PendingApproval:
    return PendingApproval(
        approval_id=approval_id,
        owner="o",
        session_id="s",
        run_id="r",
        tool="pay",
        digest="",
        request=None,
        created_at=1.0,
    )


@given(st.text(), st.integers(1, 50))
def test_a_text_is_told_whole(text: str, limit: int) -> None:
    parts = get_components(response(text), limit)
    assert all(0 < len(one.text) <= limit and one.text.strip() for one in parts)
    assert "".join(one.text for one in parts).split() == text.split() or limit < 50
    assert "".join("".join(one.text for one in parts).split()) == "".join(text.split())


def test_pieces_of_one_message_are_one_text() -> None:
    assert [one.text for one in get_components(response("Good ", "day."), 100)] == ["Good day."]


def test_only_the_assistant_speaks() -> None:
    assert get_components(response("the result of a tool", role="tool"), 100) == []
    assert get_components(response(Content.from_function_call("c", "pay", arguments={"a": 1})), 100) == []
    assert get_components(response(Content.from_text_reasoning(text="hm")), 100) == []


def test_pictures_and_links() -> None:
    picture = Content.from_uri("data:image/png;base64,aGk=", media_type="image/png")
    link = Content.from_uri("https://example.com/a.png", media_type="image/png")
    first, second, third = get_components(response("look:", picture, link), 100)
    assert first.text == "look:"
    assert (second.media[0].media_type, second.media[0].data) == ("image/png", "aGk=")
    assert third.text == "https://example.com/a.png"


def press(data: str, waiting: list[PendingApproval]) -> tuple[PendingApproval, bool] | None:
    name, approved = read_button(data)
    found = find_question(name, waiting)
    return None if found is None else (found, approved)


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_button_answers_its_own_question_only(one: str, other: str) -> None:
    (part,) = get_components(response(build_question(one, amount=5)), 4096)
    approve, reject = part.buttons
    assert max(len(button.data.encode()) for button in part.buttons) <= 64
    waiting = [question(other), question(one)]
    assert press(approve.data, waiting) == ((question(one)), True)
    assert press(reject.data, waiting) == ((question(one)), False)
    if one != other:
        assert press(approve.data, [question(other)]) is None


@given(st.text())
def test_made_up_buttons_answer_nothing(data: str) -> None:
    assert press(data, [question("call-1")]) is None


@pytest.mark.parametrize(
    ("error", "group", "here", "direct"),
    [
        (ForbiddenError("Long.", group_message="Short."), True, "Short.", "Long."),
        (ForbiddenError("Long.", group_message="Short."), False, "Long.", ""),
        (LinkRequiredError(), True, LinkRequiredError.group_message, "Link your account first."),
        (NotFoundError("Gone."), True, "Gone.", ""),
    ],
)
def test_a_refusal(error: Any, group: bool, here: str, direct: str) -> None:
    assert ENGLISH_WORDING.refusal(error, group=group) == (here, direct)
