"""Results as messages of the page: always JSON, and nothing of them is lost."""

import msgspec
from agent_framework import AgentResponse, Content, Message
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.channels.web.parse import conversation_name, new_chat_id, parse_chat
from frontdesk.channels.web.render import build_stored, extract_contents
from frontdesk.channels.web.wire import Part, StoredMessage
from frontdesk.chat.i18n.texts import Texts
from frontdesk.chat.i18n.wording import Wording
from tests.examples import examples

WORDING = Wording(Texts())
TEXTS = st.text(st.characters(), max_size=30)


@examples(60)
@given(st.lists(TEXTS, max_size=4))
def test_every_text_of_an_answer_is_in_one_message_that_can_be_stored(texts: list[str]) -> None:
    response = AgentResponse(messages=[Message("assistant", [Content.from_text(text)]) for text in texts])
    parts = extract_contents(response, WORDING)
    assert len(parts) == bool("".join(texts).strip())
    for part in parts:
        again = msgspec.convert(msgspec.json.decode(msgspec.json.encode(part)), Part)
        assert again == part
        assert all(text.encode("utf-8", "replace").decode() in part.text for text in texts)
        message = build_stored(part, "key", 1.0)
        assert msgspec.convert(msgspec.to_builtins(message), StoredMessage) == message


def test_what_is_said_to_others_is_not_shown() -> None:
    messages = [Message("tool", [Content.from_text("secret")]), Message("assistant", [Content.from_text("shown")])]
    assert [part.text for part in extract_contents(AgentResponse(messages=messages), WORDING)] == ["shown"]


@examples(30)
@given(st.sampled_from(["vis_1", "vis_2"]), st.text("abc:", min_size=1, max_size=5))
def test_a_conversation_is_found_by_its_name(visitor: str, given_id: str) -> None:
    chat = new_chat_id(visitor, given_id)
    assert parse_chat(conversation_name(visitor, chat)) == chat
    assert parse_chat(None) == parse_chat(f"{visitor}:main") == "main"
