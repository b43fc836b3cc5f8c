"""What is kept is what the caller asks to be kept, unless the operator always keeps it."""

from typing import Any

import pytest
from openai import BadRequestError, NotFoundError

from frontdesk.models.request import ChannelRequest
from tests.scenarios.responses.cast import parrot
from tests.scenarios.responses.customers import AsyncCustomer
from tests.scenarios.responses.desk import open_client


async def test_what_is_not_stored_can_not_be_found_or_continued(customer_of: Any) -> None:
    async with open_client(parrot()) as desk:
        customer = customer_of(desk)
        whole = await customer.create("hello", store=False)
        streamed = (await customer.events("hello", store=False))[-1].response
        for response in (whole, streamed):
            assert (response.output_text, response.store) == ("you said hello", False)
            for again in (customer.retrieve, customer.cancel, customer.delete, customer.input_items):
                with pytest.raises(NotFoundError):
                    await again(response.id)
            with pytest.raises(BadRequestError) as caught:
                await customer.create("again", previous_response_id=response.id)
            assert caught.value.code == "previous_response_not_found"
        assert (desk.runs(), desk.ledger.kept_sessions, dict(desk.ledger.kept_messages)) == ([], {}, {})


async def test_a_turn_that_is_not_stored_reads_the_conversation_and_leaves_nothing_in_it() -> None:
    target = parrot()
    async with open_client(target) as desk:
        customer = AsyncCustomer(desk)
        first = await customer.create("one")
        aside = await customer.create("two", previous_response_id=first.id, store=False)
        assert target.client.said()[0] == ("user", "one")
        assert aside.previous_response_id == first.id
        await customer.create("three", previous_response_id=first.id)
        assert [text for role, text in target.client.said() if role == "user"] == ["one", "three"]


async def test_an_operator_can_always_keep_it(customer_of: Any) -> None:
    async with open_client(parrot(), store_policy="always") as desk:
        customer = customer_of(desk)
        response = await customer.create("hello", store=False)
        assert response.store is True
        assert (await customer.retrieve(response.id)).output_text == "you said hello"
        assert (await customer.create("again", previous_response_id=response.id)).output_text == "you said again"


async def test_a_hook_can_decide_for_each_request() -> None:
    def hook(request: ChannelRequest, **_: Any) -> ChannelRequest:
        return request.replace(store=request.attributes.get("keep", False))

    async with open_client(parrot(), run_hook=hook, tapped=False) as desk:
        customer = AsyncCustomer(desk)
        kept = await customer.create("hello", extra_body={"keep": True})
        forgotten = await customer.create("hello")
        assert (await customer.retrieve(kept.id)).output_text == "you said hello"
        with pytest.raises(NotFoundError):
            await customer.retrieve(forgotten.id)
