"""Hosts that were killed in the middle of long runs; their readers went on elsewhere, and read every word once."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk_testing.sse import read_sse
from tests.faults.crash.processes import HostProcess, HostProcesses
from tests.faults.crash.storyteller import tell
from tests.scenarios.desk import until
from tests.scenarios.responses.sequence import wrong_sequence


@pytest.fixture(params=["sqlite", "postgres"])
async def house(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[HostProcesses]:
    place = str(tmp_path / "state") if request.param == "sqlite" else request.getfixturevalue("postgres")
    async with HostProcesses(request.param, place, tmp_path / "signs", lease=1.0, server="storyteller") as house:
        yield house


class Reader:
    """Reads a stream in pieces, each wherever it is told to."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    @property
    def run_id(self) -> str:
        return self.events[0]["response"]["id"]

    @property
    def text(self) -> str:
        return "".join(event["delta"] for event in self.events if event["type"] == "response.output_text.delta")

    async def ask(self, host: HostProcess, text: str, most: int) -> None:
        """Begins a story, and reads so many of its events."""
        body = {"model": "m", "input": text, "background": True, "stream": True}
        async with host.client.stream("POST", "/v1/responses", json=body) as response:
            await self._read(response, most)

    async def go_on(self, host: HostProcess, most: int = 10**6) -> None:
        """Reads so many more."""
        after = f"&starting_after={len(self.events) - 1}" if self.events else ""
        async with host.client.stream("GET", f"/v1/responses/{self.run_id}?stream=true{after}") as response:
            await self._read(response, most)

    async def _read(self, response: httpx.Response, most: int) -> None:
        assert response.status_code == 200, await response.aread()
        wanted = len(self.events) + most
        try:
            async for event in read_sse(response.aiter_bytes()):
                self.events.append(json.loads(event.data))
                if len(self.events) >= wanted:
                    return
        except (httpx.TransportError, ValueError):
            return

    @property
    def ended(self) -> bool:
        return self.events[-1]["type"] in ("response.completed", "response.failed", "response.incomplete")

    def judge(self) -> dict[str, Any]:
        """What was read in pieces is a whole stream; returns the response as it ended."""
        assert not wrong_sequence(self.events)
        return self.events[-1]["response"]


async def test_the_host_was_killed_in_mid_stream_and_the_reader_went_on_at_the_next_one(house: HostProcesses) -> None:
    first = await house.start()
    reader = Reader()
    await reader.ask(first, "40 stop", 12)
    reading = asyncio.create_task(reader.go_on(first))
    await until(lambda: "word20 " in reader.text)
    first.kill()
    await reading
    assert not reader.ended
    second = await house.start()
    await reader.go_on(second)
    response = reader.judge()
    assert (response["status"], response["error"]["code"]) == ("failed", "invalid_prompt")
    assert reader.text == tell(21)
    kept = (await second.client.get(f"/v1/responses/{reader.run_id}")).json()
    assert kept["status"] == "failed"
    assert "interrupted" in kept["error"]["message"]


async def test_a_finished_one_was_there_after_the_kill(house: HostProcesses) -> None:
    first = await house.start()
    reader = Reader()
    await reader.ask(first, "20", 3)
    whole = Reader()
    whole.events = list(reader.events)
    await whole.go_on(first)
    first.kill()
    second = await house.start()
    await reader.go_on(second, 5)
    await reader.go_on(second)
    assert reader.events == whole.events
    assert reader.judge()["output"][0]["content"][0]["text"] == reader.text == tell(20)


async def test_what_only_waited_was_run_by_the_next_one(house: HostProcesses) -> None:
    first = await house.start()
    ids: list[str] = []
    for text in ("10 stop", "10 stop", "10", "12"):
        answer = await first.client.post("/invocations", json={"message": text, "background": True})
        ids.append(answer.json()["id"])
    await until(lambda: _is(first, ids[1], "running"))
    first.kill()
    second = await house.start()
    for run_id, status in zip(ids, ("failed", "failed", "completed", "completed"), strict=True):
        await until(lambda run_id=run_id, status=status: _is(second, run_id, status))
    assert (await second.client.get(f"/invocations/{ids[3]}")).json()["text"] == tell(12)


async def _is(host: HostProcess, run_id: str, status: str) -> bool:
    path = "/v1/responses" if run_id.startswith("resp_") else "/invocations"
    found = (await host.client.get(f"{path}/{run_id}")).json()
    assert found["status"] in ("queued", "running", "in_progress", status)
    return found["status"] == status


@pytest.fixture
async def pair(postgres: str, tmp_path: Path) -> AsyncIterator[tuple[HostProcesses, HostProcess, HostProcess]]:
    """Two hosts on one database."""
    async with HostProcesses("postgres", postgres, tmp_path / "signs", lease=2.0, server="storyteller") as house:
        yield house, *await asyncio.gather(house.start(), house.start())


async def test_a_reader_moved_to_another_process_and_back(pair: tuple[HostProcesses, HostProcess, HostProcess]) -> None:
    house, one, other = pair
    reader, whole = Reader(), Reader()
    await reader.ask(one, "200 stop", 6)
    whole.events = list(reader.events)
    watching = asyncio.create_task(whole.go_on(other))
    for turn in range(10):
        await reader.go_on((other, one)[turn % 2], 9)
    house.sign("stop").touch()
    turn = 0
    while not reader.ended:
        turn += 1
        await reader.go_on((other, one)[turn % 2], 13)
    await watching
    assert reader.events == whole.events
    assert reader.judge()["output"][0]["content"][0]["text"] == reader.text == tell(200)


async def test_a_run_was_cancelled_from_another_process(pair: tuple[HostProcesses, HostProcess, HostProcess]) -> None:
    _, one, other = pair
    reader = Reader()
    await reader.ask(one, "10 stop", 4)
    cancelled = (await other.client.post(f"/v1/responses/{reader.run_id}/cancel")).json()
    assert cancelled["status"] == "cancelled"
    await reader.go_on(other)
    assert reader.judge()["status"] == "cancelled"
    assert (await one.client.get(f"/v1/responses/{reader.run_id}")).json()["status"] == "cancelled"


async def test_a_process_that_stood_still_too_long_wrote_nothing_more(
    pair: tuple[HostProcesses, HostProcess, HostProcess],
) -> None:
    house, one, other = pair
    reader = Reader()
    await reader.ask(one, "10 stop", 4)
    one.pause()
    await until(lambda: _is(other, reader.run_id, "failed"))
    house.sign("stop").touch()
    one.go_on()
    await reader.go_on(other)
    assert reader.judge()["status"] == "failed"
    # Whatever the first one came to was fenced off.
    await until(lambda: _is(one, reader.run_id, "failed"))
    again = Reader()
    again.events = reader.events[:1]
    await again.go_on(one)
    assert again.events == reader.events


async def test_the_one_that_was_left_finished_what_waited_at_the_other(
    pair: tuple[HostProcesses, HostProcess, HostProcess],
) -> None:
    house, one, other = pair
    ids = [
        (await one.client.post("/invocations", json={"message": text, "background": True})).json()["id"]
        for text in ("10 stop", "10 stop", "10", "10")
    ]
    # The other has room, and takes what waits here.
    for run_id in ids[2:]:
        await until(lambda run_id=run_id: _is(one, run_id, "completed"))
    house.sign("stop").touch()
    for run_id in ids[:2]:
        await until(lambda run_id=run_id: _is(other, run_id, "completed"))
