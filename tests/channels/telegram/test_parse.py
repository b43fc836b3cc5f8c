"""What updates of the Bot API mean."""

import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.channels.telegram.parse import read_update
from frontdesk.channels.telegram.wire import ALLOWED_UPDATES, Update
from frontdesk.chat.messages import Click, Command, ConversationMove, InboundMessage, MembershipChange, Quote
from frontdesk.errors import InvalidRequestError
from tests.channels.telegram.updates import ANN, BOT, FORUM, GROUP, OURS, PRIVATE, message, read, read_message, update
from tests.examples import examples

FILE = {"file_id": "f", "file_unique_id": "u", "file_size": 12}
OTHER = {"id": 2, "is_bot": False, "first_name": "Bob"}


def test_a_message_of_a_private_chat() -> None:
    inbound = read_message(text="hello")
    assert (inbound.event_id, inbound.at, inbound.text, inbound.message_id) == ("42", 1_700_000_000.0, "hello", "10")
    assert (inbound.sender.id, inbound.sender.name, inbound.sender.locale) == ("1", "Ann Lee", "de")
    assert inbound.sender.attributes == {"username": "ann"}
    assert (inbound.place.conversation_id, inbound.place.kind) == ("1", "direct")
    assert not inbound.edited


# Where it was said


@pytest.mark.parametrize(
    ("chat", "fields", "conversation"),
    [
        (FORUM, {"is_topic_message": True, "message_thread_id": 5}, '["-100","5"]'),
        # A thread of replies is no topic.
        (GROUP, {"message_thread_id": 5}, "-100"),
        # The General topic.
        (FORUM, {}, "-100"),
        (FORUM, {"message_thread_id": 9}, "-100"),
        (PRIVATE, {"is_topic_message": True, "message_thread_id": 3}, '["1","3"]'),
    ],
)
def test_a_topic_is_a_conversation_of_its_own(chat: Any, fields: Any, conversation: str) -> None:
    place = read_message(text="hello", chat=chat, **fields).place
    assert place.conversation_id == conversation
    assert place.kind == ("direct" if chat is PRIVATE else "group")


def test_a_group_that_moved_says_so_in_both_chats() -> None:
    there = read_update(update(chat={"id": -5, "type": "group"}, migrate_to_chat_id=-1005), BOT)
    here = read_update(update(chat={"id": -1005, "type": "supergroup"}, migrate_from_chat_id=-5), BOT)
    assert isinstance(there, ConversationMove)
    assert there == here
    assert (there.old.conversation_id, there.new.conversation_id) == ("-5", "-1005")


# Whom it is addressed to


@pytest.mark.parametrize(
    ("text", "fields", "mentioned", "rest"),
    [
        ("@desk_bot what is up?", {}, True, "what is up?"),
        ("@Desk_Bot hi", {}, True, "hi"),
        ("hi @desk_bot", {}, True, "hi"),
        ("😀 @desk_bot 😀", {}, True, "😀  😀"),
        ("@desk_bot-dev hi", {}, False, "@desk_bot-dev hi"),
        ("@desk_bot_dev hi", {}, False, "@desk_bot_dev hi"),
        ("mail@desk_bot hi", {}, False, "mail@desk_bot hi"),
        # Without its entity it is only a text.
        ("@desk_bot hi", {"entities": []}, False, "@desk_bot hi"),
        ("Desk hi", {"entities": [{"type": "text_mention", "offset": 0, "length": 4, "user": OURS}]}, True, "hi"),
        ("Ann hi", {"entities": [{"type": "text_mention", "offset": 0, "length": 3, "user": ANN}]}, False, "Ann hi"),
        ("hi", {"reply_to_message": message("before", GROUP, **{"from": OURS})}, True, "hi"),
        ("hi", {"reply_to_message": message("before", GROUP, **{"from": OTHER})}, False, "hi"),
    ],
)
def test_the_bot_is_addressed_by_entities_and_replies_alone(text: str, fields: Any, mentioned: bool, rest: str) -> None:
    inbound = read_message(text=text, chat=GROUP, **fields)
    assert (inbound.mentioned, inbound.text) == (mentioned, rest)


def test_the_message_that_made_a_topic_is_no_reply() -> None:
    made = message(chat=FORUM, message_id=5, forum_topic_created={"name": "T", "icon_color": 1}, **{"from": OURS})
    there = {"is_topic_message": True, "message_thread_id": 5}
    inbound = read_message(text="hi", chat=FORUM, reply_to_message=made, **there)
    assert not inbound.mentioned
    assert inbound.quote is None
    gone = message(chat=FORUM, message_id=5, **{"from": OURS})
    assert not read_message(text="hi", chat=FORUM, reply_to_message=gone, **there).mentioned


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/new", Command(name="new")),
        ("/New@desk_bot", Command(name="new", bot="desk_bot")),
        ("/name@other_bot My title", Command(name="name", args="My title", bot="other_bot")),
        ("/start link-42", Command(name="start", args="link-42")),
        ("see /new", None),
        ("hello", None),
    ],
)
def test_a_command_is_what_a_text_begins_with(text: str, command: Command | None) -> None:
    assert read_message(text=text, chat=GROUP).command == command


def test_a_reply_quotes_what_it_answers() -> None:
    before = message("the whole text", GROUP, message_id=9, **{"from": OTHER})
    assert read_message(text="yes", chat=GROUP, reply_to_message=before).quote == Quote(
        message_id="9", sender_id="2", text="the whole text"
    )
    part = read_message(text="yes", chat=GROUP, reply_to_message=before, quote={"text": "whole", "position": 4})
    assert part.quote == Quote(message_id="9", sender_id="2", text="whole")
    outside = read_message(
        text="yes", external_reply={"origin": {"type": "hidden_user"}}, quote={"text": "w", "position": 0}
    )
    assert outside.quote == Quote(text="w")


# What it holds


@pytest.mark.parametrize(
    ("fields", "media_type", "name"),
    [
        ({"voice": {**FILE, "mime_type": "audio/ogg"}}, "audio/ogg", "voice.ogg"),
        ({"audio": {**FILE, "file_name": "a.m4a", "mime_type": "audio/mp4"}}, "audio/mp4", "a.m4a"),
        ({"video": FILE}, "video/mp4", "video.mp4"),
        ({"video_note": FILE}, "video/mp4", "video_note.mp4"),
        ({"animation": FILE, "document": FILE}, "video/mp4", "animation.mp4"),
        (
            {"document": {**FILE, "file_name": "a.pdf", "mime_type": "application/pdf"}},
            "application/pdf",
            "a.pdf",
        ),
        ({"sticker": {**FILE, "emoji": "😀"}}, "image/webp", "sticker.webp"),
        ({"sticker": {**FILE, "is_video": True}}, "video/webm", "sticker.webm"),
    ],
)
def test_a_file_is_named_to_be_fetched_later(fields: Any, media_type: str, name: str) -> None:
    (file,) = read_message(**fields).media
    assert (file.file_id, file.media_type, file.name, file.size, file.data) == ("f", media_type, name, 12, "")


def test_the_largest_size_of_a_picture_is_taken() -> None:
    sizes = [
        {"file_id": name, "file_unique_id": name, "width": width, "height": width}
        for name, width in (("s", 90), ("l", 1280), ("m", 320))
    ]
    inbound = read_message(
        photo=sizes, caption="@desk_bot look", caption_entities=[{"type": "mention", "offset": 0, "length": 9}]
    )
    assert [file.file_id for file in inbound.media] == ["l"]
    assert (inbound.text, inbound.mentioned) == ("look", True)


def test_the_pictures_of_an_album_belong_together() -> None:
    inbound = read_message(photo=[{**FILE, "width": 1, "height": 1}], media_group_id="13")
    assert (inbound.album, inbound.album_position) == ("13", 10)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"location": {"latitude": 52.5, "longitude": 13.25}}, "Location: 52.5, 13.25"),
        (
            {
                "location": {"latitude": 1.5, "longitude": 2.5},
                "venue": {"location": {"latitude": 1.5, "longitude": 2.5}, "title": "Café", "address": "Main St"},
            },
            "Venue: Café, Main St (1.5, 2.5)",
        ),
        ({"contact": {"phone_number": "+491", "first_name": "Bo", "last_name": "X"}}, "Contact: Bo X, +491"),
        (
            {"poll": {"id": "1", "question": "Tea?", "options": [{"text": "yes"}, {"text": "no"}]}},
            "Poll: Tea?\n- yes\n- no",
        ),
        ({"dice": {"emoji": "🎲", "value": 4}}, "🎲 4"),
        ({"sticker": {**FILE, "is_animated": True, "emoji": "😀"}}, "😀"),
        (
            {"text": "news", "forward_origin": {"type": "user", "sender_user": OTHER}},
            "Forwarded from Bob:\nnews",
        ),
        (
            {"text": "/new", "forward_origin": {"type": "hidden_user", "sender_user_name": "Zed"}},
            "Forwarded from Zed:\n/new",
        ),
        ({"text": "x", "forward_origin": {"type": "channel", "chat": {"id": -9, "title": "News"}}}, None),
    ],
)
def test_what_is_neither_text_nor_a_file_is_said_in_words(fields: Any, text: str | None) -> None:
    inbound = read_message(**fields)
    assert inbound.text == (text or "Forwarded from News:\nx")
    assert inbound.command is None


def test_an_edit_says_that_it_is_one() -> None:
    inbound = read_message("edited_message", text="hello!", edit_date=1_700_000_009)
    assert (inbound.edited, inbound.at) == (True, 1_700_000_009.0)
    assert read("edited_message", location={"latitude": 1.0, "longitude": 2.0}) is None


# What nobody has said to us


@pytest.mark.parametrize(
    "fields",
    [
        {"new_chat_members": [OTHER]},
        {"left_chat_member": OTHER},
        {"forum_topic_created": {"name": "T", "icon_color": 1}},
        {"pinned_message": message("x")},
        {"text": "hi", "from": OURS},
        {"text": "hi", "via_bot": OURS},
        # An anonymous administrator, somebody who writes as a channel, and the post of a linked channel.
        {"text": "hi", "sender_chat": GROUP, "from": {"id": 1087968824, "is_bot": True, "first_name": "Group"}},
        {"text": "hi", "sender_chat": {"id": -9, "type": "channel"}, "from": {"id": 136817688, "is_bot": True}},
        {"text": "hi", "sender_chat": {"id": -9, "type": "channel"}, "from": {"id": 777000, "first_name": "Telegram"}},
        {"text": "hi", "from": None},
        {},
    ],
)
def test_what_no_person_says_is_not_read(fields: Any) -> None:
    assert read(chat=GROUP, **fields) is None


@pytest.mark.parametrize("kind", ["channel_post", "edited_channel_post", "poll", "unheard_of"])
def test_other_updates_are_not_read(kind: str) -> None:
    assert read(kind, text="hi", chat={"id": -9, "type": "channel"}) is None


def test_another_bot_is_told_apart() -> None:
    assert read_message(text="hi", chat=GROUP, **{"from": {"id": 8, "is_bot": True, "first_name": "B"}}).sender.is_bot
    assert not read_message(text="hi", chat=GROUP, via_bot={"id": 8, "is_bot": True, "first_name": "B"}).sender.is_bot


# The bot comes and goes


def role(status: str, **fields: Any) -> dict[str, Any]:
    return {"status": status, "user": OURS, **fields}


@pytest.mark.parametrize(
    ("old", "new", "chat", "expected"),
    [
        (role("member"), role("kicked"), PRIVATE, (False, "blocked", "direct")),
        (role("kicked"), role("member"), PRIVATE, (True, "", "direct")),
        (role("member"), role("kicked"), GROUP, (False, "kicked", "group")),
        (role("administrator"), role("left"), GROUP, (False, "kicked", "group")),
        (role("left"), role("administrator"), GROUP, (True, "", "group")),
        (role("left"), role("restricted", is_member=True), GROUP, (True, "", "group")),
        (role("restricted", is_member=True), role("restricted", is_member=False), GROUP, (False, "kicked", "group")),
        (role("member"), role("administrator"), GROUP, None),
        (role("left"), role("kicked"), GROUP, None),
        (role("left"), role("administrator"), {"id": -9, "type": "channel"}, None),
    ],
)
def test_the_bot_is_let_in_or_shut_out(old: Any, new: Any, chat: Any, expected: Any) -> None:
    content = {"chat": chat, "from": ANN, "date": 1_700_000_000, "old_chat_member": old, "new_chat_member": new}
    change = read_update(update("my_chat_member", content=content), BOT)
    if expected is None:
        assert change is None
        return
    assert isinstance(change, MembershipChange)
    assert (change.present, change.reason, change.place.kind) == expected
    assert (change.place.chat_id, change.at) == (str(chat["id"]), 1_700_000_001.0)
    assert change.by is not None
    assert (change.event_id, change.by.id) == ("42", "1")


def test_every_update_that_is_read_is_asked_for() -> None:
    assert set(ALLOWED_UPDATES) == {field.name for field in msgspec.structs.fields(Update)} - {"update_id"}


# Buttons


def read_press(**fields: Any) -> Any:
    return read_update(update("callback_query", content={"id": "99", "from": ANN, "data": "ok:apr_1", **fields}), BOT)


def test_a_button_names_its_message() -> None:
    topic = {"is_topic_message": True, "message_thread_id": 5}
    inbound = read_press(message=message("May I?", FORUM, **topic, **{"from": OURS}))
    assert inbound.click == Click(data="ok:apr_1", callback_id="99", message_id="10")
    assert (inbound.place.conversation_id, inbound.place.kind) == ('["-100","5"]', "group")
    assert inbound.sender.id == "1"


def test_a_button_may_have_lost_its_message() -> None:
    inbound = read_press(message={"chat": GROUP, "message_id": 10, "date": 0})
    assert (inbound.place.conversation_id, inbound.click.message_id) == ("-100", "10")
    inline = read_press(inline_message_id="x")
    assert (inline.place.conversation_id, inline.place.kind, inline.click.message_id) == ("1", "direct", "")


def test_the_button_that_stops_an_answer_is_a_command() -> None:
    inbound = read_press(data="stop", message=message("Once upon", GROUP))
    assert (inbound.command, inbound.click, inbound.mentioned) == (Command(name="cancel"), None, True)
    assert inbound.attributes == {"callback_id": "99"}


def test_a_draft_that_was_stopped_is_a_command_of_its_person() -> None:
    inbound = read_update(
        update("stopped_message_generation", content={"chat": PRIVATE, "message_thread_id": 3, "draft_id": 9}), BOT
    )
    assert isinstance(inbound, InboundMessage)
    assert (inbound.command, inbound.sender.id) == (Command(name="cancel"), "1")
    assert inbound.place.conversation_id == '["1","3"]'
    assert read_update(update("stopped_message_generation", content={"chat": GROUP, "draft_id": 9}), BOT) is None


def test_the_button_of_a_game_is_not_read() -> None:
    assert read_press(data="", game_short_name="g") is None


# Whatever comes

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_FIELDS = ["text", "entities", "chat", "from", "photo", "document", "reply_to_message", "sticker", "location", "quote"]


@given(body=st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_body_is_read_or_refused(body: bytes) -> None:
    with suppress(InvalidRequestError):
        read_update(body, BOT)


@given(
    kind=st.sampled_from(["message", "edited_message", "callback_query", "my_chat_member"]),
    changed=st.dictionaries(st.sampled_from(_FIELDS), JSON, max_size=3),
)
def test_an_update_with_a_strange_part_is_read_or_refused(kind: str, changed: Any) -> None:
    with suppress(InvalidRequestError):
        read_update(json.dumps({"update_id": 1, kind: {**message("@desk_bot hi", GROUP), **changed}}).encode(), BOT)


_WORDS = st.fixed_dictionaries({}, optional=dict.fromkeys(("text", "blocks", "items", "cells"), JSON))


@examples(30)
@given(blocks=st.lists(_WORDS, max_size=4))
def test_a_rich_message_of_any_shape_can_be_quoted(blocks: list[Any]) -> None:
    replied = {**message("", PRIVATE), "rich_message": {"blocks": blocks}}
    assert read_message(text="why?", reply_to_message=replied).text == "why?"


_ENTITY = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["mention", "text_mention", "bot_command", "bold"]),
        "offset": st.integers(-3, 12),
        "length": st.integers(-3, 12),
        "user": st.just(OURS),
    }
)


@given(text=st.text(alphabet="a/@😀é desk_bot", max_size=12), entities=st.lists(_ENTITY, max_size=4))
def test_entities_that_lie_anywhere_are_no_harm(text: str, entities: list[Any]) -> None:
    inbound = read(text=text, entities=entities)
    if inbound is not None:
        inbound.text.encode()
        assert set(inbound.text) <= set(text) | {"\ufffd"}


@given(text=st.text(max_size=30))
def test_a_text_without_entities_comes_as_it_is(text: str) -> None:
    inbound = read(text=text, entities=[])
    assert (inbound.text if inbound else "") == text.encode("utf-16", "replace").decode("utf-16").strip()
