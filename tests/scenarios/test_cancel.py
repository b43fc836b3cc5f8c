"""A running invocation can be looked at, named and cancelled from another connection."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.scenarios.cast import echo
from tests.scenarios.desk import InvocationsHost, open_client

MINE = {"x-agent-invocation-id": "mine"}


class Slow:
    """Targets that say when they have begun, and then wait to be let go."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.go_on = asyncio.Event()
        self.left: list[str] = []
        self.entered = 0

    async def whole(self, text: str) -> str:
        await self._wait()
        return f"done with {text}"

    async def pieces(self, text: str) -> AsyncIterator[str]:
        yield "begun, "
        await self._wait()
        yield "done"

    async def _wait(self) -> None:
        self.entered += 1
        self.began.set()
        try:
            await self.go_on.wait()
        except BaseException as error:
            self.left.append(type(error).__name__)
            raise


async def _another_connection(desk: InvocationsHost) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=desk.client.base_url, timeout=60, trust_env=False)


async def test_a_running_invocation_can_be_looked_at_and_then_ends() -> None:
    slow = Slow()
    async with open_client(slow.whole) as desk:
        asked = asyncio.create_task(desk.ask("it", headers=MINE, session_id="s"))
        await slow.began.wait()
        running = (await desk.get("mine")).json()
        assert (running["id"], running["status"], running["session_id"]) == ("mine", "running", "s")
        assert (running["text"], running["finished_at"]) == ("", None)
        slow.go_on.set()
        response = await asked
        assert response.headers["x-agent-invocation-id"] == "mine"
        assert (await desk.get("mine")).json() == response.json()


async def test_a_whole_answer_is_cancelled_from_another_connection() -> None:
    slow = Slow()
    async with open_client(slow.whole) as desk, await _another_connection(desk) as other:
        asked = asyncio.create_task(desk.ask("it", headers=MINE, session_id="s"))
        await slow.began.wait()
        cancelled = await other.post("/invocations/mine/cancel")
        assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
        answer = await asked
        assert (answer.status_code, answer.json()) == (200, cancelled.json())
        assert answer.json()["error"]["code"] == "cancelled"
        assert slow.left == ["CancelledError"]
        assert not desk.active


async def test_a_stream_is_cancelled_from_another_connection() -> None:
    slow = Slow()
    async with open_client(slow.pieces) as desk, await _another_connection(desk) as other:
        async with desk.open_stream("it", headers=MINE, session_id="s") as (response, events):
            assert response.headers["x-agent-invocation-id"] == "mine"
            assert [(await anext(events)).name, (await anext(events)).name] == ["started", "update"]
            await slow.began.wait()
            assert (await other.get("/invocations/mine")).json()["status"] == "running"
            cancelled = await other.post("/invocations/mine/cancel")
            (last,) = [event async for event in events]
        assert (last.name, last.data) == ("cancelled", cancelled.json())
        assert slow.left
        assert not desk.active


@pytest.mark.parametrize("stream", [False, True])
async def test_a_cancelled_turn_keeps_its_question_and_frees_its_session(stream: bool) -> None:
    slow = Slow()
    async with open_client(slow.pieces if stream else slow.whole, session_wait_seconds=0) as desk:
        asked = asyncio.create_task(desk.ask("it", headers=MINE, session_id="s", stream=stream))
        await slow.began.wait()
        await desk.cancel("mine")
        await asked
        (question,) = desk.history("s")
        assert (question.text, question.additional_properties["hosting"]["status"]) == ("it", "cancelled")
        slow.go_on.set()
        assert (await desk.ask("again", session_id="s")).status_code == 200


async def test_cancelling_twice_or_too_late_changes_nothing() -> None:
    async with open_client(echo) as desk:
        done = (await desk.ask("it", headers=MINE)).json()
        for _ in range(2):
            assert (await desk.cancel("mine")).json() == done
    slow = Slow()
    async with open_client(slow.whole) as desk:
        asked = asyncio.create_task(desk.ask("it", headers=MINE))
        await slow.began.wait()
        first, second = await asyncio.gather(desk.cancel("mine"), desk.cancel("mine"))
        assert first.json() == second.json() == (await asked).json()
        assert (await desk.cancel("mine")).json() == first.json()


@pytest.mark.parametrize("stream", [False, True])
async def test_an_invocation_id_counts_once(stream: bool) -> None:
    async with open_client(echo) as desk:
        assert (await desk.ask("one", headers=MINE, stream=stream)).status_code == 200
        for again in (False, True):
            repeated = await desk.ask("two", headers=MINE, session_id="s", stream=again)
            assert (repeated.status_code, repeated.json()["error"]["code"]) == (409, "run_exists")
        assert (await desk.get("mine")).json()["text"] == "you said one"
        assert len(desk.sessions()) == len(desk.runs()) == 1


async def test_the_id_of_a_running_invocation_is_taken() -> None:
    slow = Slow()
    async with open_client(slow.whole) as desk:
        asked = asyncio.create_task(desk.ask("one", headers=MINE))
        await slow.began.wait()
        for body in ({}, {"stream": True}, {"background": True}):
            repeated = await desk.ask("two", headers=MINE, **body)
            assert (repeated.status_code, repeated.json()["error"]["code"]) == (409, "run_exists")
        slow.go_on.set()
        assert (await asked).json()["text"] == "done with one"


async def test_an_unknown_invocation_is_not_there() -> None:
    async with open_client(echo) as desk:
        for response in (await desk.get("nope"), await desk.cancel("nope")):
            assert response.status_code == 404
            assert response.json()["error"]["code"] == "not_found"
        assert desk.untouched()
