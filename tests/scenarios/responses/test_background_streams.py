"""A stream in the background is read, left, taken up again, and read by many; all of them read the same."""

import asyncio
import json
from typing import Any

import pytest
from openai import BadRequestError, NotFoundError

from frontdesk_testing import FailingAgent, GatedAgent
from tests.scenarios.cast import parrot, two_voices
from tests.scenarios.desk import until
from tests.scenarios.responses.desk import ResponsesHost, open_client
from tests.scenarios.responses.sequence import wrong_sequence


async def events_of(stream: Any) -> list[dict[str, Any]]:
    """All that is still to come."""
    return [json.loads(event.model_dump_json(exclude_unset=True)) async for event in stream]


def extract_text(events: list[dict[str, Any]]) -> str:
    return "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")


async def _begin(desk: ResponsesHost, words: str, count: int) -> tuple[str, list[dict[str, Any]]]:
    """Reads a few events of a new stream, and hangs up."""
    read: list[dict[str, Any]] = []
    stream = await desk.client().responses.create(model="m", input=words, background=True, stream=True)
    async with stream:
        while len(read) < count:
            read.append(json.loads((await anext(aiter(stream))).model_dump_json(exclude_unset=True)))
    return read[0]["response"]["id"], read


@pytest.mark.parametrize("target", [parrot(), two_voices()], ids=["agent", "workflow"])
async def test_it_is_read_as_it_comes_and_once_more_from_any_event(target: Any) -> None:
    async with open_client(target) as desk:
        client = desk.client()
        stream = await client.responses.create(model="m", input="hello", background=True, stream=True)
        told = await events_of(stream)
        assert not wrong_sequence(told)
        run_id = told[0]["response"]["id"]
        assert (told[0]["response"]["status"], told[1]["response"]["status"]) == ("queued", "in_progress")
        kept = await client.responses.retrieve(run_id)
        assert (
            kept.output_text
            == extract_text(told)
            == "".join(part["text"] for item in told[-1]["response"]["output"] for part in item["content"])
        )
        for after in range(len(told) + 2):
            again = await client.responses.retrieve(run_id, stream=True, starting_after=after)
            assert await events_of(again) == told[after + 1 :]
        assert await events_of(await client.responses.retrieve(run_id, stream=True)) == told


async def test_a_reader_that_hung_up_goes_on_where_it_was() -> None:
    agent = GatedAgent()
    async with open_client(agent) as desk:
        run_id, read = await _begin(desk, "one two three", 5)
        assert extract_text(read) == "one "
        assert desk.active == 1
        following = await desk.client().responses.retrieve(run_id, stream=True, starting_after=4)
        agent.release.set()
        rest = await events_of(following)
        assert not wrong_sequence([*read, *rest])
        assert extract_text([*read, *rest]) == "one two three"
        assert not agent.cancelled.is_set()


async def test_many_readers_read_the_same() -> None:
    agent = GatedAgent()
    async with open_client(agent) as desk:
        run_id, _ = await _begin(desk, "one two three", 1)
        clients = [desk.client() for _ in range(20)]
        reading = [asyncio.create_task(events_of(await one.responses.retrieve(run_id, stream=True))) for one in clients]
        await agent.started.wait()
        agent.release.set()
        told = await asyncio.gather(*reading)
        assert all(one == told[0] for one in told)
        assert not wrong_sequence(told[0])


async def test_one_that_waits_for_its_turn_is_followed_from_before_its_first_event() -> None:
    agent = GatedAgent()
    async with open_client(agent) as desk:
        client = desk.client()
        first = await client.responses.create(model="m", input="a b", background=True)
        await agent.started.wait()
        second = await client.responses.create(
            model="m", input="c d", background=True, stream=True, previous_response_id=None
        )
        following = asyncio.create_task(events_of(second))
        agent.release.set()
        told = await following
        assert extract_text(told) == "c d"
        assert (await client.responses.retrieve(first.id)).status in ("completed", "in_progress")


async def test_a_cancelled_one_ends_for_every_reader() -> None:
    agent = GatedAgent()
    async with open_client(agent) as desk:
        run_id, read = await _begin(desk, "one two", 5)
        following = asyncio.create_task(
            events_of(await desk.client().responses.retrieve(run_id, stream=True, starting_after=4))
        )
        assert (await desk.client().responses.cancel(run_id)).status == "cancelled"
        rest = await following
        assert rest[-1]["type"] == "response.incomplete"
        assert rest[-1]["response"]["status"] == "cancelled"
        assert not wrong_sequence([*read, *rest])
        again = await desk.client().responses.retrieve(run_id, stream=True)
        assert await events_of(again) == [*read, *rest]


async def test_a_failed_one_ends_for_every_reader() -> None:
    async with open_client(FailingAgent(after=2)) as desk:
        client = desk.client()
        told = await events_of(
            await client.responses.create(model="m", input="one two three", background=True, stream=True)
        )
        assert (told[-1]["type"], extract_text(told)) == ("response.failed", "one two ")
        assert "secret" not in json.dumps(told)
        again = await client.responses.retrieve(told[0]["response"]["id"], stream=True)
        assert await events_of(again) == told


async def test_what_keeps_no_events_can_t_be_followed() -> None:
    async with open_client(parrot()) as desk:
        client = desk.client()
        for background in (False, True):
            response = await client.responses.create(model="m", input="hello", background=background)
            await until(lambda: not desk.active)
            with pytest.raises(BadRequestError, match="have stored events"):
                await client.responses.retrieve(response.id, stream=True)
        with pytest.raises(NotFoundError):
            await client.responses.retrieve("resp_unknown", stream=True)


@pytest.mark.parametrize("query", ["stream=true&starting_after=x", "stream=true&starting_after=-1", "starting_after="])
async def test_a_query_that_makes_no_sense_is_refused(query: str) -> None:
    async with open_client(parrot()) as desk:
        refused = await desk.http.get(f"/v1/responses/resp_1?{query}")
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "starting_after")


async def test_a_deleted_one_is_gone_for_its_readers_too() -> None:
    agent = GatedAgent()
    async with open_client(agent) as desk:
        run_id, _ = await _begin(desk, "one two", 5)
        following = asyncio.create_task(
            events_of(await desk.client().responses.retrieve(run_id, stream=True, starting_after=4))
        )
        await desk.client().responses.delete(run_id)
        assert (await following)[-1]["type"] in ("response.failed", "response.incomplete")
        with pytest.raises(NotFoundError):
            await desk.client().responses.retrieve(run_id, stream=True)
