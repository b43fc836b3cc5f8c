"""From messages of a platform to requests: whose they are, what they mean, and which are none of ours."""

from typing import Any

import msgspec
import pytest
from agent_framework import Message
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.chat.inbound import FILES, InboundRules, command_in, to_item, without_mentions
from frontdesk.chat.messages import (
    BotIdentity,
    Click,
    Command,
    Destination,
    InboundFile,
    InboundMessage,
    Quote,
    Sender,
)
from frontdesk.models.delivery import InboxItem
from frontdesk.serialization.codec import from_json, to_json

BOT = BotIdentity(id="bot", name="desk")
ADA = Sender(id="u-ada", name="Ada")
DIRECT, GROUP = Destination(chat_id="d"), Destination(chat_id="g", thread_id="t", kind="group")


def message(text: str = "hello", place: Destination = DIRECT, **fields: Any) -> InboundMessage:
    return InboundMessage(**{"event_id": "e", "at": 1.0, "sender": ADA, "place": place, "text": text, **fields})


def item(said: InboundMessage, **rules: Any) -> InboxItem | None:
    return to_item(said, InboundRules(channel="chat", **rules), BOT, now=5.0, payload=lambda: {"raw": True})


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
MESSAGES = st.builds(
    InboundMessage,
    event_id=TEXTS,
    at=st.floats(0, 1e9),
    sender=st.builds(Sender, id=TEXTS, name=TEXTS, locale=TEXTS, is_bot=st.booleans(), attributes=st.just({})),
    place=st.builds(Destination, chat_id=TEXTS, thread_id=TEXTS, kind=st.sampled_from(["direct", "group"])),
    text=TEXTS | st.from_regex(r"/\w{1,8}(@\w{1,8})?( \w+)?", fullmatch=True),
    mentioned=st.booleans(),
    command=st.none() | st.builds(Command, name=TEXTS, args=TEXTS, bot=st.sampled_from(["", "desk", "other"])),
    click=st.none() | st.builds(Click, data=TEXTS, callback_id=TEXTS),
    media=st.lists(st.builds(InboundFile, media_type=TEXTS, data=TEXTS, file_id=TEXTS), max_size=2).map(tuple),
    quote=st.none() | st.builds(Quote, text=TEXTS),
    edited=st.booleans(),
    album=TEXTS,
    attributes=st.just({}),
)
RULES: Any = st.sampled_from(["mention_only", "command_only", "mention_or_command", "all"])


@given(MESSAGES, RULES, st.booleans(), st.booleans())
def test_an_item_is_the_senders_and_has_a_json_form(
    said: InboundMessage, rule: Any, has_buttons: bool, hooked: bool
) -> None:
    made = item(said, accept_in_group=rule, has_buttons=has_buttons, hooked=hooked)
    if made is None:
        return
    assert not said.sender.is_bot
    assert made.caller.identity.native_id == said.sender.id
    assert made.request.identity == made.caller.identity
    assert Destination.from_conversation_id(made.conversation_id, kind=said.place.kind) == said.place
    assert made.request.group == (said.place.kind == "group")
    assert made.payload == ({"raw": True} if hooked else None)
    assert to_json(from_json(to_json(made))) == to_json(made)


@pytest.mark.parametrize(
    ("fields", "rules", "taken"),
    [
        ({}, {}, True),
        ({"place": GROUP}, {}, False),
        ({"place": GROUP, "mentioned": True}, {}, True),
        ({"place": GROUP}, {"accept_in_group": "all"}, True),
        ({"place": GROUP, "text": "/new"}, {}, False),
        ({"place": GROUP, "text": "/new@desk"}, {}, True),
        ({"place": GROUP, "text": "/new"}, {"accept_in_group": "command_only"}, True),
        ({"text": "/new@other"}, {"accept_in_group": "all"}, False),
        ({"command": Command(name="new", bot="other")}, {}, False),
        ({"edited": True}, {}, False),
        ({"edited": True}, {"on_edit": "answer"}, True),
        ({"sender": Sender(id="b", is_bot=True)}, {"accept_in_group": "all"}, False),
        ({"place": GROUP, "click": Click(data="ok:1")}, {}, True),
    ],
)
def test_what_is_meant_for_us(fields: dict[str, Any], rules: dict[str, Any], taken: bool) -> None:
    assert (item(message(**fields), **rules) is not None) == taken


@pytest.mark.parametrize(
    ("fields", "rules", "addressed"),
    [
        ({}, {}, False),
        ({"mentioned": True}, {}, True),
        ({}, {"accept_in_group": "mention_or_command"}, False),
        ({}, {"accept_in_group": "all"}, True),
        ({"text": "yes apr_1"}, {"has_buttons": False}, False),
        ({"place": DIRECT}, {}, True),
        # No message of such a group is answered, only commands.
        ({}, {"accept_in_group": "command_only"}, None),
        ({}, {"has_albums": False}, None),
        ({"edited": True}, {"on_edit": "answer"}, None),
        ({"text": "/new"}, {}, None),
        ({"text": "/new@other"}, {}, None),
        ({"sender": Sender(id="b", is_bot=True)}, {}, None),
    ],
)
def test_a_part_of_an_album_is_taken_for_the_part_that_is_addressed(
    fields: dict[str, Any], rules: dict[str, Any], addressed: bool | None
) -> None:
    made = item(message(**{"place": GROUP, "album": "a", **fields}), **rules)
    assert (None if made is None else made.addressed) == addressed
    assert made is None or (made.is_message and made.album_id == "a")


def test_a_command_that_the_platform_names_is_one() -> None:
    made = item(message("whatever", command=Command(name="new", args="now")))
    assert made is not None
    attributes = made.request.attributes
    assert (made.request.operation, attributes["command"], made.request.input) == ("command", "new", "now")
    assert attributes["event"] == {"raw": True}


@pytest.mark.parametrize(
    ("text", "data"), [("yes apr_1", "ok:apr_1"), ("NO apr_1", "no:apr_1"), ("yes", None), ("no thanks", None)]
)
def test_words_answer_a_question_where_there_are_no_buttons(text: str, data: str | None) -> None:
    made, other = item(message(text), has_buttons=False), item(message(text))
    assert made is not None
    assert other is not None
    assert made.request.attributes.get("data") == data
    assert (made.request.operation == "approval") == (data is not None)
    assert other.request.operation == "message"


def test_files_are_fetched_later_unless_they_are_there() -> None:
    files = (InboundFile(file_id="f", name="a.txt"), InboundFile(media_type="image/png", data="aGk="))
    made = item(message(media=files))
    assert made is not None
    assert msgspec.convert(made.request.attributes[FILES], tuple[InboundFile, ...]) == files[:1]
    assert [content.type for content in made.request.input.contents] == ["text", "data"]


def test_what_is_answered_is_quoted() -> None:
    made = item(message("and this?", quote=Quote(text="one\ntwo")))
    assert made is not None
    assert made.request.input == "> one\n> two\n\nand this?"


def test_in_a_group_it_is_known_who_speaks_and_what_is_answered() -> None:
    made = item(message("hello", GROUP, mentioned=True, message_id="m-1"))
    assert made is not None
    assert isinstance(made.request.input, Message)
    assert made.request.input.author_name == "Ada"
    assert made.request.details == {"chat_id": GROUP.conversation_id, "reply_to": "m-1"}


def test_an_album_is_named_unless_the_message_was_changed() -> None:
    made = item(message(album="a-1", album_position=3))
    changed = item(message(album="a-1", edited=True), on_edit="answer")
    assert made is not None
    assert changed is not None
    assert (made.album_id, made.album_position, changed.album_id) == ("a-1", 3, None)


@given(st.text(), st.lists(st.tuples(st.integers(-9, 60), st.integers(-9, 60)), max_size=4))
def test_any_mentions_leave_a_part_of_the_text(text: str, mentions: list[tuple[int, int]]) -> None:
    left = without_mentions(text, mentions)
    assert left == left.strip()
    if not mentions or text.startswith("/"):
        assert left == text.strip()


@given(st.text())
def test_any_text_is_a_command_or_none(text: str) -> None:
    command = command_in(text)
    if command is not None:
        assert text.strip().lower().startswith(f"/{command.name}")
