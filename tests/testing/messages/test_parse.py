"""From events to requests: whose they are, what they mean, and which are none of ours."""

from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.chat.messages import Destination
from frontdesk.errors import InvalidRequestError
from frontdesk.models.delivery import InboxItem
from frontdesk.serialization.codec import from_json, to_json
from frontdesk_testing.messages.parse import challenge_in, decode
from frontdesk_testing.messages.wire import Challenge, Event, ReplyTo
from tests.testing.messages.samples import EVENTS, ME, event, to_item

RULES: Any = st.sampled_from(["mention_only", "command_only", "mention_or_command", "all"])
EDITS: Any = st.sampled_from(["ignore", "answer"])


def item(one: Event, rule: Any = "mention_only", on_edit: Any = "ignore") -> InboxItem | None:
    return to_item(one, channel="messages", me=ME, accept_in_group=rule, on_edit=on_edit, now=5.0)


@given(EVENTS, RULES, EDITS)
def test_an_item_is_the_senders_and_has_a_json_form(one: Event, rule: Any, on_edit: Any) -> None:
    found = item(one, rule, on_edit)
    if found is None:
        return
    identity = found.caller.identity
    assert (identity.channel, identity.native_id) == ("messages", one.sender.user_id)
    assert identity.attributes == {"name": one.sender.name}
    assert found.request.identity == identity
    # A chat id that looks like JSON is written as JSON.
    assert (found.event_id, found.conversation_id) == (
        one.event_id,
        Destination(chat_id=one.chat.chat_id).conversation_id,
    )
    assert found.request.group == (one.chat.kind == "group")
    assert (found.caller.claims, found.caller.claim_source) == ({}, None)
    assert found.request.session is None
    assert to_json(from_json(to_json(found))) == to_json(found)


@given(EVENTS, RULES, EDITS)
def test_who_is_asked_never_depends_on_names(one: Event, rule: Any, on_edit: Any) -> None:
    renamed = msgspec.structs.replace(one, sender=msgspec.structs.replace(one.sender, name=one.chat.chat_id))
    found, other = item(one, rule, on_edit), item(renamed, rule, on_edit)
    assert (found is None) == (other is None)
    if found is not None and other is not None:
        assert found.caller.identity.key == other.caller.identity.key


@given(st.binary())
def test_any_bytes_are_an_event_or_an_error(body: bytes) -> None:
    with suppress(InvalidRequestError):
        decode(body)


@given(EVENTS)
def test_an_event_is_read_as_it_was_written(one: Event) -> None:
    try:
        written = msgspec.json.encode(one)
    except UnicodeEncodeError:
        return
    assert decode(written) == one


def test_a_challenge_is_read_as_one() -> None:
    assert challenge_in(b'{"challenge":"word"}') == Challenge(challenge="word")


@given(EVENTS)
def test_an_event_is_no_challenge(one: Event) -> None:
    with suppress(UnicodeEncodeError):
        assert challenge_in(msgspec.json.encode(one)) is None


@pytest.mark.parametrize(
    ("text", "command", "args"),
    [
        ("/new", "new", ""),
        ("/new ", "new", ""),
        ("/NEW", "new", ""),
        ("/link  ABC-1 ", "link", "ABC-1"),
        ("/ask two\nlines", "ask", "two\nlines"),
        ("/new@desk", "new", ""),
        ("/new@DESK now", "new", "now"),
        ("@desk /new", "new", ""),
    ],
)
@pytest.mark.parametrize("kind", ["direct", "group"])
def test_a_command(text: str, command: str, args: str, kind: str) -> None:
    found = item(event(text, kind=kind), "all")
    assert found is not None
    request = found.request
    assert (request.operation, request.attributes["command"], request.input) == ("command", command, args)
    assert request.attributes["event"]["message"]["text"] == text


@pytest.mark.parametrize("text", ["/", "//", "/ new", "say /new", "/new/old", "/" + "x" * 33, "/new@", "1/2"])
def test_no_command(text: str) -> None:
    found = item(event(text))
    assert found is not None
    assert (found.request.operation, found.request.input) == ("message", text)


@pytest.mark.parametrize("kind", ["direct", "group"])
def test_a_command_for_another_bot(kind: str) -> None:
    assert item(event("/new@other", kind=kind), "all") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [("@desk hello", "hello"), ("hello @desk", "hello"), ("hello @desk you", "hello  you"), ("@desk", "")],
)
def test_our_own_name_is_left_out(text: str, said: str) -> None:
    found = item(event(text, kind="group"))
    assert found is not None
    assert found.request.input.text == said
    assert found.request.input.author_name == "Ada"


def test_a_name_in_the_text_is_no_mention() -> None:
    named = msgspec.structs.replace(event("@desk hello", kind="group"))
    assert named.message is not None
    plain = msgspec.structs.replace(named, message=msgspec.structs.replace(named.message, mentions=()))
    assert item(plain) is None


@pytest.mark.parametrize(("author", "taken"), [("bot-1", True), ("u-bob", False)])
def test_a_reply_is_to_whoever_is_replied_to(author: str, taken: bool) -> None:
    found = item(event("yes", kind="group", reply_to=ReplyTo(message_id="m-0", user_id=author)))
    assert (found is not None) == taken


def test_bots_are_not_answered() -> None:
    one = event("hello")
    assert item(msgspec.structs.replace(one, sender=msgspec.structs.replace(one.sender, bot=True)), "all") is None


@pytest.mark.parametrize("type", ["joined", "left", ""])
def test_what_a_platform_adds_later_is_none_of_ours(type: str) -> None:
    assert item(event("hello", type=type), "all") is None


@pytest.mark.parametrize(
    ("type", "album_id", "expected"),
    [("message", "a", ("a", 1)), ("message", "", (None, 0)), ("edit", "a", (None, 0))],
)
def test_a_new_message_names_its_album(type: str, album_id: str, expected: tuple[str | None, int]) -> None:
    parsed = item(event("hello", type=type, album_id=album_id), on_edit="answer")
    assert parsed is not None
    assert (parsed.album_id, parsed.album_position) == expected
