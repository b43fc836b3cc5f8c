"""A run that is under way can be cancelled from another connection, and whoever waits for it is told."""

import asyncio
from typing import Any

import pytest
from openai import NotFoundError

from frontdesk_testing import GatedAgent
from frontdesk_testing.internals import active_runs
from tests.scenarios.desk import until
from tests.scenarios.responses.customers import AsyncCustomer
from tests.scenarios.responses.desk import ResponsesHost, open_client


def _get_running(desk: ResponsesHost) -> str:
    (run,) = active_runs(desk.host)
    return run.record.run_id


@pytest.mark.parametrize("store", [True, False])
async def test_a_whole_answer_is_cancelled(customer_of: Any, store: bool) -> None:
    agent = GatedAgent()
    async with open_client(agent) as desk:
        waiting = asyncio.create_task(AsyncCustomer(desk).create("one two", store=store))
        await agent.started.wait()
        other = customer_of(desk)
        response_id = _get_running(desk)
        assert (await other.retrieve(response_id)).status == "in_progress"
        cancelled = await other.cancel(response_id) if store else await _cancel_unkept(other, response_id)
        told = await waiting
        assert (told.status, told.output, told.id) == ("cancelled", [], response_id)
        assert agent.cancelled.is_set()
        if store:
            assert cancelled.status == "cancelled"
            assert (await other.retrieve(response_id)).model_dump() == told.model_dump()
        assert desk.active == 0


async def _cancel_unkept(other: Any, response_id: str) -> Any:
    # It is gone as soon as it has ended.
    with pytest.raises(NotFoundError):
        await other.cancel(response_id)


async def test_a_stream_is_cancelled_and_still_ends_as_streams_do(customer_of: Any) -> None:
    agent = GatedAgent()
    async with open_client(agent) as desk:
        stream: Any = await desk.client().responses.create(model="any", input="one two", stream=True)
        events: list[Any] = []
        async for event in stream:
            events.append(event)
            if event.type == "response.output_text.delta":
                cancelled = await customer_of(desk).cancel(events[0].response.id)
                assert cancelled.status == "cancelled"
        last = events[-1]
        assert (last.type, last.response.status) == ("response.incomplete", "cancelled")
        (message,) = last.response.output
        assert (message.status, message.content[0].text) == ("incomplete", "one ")
        assert (await customer_of(desk).retrieve(last.response.id)).status == "cancelled"


async def test_a_running_response_is_deleted_with_its_run(customer_of: Any) -> None:
    agent = GatedAgent()
    async with open_client(agent) as desk:
        waiting = asyncio.create_task(AsyncCustomer(desk).create("one two"))
        await agent.started.wait()
        await customer_of(desk).delete(_get_running(desk))
        assert (await waiting).status == "cancelled"
        assert desk.runs() == []


async def test_a_cancelled_response_can_not_be_told_from_nothing_by_others_but_its_question_stays() -> None:
    agent = GatedAgent()
    async with open_client(agent) as desk:
        customer = AsyncCustomer(desk)
        waiting = asyncio.create_task(customer.create("one two"))
        await agent.started.wait()
        cancelled = await customer.cancel(_get_running(desk))
        await waiting
        agent.release.set()
        # The conversation goes on from there, with the question in it.
        told = await customer.create("three", previous_response_id=cancelled.id)
        assert told.output_text == "three"
        assert [message.text for message in agent.seen[-1]] == ["one two", "three"]


async def test_a_client_that_hangs_up_cancels_its_run() -> None:
    agent = GatedAgent()
    async with open_client(agent) as desk:
        stream: Any = await desk.client().responses.create(model="any", input="one two", stream=True)
        async for event in stream:
            if event.type == "response.output_text.delta":
                break
        await stream.close()
        await agent.cancelled.wait()
        await until(lambda: not desk.active)
        (run,) = desk.runs()
        assert run.status == "cancelled"
