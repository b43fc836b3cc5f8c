"""A cancelled run can't change anything afterwards, whatever its tools do."""

import asyncio
import logging
import threading
from typing import Any

import pytest
from agent_framework import Agent, tool

from tests.scenarios.cast import build_scripted, call
from tests.scenarios.desk import InvocationsHost, open_client, until
from tests.scenarios.test_cancel import MINE


class Thread:
    """A synchronous tool that sits in its thread until it is let go."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.began = asyncio.Event()
        self.let_go = threading.Event()
        self.done: list[str] = []

    def agent(self) -> Agent:
        @tool(approval_mode="never_require")
        def dig() -> str:
            """Digs."""
            self.loop.call_soon_threadsafe(self.began.set)
            self.let_go.wait(20)
            self.done.append("dug")
            return "dug"

        return build_scripted(_digs_once("dig"), tools=[dig])


class Stubborn:
    """An async tool, and a function, that don't let themselves be cancelled."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.let_go = asyncio.Event()
        self.swallowed = 0

    def agent(self) -> Agent:
        @tool(approval_mode="never_require")
        async def stay() -> str:
            """Stays."""
            await self._stay()
            return "stayed"

        return build_scripted(_digs_once("stay"), tools=[stay])

    async def function(self, text: str) -> str:
        if text != "dig":
            return "fresh answer"
        await self._stay()
        return "late answer"

    async def _stay(self) -> None:
        self.began.set()
        while not self.let_go.is_set():
            try:
                await self.let_go.wait()
            except asyncio.CancelledError:
                self.swallowed += 1


def _digs_once(name: str) -> Any:
    def script(messages: list[Any]) -> list[Any]:
        if messages[-1].role == "tool":
            return ["late answer"]
        return [call(name)] if messages[-1].text == "dig" else ["fresh answer"]

    return script


async def _begin(desk: InvocationsHost, began: asyncio.Event, stream: bool) -> "asyncio.Task[Any]":
    asked = asyncio.create_task(desk.ask("dig", headers=MINE, session_id="s", stream=stream))
    await began.wait()
    return asked


@pytest.mark.parametrize("stream", [False, True])
async def test_a_thread_worked_on_and_kept_its_session_until_it_ended(stream: bool) -> None:
    thread = Thread()
    async with open_client(thread.agent(), cancel_grace_seconds=60, session_wait_seconds=0.01) as desk:
        asked = await _begin(desk, thread.began, stream)
        assert (await desk.cancel("mine")).json()["status"] == "cancelled"
        assert "cancelled" in (await asked).text
        assert not desk.active
        busy = await desk.ask("again", session_id="s")
        assert (busy.status_code, busy.json()["error"]["code"]) == (409, "session_busy")
        assert (await desk.ask("elsewhere", session_id="t")).status_code == 200
        thread.let_go.set()
        await _free(desk)
        assert thread.done == ["dug"]
        assert desk.list_texts("s") == ["dig", "again", "fresh answer"]
        assert "late answer" not in str(desk.runs())


async def _free(desk: InvocationsHost) -> None:
    async def asked() -> bool:
        return (await desk.ask("again", session_id="s")).status_code == 200

    await until(asked)


async def test_a_thread_never_ended_and_its_session_was_free_after_the_grace(caplog: pytest.LogCaptureFixture) -> None:
    thread = Thread()
    try:
        async with open_client(thread.agent(), cancel_grace_seconds=0.05) as desk:
            asked = await _begin(desk, thread.began, False)
            await desk.cancel("mine")
            assert (await asked).json()["status"] == "cancelled"
            assert (await desk.ask("again", session_id="s")).json()["text"] == "fresh answer"
            assert thread.done == []
            assert any("mine" in record.getMessage() for record in caplog.records if record.levelno == logging.WARNING)
            thread.let_go.set()
    finally:
        thread.let_go.set()


async def test_a_client_left_and_a_thread_worked_on() -> None:
    thread = Thread()
    async with open_client(thread.agent(), cancel_grace_seconds=60, session_wait_seconds=0.01) as desk:
        asked = await _begin(desk, thread.began, False)
        asked.cancel()
        await until(lambda: not desk.active)
        assert (await desk.ask("again", session_id="s")).status_code == 409
        thread.let_go.set()
        await _free(desk)
        assert desk.list_texts("s") == ["dig", "again", "fresh answer"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_swallowed_its_cancellation_and_ended_in_time(stream: bool) -> None:
    stubborn = Stubborn()
    async with open_client(stubborn.agent(), cancel_grace_seconds=60, session_wait_seconds=0.01) as desk:
        asked = await _begin(desk, stubborn.began, stream)
        cancelling = asyncio.create_task(desk.cancel("mine"))
        await until(lambda: stubborn.swallowed)
        assert (await desk.ask("again", session_id="s")).status_code == 409
        stubborn.let_go.set()
        assert (await cancelling).json()["status"] == "cancelled"
        answer = await asked
        assert "late answer" not in answer.text
        assert "cancelled" in answer.text
        assert (await desk.ask("again", session_id="s")).status_code == 200
        assert desk.list_texts("s") == ["dig", "again", "fresh answer"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("part", ["agent", "function"])
async def test_a_cancellation_was_swallowed_and_the_late_result_was_fenced_off(
    part: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    stubborn = Stubborn()
    target = stubborn.agent() if part == "agent" else stubborn.function
    async with open_client(target, cancel_grace_seconds=0.05) as desk:
        asked = await _begin(desk, stubborn.began, stream)
        assert (await desk.cancel("mine")).status_code == 200
        assert (await desk.ask("again", session_id="s")).json()["text"] == "fresh answer"
        stubborn.let_go.set()
        answer = await asked
        assert "late answer" not in answer.text
        assert "cancelled" in answer.text
        assert (await desk.get("mine")).json()["status"] == "cancelled"
        assert "late answer" not in str(desk.runs()) + str(desk.list_texts("s"))
        assert desk.list_texts("s")[-2:] == ["again", "fresh answer"]
        assert not desk.active
        warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        # One when its session was taken away, and one for a result that came all the same.
        assert len([text for text in warnings if "mine" in text]) == (1 if part == "agent" else 2)
        assert (await desk.ask("more", session_id="s")).json()["text"] == "fresh answer"


async def test_a_stubborn_run_in_the_background_was_fenced_off_too() -> None:
    stubborn = Stubborn()
    async with open_client(stubborn.agent(), cancel_grace_seconds=0.05) as desk:
        await desk.ask("dig", headers=MINE, session_id="s", background=True)
        await stubborn.began.wait()
        await desk.cancel("mine")
        assert (await desk.ask("again", session_id="s")).json()["text"] == "fresh answer"
        stubborn.let_go.set()
        assert (await desk.wait_for_end("mine"))["status"] == "cancelled"
        assert "late answer" not in str(desk.runs()) + str(desk.list_texts("s"))
