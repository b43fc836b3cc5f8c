"""What activities mean: people, places, mentions, buttons, files, edits and installations."""

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.activity.parse import BUTTON, ParseRules, read_activity
from frontdesk.activity.schema import Reference, decode_activity
from frontdesk.activity.verify import ProvedActivity, Source
from frontdesk.chat.messages import InboundMessage, Invoke, MembershipChange
from frontdesk.errors import InvalidRequestError

APP_ID = "11111111-2222-4333-8444-555555555555"
BOT = f"28:{APP_ID}"
TENANT = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"
OID = "0a0a0a0a-1b1b-4c2c-8d3d-4e4e4e4e4e4e"
RULES = ParseRules(app_id=APP_ID)


def activity(**other: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "type": "message",
        "id": "7",
        "timestamp": "2026-11-19T20:00:00Z",
        "channelId": "msteams",
        "serviceUrl": "https://smba.trafficmanager.net/emea/",
        "from": {"id": "29:ada", "name": "Ada", "aadObjectId": OID},
        "recipient": {"id": BOT},
        "conversation": {"id": "a:1", "conversationType": "personal", "tenantId": TENANT},
        "text": "hello",
        "locale": "de-DE",
    }
    return {**given, **other}


def read(source: Source = "connector", caller: str = "", **other: Any) -> Any:
    body = msgspec.json.encode(activity(**other))
    return read_activity(ProvedActivity(decode_activity(body), source, caller), RULES)


def message(source: Source = "connector", **other: Any) -> InboundMessage:
    inbound = read(source, **other)
    assert isinstance(inbound, InboundMessage)
    return inbound


def reference(inbound: Any) -> Reference:
    return msgspec.convert(dict(inbound.place.reference), Reference)


def test_a_message_of_teams_proves_who_wrote_it() -> None:
    inbound = message()
    assert inbound.event_id == "msteams:a:1:7"
    assert inbound.sender.id == "29:ada"
    assert inbound.sender.claims == {
        "iss": f"https://login.microsoftonline.com/{TENANT}/v2.0",
        "tid": TENANT,
        "oid": OID,
    }
    assert (inbound.place.kind, inbound.place.chat_id, inbound.text) == ("direct", "a:1", "hello")
    known = reference(inbound)
    assert (known.conversation, known.bot, known.user, known.tenant) == ("a:1", BOT, "29:ada", TENANT)


@pytest.mark.parametrize("source", ["emulator", "skill", "platform"])
def test_other_senders_prove_nothing_about_a_person(source: Source) -> None:
    assert message(source).sender.claims == {}


@pytest.mark.parametrize("channel", ["webchat", "directline", "slack", "email"])
def test_other_platforms_prove_nothing_and_cannot_name_a_person_of_teams(channel: str) -> None:
    inbound = message(channelId=channel, conversation={"id": "c-1"})
    assert inbound.sender.claims == {}
    assert inbound.sender.id.startswith(f"{channel}:")
    assert inbound.place.chat_id == f"{channel}:c-1"


def test_whoever_chooses_their_own_id_is_known_in_their_conversation_alone() -> None:
    first = message(channelId="webchat", conversation={"id": "c-1"})
    other = message(channelId="webchat", conversation={"id": "c-2"})
    assert first.sender.id != other.sender.id


def test_a_bot_that_calls_a_skill_cannot_name_a_person_of_teams() -> None:
    inbound = read("skill", "parent-app")
    assert inbound.sender.id == "skill:parent-app:29:ada"
    assert reference(inbound).audience == "parent-app"


@pytest.mark.parametrize(
    "claimed",
    [{"aadObjectId": "nonsense"}, {"aadObjectId": None}, {"aadObjectId": f"{OID}\n"}, {"aadObjectId": "*" * 36}],
)
def test_an_object_id_of_another_form_proves_nothing(claimed: dict[str, Any]) -> None:
    person: dict[str, Any] = {"from": {"id": "29:ada", **claimed}}
    assert message(**person).sender.claims == {}


def _mention(who: str, text: str) -> dict[str, Any]:
    return {"type": "mention", "mentioned": {"id": who, "name": "x"}, "text": text}


@pytest.mark.parametrize(
    ("text", "entities", "shown", "mentioned"),
    [
        ("<at>Desk</at> hi", [_mention(BOT, "<at>Desk</at>")], "hi", True),
        ("<at>Desk</at>&nbsp;hi", [_mention(BOT, "<at>Desk</at>")], "hi", True),
        ("hi <at>Bob</at>", [_mention("29:bob", "<at>Bob</at>")], "hi <at>Bob</at>", False),
        (
            "<at>Desk</at> ask <at>Desk</at>",
            [_mention(BOT, "<at>Desk</at>"), _mention("29:desk", "<at>Desk</at>")],
            "ask <at>Desk</at>",
            True,
        ),
        ("<at>Desk</at> hi", [], "<at>Desk</at> hi", False),
        ("hi", [_mention(BOT, "<at>Desk</at>")], "hi", True),
        ("hi", [{"type": "mention"}, {"type": "clientInfo"}], "hi", False),
        ("<at>Desk</at> /new", [_mention(BOT, "<at>Desk</at>")], "/new", True),
    ],
)
def test_only_mentions_of_the_bot_are_removed(text: str, entities: list[Any], shown: str, mentioned: bool) -> None:
    inbound = message(text=text, entities=entities)
    assert (inbound.text, inbound.mentioned) == (shown, mentioned)


def test_a_thread_of_a_channel_is_a_thread() -> None:
    inbound = message(conversation={"id": "19:x@thread.tacv2;messageid=42", "conversationType": "channel"})
    assert (inbound.place.kind, inbound.place.chat_id, inbound.place.thread_id) == ("group", "19:x@thread.tacv2", "42")
    assert reference(inbound).conversation == "19:x@thread.tacv2;messageid=42"
    assert reference(inbound).user == ""


@pytest.mark.parametrize(
    ("conversation", "channel", "kind"),
    [
        ({"id": "x", "conversationType": "personal"}, "msteams", "direct"),
        ({"id": "x", "conversationType": "groupChat"}, "msteams", "group"),
        ({"id": "x", "conversationType": "something new"}, "msteams", "group"),
        ({"id": "x"}, "msteams", "group"),
        ({"id": "x"}, "webchat", "direct"),
        ({"id": "x", "isGroup": True}, "slack", "group"),
    ],
)
def test_a_conversation_of_unknown_type_has_other_readers(conversation: Any, channel: str, kind: str) -> None:
    assert message(conversation=conversation, channelId=channel).place.kind == kind


def test_a_button_is_pressed_by_invoke_by_message_and_by_text() -> None:
    invoked = message(
        type="invoke",
        name="adaptiveCard/action",
        value={"action": {"type": "Action.Execute", "data": {BUTTON: "ok:1"}}},
        replyToId="5",
    )
    assert invoked.click is not None
    assert (invoked.click.data, invoked.click.message_id, invoked.click.expects_card) == ("ok:1", "5", True)
    others: tuple[dict[str, Any], ...] = (
        {"value": {BUTTON: "ok:1"}, "text": None},
        {"value": f'{{"{BUTTON}":"ok:1"}}', "text": "Approve"},
        {"text": f'{{"{BUTTON}":"ok:1"}}'},
    )
    for other in others:
        click = message(**other).click
        assert click is not None
        assert (click.data, click.expects_card) == ("ok:1", False)


def test_a_card_of_the_operator_that_is_submitted_is_a_message() -> None:
    inbound = message(text="", value={"city": "Oslo"})
    assert (inbound.text, inbound.attributes) == ('{"city":"Oslo"}', {"value": {"city": "Oslo"}})


def test_other_invokes_are_answered_at_once() -> None:
    inbound = read(type="invoke", name="task/fetch", value={"data": 1})
    assert isinstance(inbound, Invoke)
    assert (inbound.name, inbound.value) == ("task/fetch", {"data": 1})


@pytest.mark.parametrize(
    "other",
    [
        {"type": "typing"},
        {"type": "trace"},
        {"type": "endOfConversation"},
        {"type": "event", "name": "x"},
        {"type": "something new"},
        {"type": "messageDelete"},
        {"type": "conversationUpdate", "membersAdded": [{"id": BOT}]},
        {"type": "conversationUpdate", "channelId": "webchat", "membersAdded": [{"id": "somebody"}]},
        {"type": "installationUpdate", "action": "upgrade"},
        {"deliveryMode": "notification"},
        {"from": {"id": "28:another-bot"}},
        {"from": {"id": "29:x", "role": "bot"}},
        {"type": "messageUpdate", "channelData": {"eventType": "softDeleteMessage"}},
    ],
)
def test_what_needs_no_answer_is_no_error(other: dict[str, Any]) -> None:
    assert read(**other) is None


@pytest.mark.parametrize(
    ("other", "present"),
    [
        ({"type": "installationUpdate", "action": "add"}, True),
        ({"type": "installationUpdate", "action": "remove"}, False),
        ({"type": "conversationUpdate", "channelId": "slack", "membersAdded": [{"id": BOT}]}, True),
        ({"type": "conversationUpdate", "channelId": "slack", "membersRemoved": [{"id": BOT}]}, False),
    ],
)
def test_the_bot_comes_and_goes(other: dict[str, Any], present: bool) -> None:
    change = read(**other)
    assert isinstance(change, MembershipChange)
    assert (change.present, change.by is not None) == (present, True)


def test_an_edit_is_another_event_than_its_message() -> None:
    edited = message(type="messageUpdate", channelData={"eventType": "editMessage"})
    assert edited.edited
    assert edited.event_id != message().event_id


def test_files_are_fetched_later_and_texts_are_no_files() -> None:
    info = "application/vnd.microsoft.teams.file.download.info"
    inbound = message(
        attachments=[
            {"contentType": "text/html", "content": "<p>hello</p>"},
            {"contentType": info, "name": "a.pdf", "content": {"downloadUrl": "https://x.sharepoint.com/a?t=1"}},
            {"contentType": "image/*", "contentUrl": "https://smba.trafficmanager.net/v3/attachments/1/views/original"},
            {"contentType": "image/png", "contentUrl": "data:image/png;base64,AAAA", "name": "b.png"},
            {"contentType": "application/vnd.microsoft.card.adaptive", "content": {}},
        ]
    )
    assert [(file.media_type, file.name, bool(file.url), file.data) for file in inbound.media] == [
        ("application/pdf", "a.pdf", True, ""),
        ("image/png", "", True, ""),
        ("image/png", "b.png", False, "AAAA"),
    ]


@pytest.mark.parametrize("field", ["from", "conversation", "id"])
def test_a_message_without_what_it_needs_is_unreadable(field: str) -> None:
    missing: dict[str, Any] = {field: None}
    with pytest.raises(InvalidRequestError):
        read(**missing)


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
_FIELDS = sorted({*activity(), "value", "entities", "attachments", "channelData", "name", "action", "membersAdded"})


@given(st.dictionaries(st.sampled_from(_FIELDS), _json, max_size=6))
def test_whatever_is_in_an_activity_it_is_read_or_refused(fields: dict[str, Any]) -> None:
    with contextlib.suppress(InvalidRequestError):
        read(**fields)
