"""How a person is shown to another one in an approval."""

from typing import Any

import pytest
from agent_framework import Content
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.chat.i18n.texts import Texts
from frontdesk.chat.i18n.wording import Wording
from frontdesk.chat.rendering import Renderer
from frontdesk.display.person_names import build_unverified_name, list_awaited, plain_name, short_id
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.person_name import PersonName
from frontdesk_testing.store_samples import question, terms
from tests.invisible import invisible_in

ADA = PersonName(name="Ada", native_id="274898002", channel="telegram")


@pytest.mark.parametrize(
    ("person", "english", "german"),
    [
        (
            ADA,
            "“Ada” (unverified, id 274898002) on telegram",
            "„Ada“ (nicht geprüft, Id 274898002) auf telegram",
        ),
        (
            ADA.replace(verified=True),
            "“Ada” (id 274898002) on telegram",
            "„Ada“ (Id 274898002) auf telegram",
        ),
        (ADA.replace(name=""), "274898002 on telegram", "274898002 auf telegram"),
        (PersonName(name="the treasurer"), "the treasurer", "the treasurer"),
        (PersonName(native_id="operator:kim", channel="operator"), "an operator", "einem Operator"),
    ],
)
def test_a_person_in_two_languages(person: PersonName, english: str, german: str) -> None:
    assert (Wording(Texts()).label(person), Wording(Texts(), "de").label(person)) == (english, german)


@given(st.text(max_size=300))
def test_whatever_people_call_themselves_is_short_and_seen(name: str) -> None:
    shown = plain_name(name)
    assert len(shown) <= 80
    assert invisible_in(shown) == []
    assert not {"\n", "\t", "“", "”", "„", '"'} & set(shown)
    person = build_unverified_name(ChannelIdentity("web", name, {"name": name}))
    assert person.name == shown
    assert len(short_id(name)) <= 40 * 4
    assert invisible_in(short_id(name)) == []


def test_a_long_id_shows_both_of_its_ends() -> None:
    assert short_id("274898002") == "274898002"
    assert short_id("vis_01a1ec71c6aabbccddee") == "vis_01a1…ddee"


def test_a_question_of_an_earlier_version_has_names_alone() -> None:
    (person,) = list_awaited(terms(names=("Bob",)))
    assert Wording(Texts()).label(person) == "Bob"


@pytest.mark.parametrize("limit", [120, 400, 4_000])
def test_a_decided_card_is_one_message_with_the_end_of_its_arguments(limit: int) -> None:
    call = Content.from_function_call("call_1", "pay", arguments={"note": "x" * 3_000, "amount": 5})
    request: Any = Content.from_function_approval_request("apr_1", call)
    asked = question(tool="pay", request=request, status="approved", decided_at=0.0)
    renderer = Renderer(dialect=None, limit=limit, wording=Wording(Texts(), "de"))
    message = renderer.render_settled(asked, ChannelIdentity("web", "7", {"name": "Ada"}))
    assert len(message.text) <= limit
    head = "pay: erlaubt von „Ada“ (nicht geprüft, Id 7) auf web (1970-01-01 00:00 UTC)\n"
    assert message.text.startswith(head)
    assert message.text.endswith('"amount":5}')
    assert ("…" in message.text.removeprefix(head)) == (limit < 4_000)
