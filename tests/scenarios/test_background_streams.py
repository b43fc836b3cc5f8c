"""A stream in the background on Invocations: left, taken up again, read slowly and read by many."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from frontdesk import ApiKeyAuth
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.sessions.job import MAX_PENDING, MAX_RECENT_UPDATES
from tests.scenarios.cast import spell, two_voices
from tests.scenarios.desk import InvocationsHost, open_client, parse_events, until
from tests.scenarios.test_cancel import MINE, Slow


async def follow(desk: InvocationsHost, run_id: str = "mine", after: int | None = None) -> list[Any]:
    """The rest of a stream."""
    query = "stream=true" if after is None else f"stream=true&starting_after={after}"
    async with desk.client.stream("GET", f"/invocations/{run_id}?{query}") as response:
        assert response.status_code == 200, await response.aread()
        return [event async for event in parse_events(response.aiter_lines())]


@pytest.mark.parametrize("target", [spell, two_voices()], ids=["generator", "workflow"])
async def test_it_is_read_as_it_comes_and_once_more_from_any_event(target: Any) -> None:
    async with open_client(target) as desk:
        told = await desk.events("Hi you", background=True, headers=MINE)
        assert [event.number for event in told] == list(range(len(told)))
        assert told[-1].data == (await desk.get("mine")).json()
        assert await follow(desk) == told
        for after in range(len(told) + 1):
            assert await follow(desk, after=after) == told[after + 1 :]


async def test_the_first_event_is_the_same_before_the_run_begins_and_when_it_is_over() -> None:
    slow = Slow()
    async with open_client(slow.pieces, max_background_runs=1) as desk:
        await desk.ask("it", background=True)
        await slow.began.wait()
        async with desk.open_stream("it", background=True, headers=MINE) as (_, events):
            first = await anext(events)
            assert (await desk.get("mine")).json()["status"] == "queued"
            slow.go_on.set()
            rest = [event async for event in events]
        assert first.data["session_id"] == rest[-1].data["session_id"]
        assert await follow(desk) == [first, *rest]


async def test_a_reader_that_leaves_cancels_nothing() -> None:
    slow = Slow()
    async with open_client(slow.pieces) as desk:
        async with desk.open_stream("it", background=True, headers=MINE) as (_, events):
            assert (await anext(events)).name == "started"
        await slow.began.wait()
        await until(lambda: not desk.requests)
        slow.go_on.set()
        assert (await desk.wait_for_end("mine"))["status"] == "completed"
        assert not slow.left


async def test_a_reader_that_does_not_read_holds_up_nobody() -> None:
    count = 4 * (MAX_RECENT_UPDATES + MAX_PENDING)

    async def chatter(text: str) -> AsyncIterator[str]:
        for number in range(count):
            yield f"{number} " + "x" * 200
            await asyncio.sleep(0)

    async with open_client(chatter) as desk:
        reader, writer = await asyncio.open_connection("127.0.0.1", desk.port, limit=1024)
        await desk.ask("it", background=True, headers={"x-agent-invocation-id": "other"})
        async with desk.open_stream("it", background=True, headers=MINE) as (_, events):
            await anext(events)
        writer.write(b"GET /invocations/mine?stream=true HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
        await writer.drain()
        assert (await desk.wait_for_end("mine"))["status"] == "completed"
        assert (await desk.wait_for_end("other"))["status"] == "completed"
        body = await asyncio.wait_for(reader.read(), 60)
        writer.close()
        assert [int(number) for number in re.findall(rb"^id: (\d+)$", body, re.MULTILINE)] == list(range(count + 2))


async def test_a_stranger_finds_no_stream() -> None:
    auth = ApiKeyAuth({"ada": "the key of ada 123", "ben": "the key of ben 123"})
    ada, ben = ({"authorization": f"Bearer the key of {name} 123"} for name in ("ada", "ben"))
    async with open_client(spell, InvocationsChannel(auth=auth)) as desk:
        told = await desk.events("Hi", background=True, headers={**ada, **MINE})
        assert told[-1].name == "completed"
        for headers, status in ((ben, 404), (ada, 200), ({}, 401)):
            found = await desk.client.get("/invocations/mine?stream=true", headers=headers)
            assert found.status_code == status


async def test_a_transform_hook_holds_for_every_reader() -> None:
    def louder(update: Any) -> Any:
        if update.text == "b":
            return None
        update.contents[0].text = update.text.upper()
        return update

    async with open_client(spell, InvocationsChannel(stream_transform_hook=louder)) as desk:
        told = await desk.events("abc", background=True, headers=MINE)
        assert [event.data["text"] for event in told[1:-1]] == ["A", "C"]
        assert await follow(desk) == told
