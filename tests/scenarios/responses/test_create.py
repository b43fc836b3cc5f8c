"""A client written for the API gets its answer, whole or in pieces, and finds it again later."""

from typing import Any

import pytest
from openai import NotFoundError

from tests.scenarios.responses.cast import build_answering, parrot
from tests.scenarios.responses.customers import AsyncCustomer
from tests.scenarios.responses.desk import open_client


async def test_a_question_gets_its_answer(customer_of: Any) -> None:
    async with open_client(parrot()) as desk:
        response = await customer_of(desk).create("hello", metadata={"order": "7"})
        assert response.output_text == "you said hello"
        assert (response.status, response.model, response.metadata) == ("completed", "Concierge", {"order": "7"})
        assert response.error is None
        assert response.id.startswith("resp_")
        (message,) = response.output
        assert (message.type, message.id.startswith("msg_")) == ("message", True)


async def test_a_stream_tells_the_same(customer_of: Any) -> None:
    async with open_client(parrot()) as desk:
        events = await customer_of(desk).events("hello", metadata={"order": "7"})
        assert [event.type for event in events] == [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            *["response.output_text.delta"] * 3,
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
        assert [event.sequence_number for event in events] == list(range(len(events)))
        assert "".join(event.delta for event in events if event.type.endswith("delta")) == "you said hello"
        assert events[-1].response.output_text == "you said hello"
        assert events[0].response.metadata == events[-1].response.metadata == {"order": "7"}


async def test_the_clients_own_stream_puts_the_response_together(customer_of: Any) -> None:
    async with open_client(parrot()) as desk:
        events, final = await customer_of(desk).stream("hello")
        assert final.output_text == "you said hello"
        assert final.id == events[0].response.id
        assert [event.snapshot for event in events if event.type == "response.output_text.delta"] == [
            "you ",
            "you said ",
            "you said hello",
        ]


@pytest.mark.parametrize("base", ["", "/v1"])
async def test_both_paths_are_served(base: str) -> None:
    async with open_client(parrot()) as desk:
        api = desk.client(base=base)
        response = await api.responses.create(model="any", input="hello")
        assert (await api.responses.retrieve(response.id)).output_text == "you said hello"


async def test_a_response_is_found_again_until_it_is_deleted(customer_of: Any) -> None:
    async with open_client(parrot()) as desk:
        customer = customer_of(desk)
        made = await customer.create("hello")
        found = await customer.retrieve(made.id)
        assert found.model_dump() == made.model_dump()
        await customer.delete(made.id)
        for again in (customer.retrieve, customer.delete, customer.cancel, customer.input_items):
            with pytest.raises(NotFoundError):
                await again(made.id)
        assert desk.runs() == []


async def test_a_response_that_has_ended_stays_as_it_is_when_it_is_cancelled(customer_of: Any) -> None:
    async with open_client(parrot()) as desk:
        customer = customer_of(desk)
        made = await customer.create("hello")
        assert (await customer.cancel(made.id)).model_dump() == made.model_dump()


async def test_the_target_is_the_only_model(customer_of: Any) -> None:
    async with open_client(parrot()) as desk:
        customer = customer_of(desk)
        (model,) = await customer.models()
        assert (model.id, model.object) == ("Concierge", "model")
        assert await customer.model("Concierge") == model
        with pytest.raises(NotFoundError):
            await customer.model("gpt-5")


async def test_ids_can_not_be_guessed() -> None:
    async with open_client(parrot()) as desk:
        customer = AsyncCustomer(desk)
        ids = [(await customer.create("hello")).id for _ in range(3)]
        # The first twelve digits tell the time; eighty bits behind them tell nothing.
        random = [one.removeprefix("resp_")[12:] for one in ids]
        assert len(set(random)) == 3
        assert {len(one) for one in random} == {20}


async def test_a_stream_can_not_be_taken_up_again_yet() -> None:
    async with open_client(parrot()) as desk:
        made = await AsyncCustomer(desk).create("hello")
        refused = await desk.http.get(f"/v1/responses/{made.id}", params={"stream": "true"})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "stream")


async def test_an_agent_that_says_nothing_has_said_nothing() -> None:
    async with open_client(build_answering(lambda _: [])) as desk:
        customer = AsyncCustomer(desk)
        assert (await customer.create("hello")).output == []
        assert (await customer.events("hello"))[-1].response.output == []
