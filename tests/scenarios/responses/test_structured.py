"""An answer with a structure: asked for with a schema, checked by the framework, parsed by the client."""

from typing import Any

from agent_framework import Content
from pydantic import BaseModel

from tests.scenarios.responses.cast import Finish, agent, build_answering, call
from tests.scenarios.responses.customers import AsyncCustomer
from tests.scenarios.responses.desk import open_client

LOOK: Any = {"type": "function", "name": "look", "strict": True, "parameters": {"type": "object", "properties": {}}}


class Room(BaseModel):
    """What the agent is asked for."""

    number: int
    view: str


TWELVE = '{"number": 12, "view": "sea"}'
FORM: Any = {"format": {"type": "json_schema", "name": "Room", "schema": Room.model_json_schema(), "strict": True}}


async def test_parse_gives_the_model_filled_in(customer_of: Any) -> None:
    target = agent([TWELVE])
    async with open_client(target) as desk:
        response = await customer_of(desk).parse("which room?", text_format=Room)
        assert response.output_parsed == Room(number=12, view="sea")
        asked = target.client.options[-1]["response_format"]
        assert asked["json_schema"]["name"] == "Room"
        assert asked["json_schema"]["strict"] is True
        assert set(asked["json_schema"]["schema"]["properties"]) == {"number", "view"}
        assert response.text.format.type == "json_schema"


async def test_a_stream_is_parsed_at_its_end(customer_of: Any) -> None:
    async with open_client(agent([TWELVE[:9], TWELVE[9:]])) as desk:
        events, final = await customer_of(desk).stream("which room?", text_format=Room)
        assert final.output_parsed == Room(number=12, view="sea")
        (done,) = [event for event in events if event.type == "response.output_text.done"]
        assert done.parsed == Room(number=12, view="sea")


async def test_any_object_can_be_asked_for() -> None:
    target = agent(['{"a": 1}'])
    async with open_client(target) as desk:
        response = await AsyncCustomer(desk).create("json, please", text={"format": {"type": "json_object"}})
        assert response.output_text == '{"a": 1}'
        assert target.client.options[-1]["response_format"] == {"type": "json_object"}


async def test_a_refusal_is_an_answer_too(customer_of: Any) -> None:
    no = Content.from_text("no", additional_properties={"core": {"model_output_kind": "refusal"}})
    async with open_client(build_answering(lambda _: [no])) as desk:
        customer = customer_of(desk)
        response = await customer.parse("which room?", text_format=Room)
        assert response.output_parsed is None
        assert response.output[0].content[0].refusal == "no"
        events, final = await customer.stream("which room?", text_format=Room)
        assert final.output[0].content[0].refusal == "no"
        assert "response.refusal.delta" in [event.type for event in events]


async def test_an_answer_that_was_cut_off_is_incomplete_and_not_wrong() -> None:
    async with open_client(build_answering(lambda _: [TWELVE[:9], Finish("length")])) as desk:
        customer = AsyncCustomer(desk)
        for response in (await customer.create("?", text=FORM), (await customer.events("?", text=FORM))[-1].response):
            assert (response.status, response.output_text) == ("incomplete", TWELVE[:9])


async def test_a_call_comes_before_the_structure(customer_of: Any) -> None:
    async with open_client(agent([call("look")], [TWELVE])) as desk:
        customer = customer_of(desk)
        asked = await customer.parse("which room?", text_format=Room, tools=[LOOK])
        (item,) = asked.output
        assert (item.type, item.parsed_arguments) == ("function_call", {})
        output = [{"type": "function_call_output", "call_id": item.call_id, "output": "seen"}]
        told = await customer.parse(output, text_format=Room, tools=[LOOK], previous_response_id=asked.id)
        assert told.output_parsed == Room(number=12, view="sea")


async def test_an_agent_that_breaks_its_promise_has_failed() -> None:
    async with open_client(build_answering(lambda _: ["no structure at all"])) as desk:
        customer = AsyncCustomer(desk)
        failed = await customer.create("?", text=FORM)
        assert failed.status == "failed"
        assert "no structure" not in failed.model_dump_json()
        last = (await customer.events("?", text=FORM))[-1]
        assert (last.type, last.response.status) == ("response.failed", "failed")
