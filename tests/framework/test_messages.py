"""What counts as something said, and the stamp that it gets."""

from typing import Any

import pytest
from agent_framework import Content, Message
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import InvalidRequestError
from frontdesk.framework.contents import as_messages, build_said, require_messages, stamp

IMAGE = Content.from_uri("https://example.com/a.png", media_type="image/png")
ANSWER = Message("assistant", ["earlier"])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("hello", [Message("user", ["hello"])]),
        ("", [Message("user", [""])]),
        (ANSWER, [ANSWER]),
        (IMAGE, [Message("user", [IMAGE])]),
        (["a", "b"], [Message("user", ["a"]), Message("user", ["b"])]),
        (("a", ANSWER, IMAGE), [Message("user", ["a"]), ANSWER, Message("user", [IMAGE])]),
    ],
)
def test_texts_messages_and_contents_are_said(value: Any, expected: list[Message]) -> None:
    found = as_messages(value)
    assert found is not None
    assert [message.to_dict() for message in found] == [message.to_dict() for message in expected]


def test_what_is_said_has_every_field_that_the_framework_would_give_it() -> None:
    short, long = build_said("hello", {"channel": "web"}, "msg_1"), Message("user", ["hello"])
    long.message_id, long.additional_properties = "msg_1", {"hosting": {"channel": "web"}}
    assert list(vars(short)) == list(vars(long))
    assert vars(short.contents[0]) == vars(long.contents[0])
    short.contents = long.contents = []
    assert vars(short) == vars(long)


def nest(depth: int) -> Any:
    value: Any = "deep"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [None, 1, True, b"bytes", bytearray(b"x"), {"a": 1}, [], (), [None], ["a", 1], [{}], nest(5000), {"a"}]
)
def test_anything_else_is_for_a_workflow(value: Any) -> None:
    assert as_messages(value) is None


def test_a_target_that_talks_needs_something_said() -> None:
    require_messages([Message("user", [""])])
    with pytest.raises(InvalidRequestError) as caught:
        require_messages([])
    assert caught.value.param == "input"


@given(st.text(), st.text())
def test_two_texts_are_two_messages_that_share_nothing(one: str, two: str) -> None:
    messages = [*(as_messages(one) or ()), *(as_messages(two) or ())]
    assert [message.text for message in messages] == [one, two]
    assert [message.to_dict() for message in messages] == [Message("user", [text]).to_dict() for text in (one, two)]
    messages[0].additional_properties["mine"] = True
    messages[0].contents[0].additional_properties["mine"] = True
    messages[0].contents.append(IMAGE)
    messages[0].contents[0].text = "changed"
    for untouched in (messages[1], *(as_messages(two) or ())):
        assert untouched.to_dict() == Message("user", [two]).to_dict()


def test_no_changeable_thing_is_shared_between_two_texts() -> None:
    first, second = [message for text in "ab" for message in as_messages(text) or ()]
    for one, two in ((first, second), (first.contents[0], second.contents[0])):
        for name, value in vars(one).items():
            if isinstance(value, (list, dict, set)):
                assert value is not vars(two)[name], name


def test_the_stamp_is_on_a_copy() -> None:
    original = Message("user", ["hello"], author_name="Ann", additional_properties={"kept": 1})
    before = original.to_dict()
    copy = stamp(original, {"channel": "web"}, "msg_1")
    assert original.to_dict() == before
    assert copy.additional_properties == {"kept": 1, "hosting": {"channel": "web"}}
    assert (copy.message_id, copy.author_name, copy.text, copy.role) == ("msg_1", "Ann", "hello", "user")
    assert isinstance(copy, Message)


def test_an_id_that_is_there_stays() -> None:
    named = Message("user", ["hello"], message_id="mine")
    assert stamp(named, {}, "msg_1").message_id == "mine"
    assert stamp(Message("user", ["hello"]), {}).message_id is None


def test_what_the_wire_says_about_hosting_is_overwritten() -> None:
    forged = Message("user", ["hello"], additional_properties={"hosting": {"channel": "forged"}})
    assert stamp(forged, {"channel": "web"}).additional_properties["hosting"] == {"channel": "web"}


def test_a_message_of_the_operators_own_kind_stays_one() -> None:
    class OwnMessage(Message):
        pass

    assert type(stamp(OwnMessage("user", ["hello"]), {})) is OwnMessage
