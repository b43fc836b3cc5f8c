"""Messages and places: their names and their JSON forms."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.chat.messages import (
    Button,
    Click,
    Command,
    Destination,
    InboundFile,
    InboundMessage,
    OutboundFile,
    OutboundMessage,
    Quote,
    Sender,
)
from frontdesk.markdown import Entity


@pytest.mark.parametrize(
    ("chat_id", "thread_id"), [("c", ""), ("c", "t"), ("c", '"]'), ("[c", ""), ('["c","t"]', ""), ('["c","t"]', "t")]
)
def test_every_place_has_a_name_of_its_own(chat_id: str, thread_id: str) -> None:
    place = Destination(chat_id=chat_id, thread_id=thread_id)
    assert Destination.from_conversation_id(place.conversation_id) == place


@given(st.text(), st.text(), st.text(), st.text())
def test_two_places_never_have_one_name(chat_id: str, thread_id: str, other_chat: str, other_thread: str) -> None:
    place = Destination(chat_id=chat_id, thread_id=thread_id)
    other = Destination(chat_id=other_chat, thread_id=other_thread)
    assert (place.conversation_id == other.conversation_id) == (place == other)


def test_each_message_has_a_json_form() -> None:
    place = Destination(chat_id="c", thread_id="t", kind="group", reference={"url": "https://x"})
    inbound = InboundMessage(
        event_id="e",
        at=1.5,
        sender=Sender(id="u", name="Ada", attributes={"team": "T"}),
        place=place,
        click=Click(data="ok:1"),
        command=Command(name="new"),
        media=(InboundFile(file_id="f", size=3),),
        quote=Quote(text="what?"),
    )
    outbound = OutboundMessage(
        text="hi",
        entities=(Entity("bold", 0, 2),),
        media=(OutboundFile(media_type="image/png", data="aGk="),),
        buttons=(Button(text="Yes", data="y"), Button(text="Page", url="https://x")),
    )
    for message in (place, inbound, outbound):
        assert msgspec.json.decode(msgspec.json.encode(message), type=type(message)) == message


def test_a_part_of_an_earlier_version_can_be_read() -> None:
    stored = {
        "chat_id": "c-1",
        "text": "May I?",
        "media": [{"media_type": "image/png", "data": "aGk=", "name": ""}],
        "buttons": [{"text": "Yes", "data": "ok:apr_1"}],
        "reply_to": "m-1",
    }
    message = msgspec.convert(stored, OutboundMessage)
    assert (message.answers, message.reply_to, message.buttons[0].data) == ("c-1", "m-1", "ok:apr_1")
    assert msgspec.to_builtins(message)["chat_id"] == "c-1"
