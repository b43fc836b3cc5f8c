"""Everything that the API lets a caller say reaches the agent as what it is."""

import base64
from typing import Any

import pytest
from agent_framework import Message

from tests.scenarios.responses.cast import build_answering, parrot
from tests.scenarios.responses.customers import AsyncCustomer
from tests.scenarios.responses.desk import open_client

PIXEL = "data:image/png;base64," + base64.b64encode(b"pixel").decode()
PDF = base64.b64encode(b"%PDF").decode()


async def _list_heard(said: Any) -> list[Message]:
    agent = build_answering(lambda _: ["heard"])
    async with open_client(agent) as desk:
        assert (await AsyncCustomer(desk).create(said)).output_text == "heard"
    return agent.client.seen[-1]


async def _part(part: dict[str, Any]) -> Any:
    (message,) = await _list_heard([{"role": "user", "content": [{"type": "input_text", "text": "see"}, part]}])
    text, content = message.contents
    assert (message.role, text.text) == ("user", "see")
    return content


async def test_every_role_is_heard() -> None:
    said = [{"role": role, "content": f"as {role}"} for role in ("user", "assistant", "system", "developer")]
    heard = await _list_heard([*said, {"type": "message", "role": "user", "content": "as typed"}])
    assert [(one.role, one.text) for one in heard] == [
        ("user", "as user"),
        ("assistant", "as assistant"),
        ("system", "as system"),
        ("system", "as developer"),
        ("user", "as typed"),
    ]


@pytest.mark.parametrize("phase", ["commentary", "final_answer"])
async def test_every_phase_is_heard(phase: str) -> None:
    part = {"type": "output_text", "text": "let me see", "annotations": []}
    message = {"type": "message", "role": "assistant", "phase": phase, "content": [part]}
    heard = await _list_heard([message, {"role": "user", "content": "go on"}])
    assert heard[0].additional_properties["phase"] == phase


async def test_a_picture_is_heard_by_its_address_and_as_data() -> None:
    content = await _part({"type": "input_image", "image_url": "https://example.com/cat.jpeg?s=1", "detail": "low"})
    assert (content.type, content.uri, content.media_type) == (
        "uri",
        "https://example.com/cat.jpeg?s=1",
        "image/jpeg",
    )
    content = await _part({"type": "input_image", "image_url": PIXEL})
    assert (content.type, content.uri, content.media_type) == ("data", PIXEL, "image/png")


async def test_a_file_is_heard_by_its_address_and_as_data() -> None:
    content = await _part({"type": "input_file", "file_url": "https://example.com/a.pdf"})
    assert (content.type, content.media_type) == ("uri", "application/pdf")
    for data in (PDF, f"data:application/pdf;base64,{PDF}"):
        content = await _part({"type": "input_file", "filename": "a.pdf", "file_data": data})
        assert (content.type, content.uri) == ("data", f"data:application/pdf;base64,{PDF}")
        assert content.additional_properties["filename"] == "a.pdf"


async def test_a_sound_is_heard() -> None:
    sound = base64.b64encode(b"RIFF").decode()
    content = await _part({"type": "input_audio", "input_audio": {"data": sound, "format": "wav"}})
    assert (content.type, content.media_type) == ("data", "audio/wav")


async def test_calls_that_were_made_together_are_one_message() -> None:
    calls = [{"type": "function_call", "call_id": call_id, "name": "look", "arguments": "{}"} for call_id in ("a", "b")]
    outputs: list[Any] = [
        {"type": "function_call_output", "call_id": "a", "output": "one"},
        {"type": "function_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "two"}]},
    ]
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "sealed"}
    heard = await _list_heard([{"role": "user", "content": "look"}, thought, *calls, *outputs])
    assert [(one.role, [content.type for content in one.contents]) for one in heard] == [
        ("user", ["text"]),
        ("assistant", ["text_reasoning", "function_call", "function_call"]),
        ("tool", ["function_result"]),
        ("tool", ["function_result"]),
    ]
    assert (heard[1].contents[0].text, heard[1].contents[0].protected_data) == ("hm", "sealed")
    assert heard[1].contents[1].arguments == "{}"
    assert [message.contents[0].call_id for message in heard[2:]] == ["a", "b"]
    assert heard[2].contents[0].result == "one"


async def test_a_thought_belongs_to_what_was_said_after_it() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    heard = await _list_heard([thought, {"role": "assistant", "content": "so"}, {"role": "user", "content": "and?"}])
    assert [[content.type for content in one.contents] for one in heard] == [["text_reasoning", "text"], ["text"]]
    assert heard[0].contents[0].id == "rs_1"


async def test_a_refusal_is_heard_as_one() -> None:
    refused = {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}
    heard = await _list_heard([refused, {"role": "user", "content": "please"}])
    assert heard[0].contents[0].additional_properties == {"core": {"model_output_kind": "refusal"}}


async def test_what_was_said_before_can_be_named_instead_of_repeated() -> None:
    agent = parrot()
    async with open_client(agent) as desk:
        customer = AsyncCustomer(desk)
        first = await customer.create("hello")
        (asked,) = await customer.input_items(first.id)
        named: list[Any] = [{"type": "item_reference", "id": asked.id}, {"id": first.output[0].id}]
        second = await customer.create([*named, {"role": "user", "content": "again"}])
        assert second.output_text == "you said again"
        assert agent.client.said() == [("user", "hello"), ("assistant", "you said hello"), ("user", "again")]
        listed = await customer.input_items(second.id, order="asc")
        assert [item.id for item in listed[:2]] == [asked.id, first.output[0].id]


async def test_input_items_come_back_page_by_page_in_both_orders(customer_of: Any) -> None:
    said = [{"role": "user", "content": str(number)} for number in range(7)]
    async with open_client(parrot()) as desk:
        customer = customer_of(desk)
        response = await customer.create(said)
        for order, numbers in (("asc", "0123456"), ("desc", "6543210")):
            found = await customer.input_items(response.id, order=order, limit=3)
            assert "".join(item.content[0].text for item in found) == numbers
            pages = [one for one in desk.tap.exchanges if one.path.endswith("input_items")]
            assert len(pages) == 3
            desk.tap.exchanges.clear()
        newest = await customer.input_items(response.id)
        assert newest[0].content[0].text == "6"
        after = await customer.input_items(response.id, order="asc", after=newest[1].id)
        assert [item.content[0].text for item in after] == ["6"]


async def test_every_kind_of_item_is_listed_as_the_api_shows_it() -> None:
    said: list[Any] = [
        {"role": "developer", "content": "be brief"},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "see"},
                {"type": "input_image", "image_url": PIXEL},
                {"type": "input_file", "filename": "a.pdf", "file_data": PDF},
            ],
        },
        {"role": "assistant", "content": "seen"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "seen", "annotations": []}], "status": None},
        {"type": "reasoning", "id": None, "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "a cat"}]},
        {"role": "user", "content": "and?", "id": "mine"},
        {"role": "user", "content": "and?", "id": "mine"},
    ]
    async with open_client(parrot()) as desk:
        customer = AsyncCustomer(desk)
        response = await customer.create(said)
        found = await customer.input_items(response.id, order="asc", limit=2)
        assert [item.type for item in found] == [one.get("type", "message") for one in said]
        assert len({item.id for item in found}) == len(said)
        assert found[-2].id == "mine"
