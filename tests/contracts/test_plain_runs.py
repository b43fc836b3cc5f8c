"""The larger channel of the page about protocols keeps the channel contract, and does what the page states."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx
from agent_framework import Agent, Content, tool

from frontdesk import AgentFrameworkHost, ApiKeyAuth
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import ChannelContract, EchoAgent, FailingAgent, HostClient, parse_sse, serving
from tests.contracts.plain_runs_channel import PlainRunsChannel

KEY = "the-key-of-ada-is-long"


class TestPlainRuns(ChannelContract):
    path = "/plain"

    def channel(self, **settings: Any) -> PlainRunsChannel:
        return PlainRunsChannel(**{name: value for name, value in settings.items() if value is not None})

    def message(self, text: str) -> Any:
        return {"text": text}

    def run_id(self, answer: httpx.Response) -> str:
        return answer.json()["id"]

    def calls_about(self, run_id: str) -> Sequence[tuple[str, str]]:
        return [("GET", f"/plain/{run_id}"), ("DELETE", f"/plain/{run_id}")]

    def error_text(self, response: httpx.Response) -> str:
        assert response.headers["content-type"] == "application/json"
        return response.json()["error"]["message"]


def _host(target: Any) -> AgentFrameworkHost:
    return AgentFrameworkHost(target, channels=[PlainRunsChannel(auth=ApiKeyAuth({"ada": KEY}))])


def _serve(target: Any) -> AbstractAsyncContextManager[HostClient]:
    return serving(_host(target), headers={"x-api-key": KEY})


async def _wait_for_end(client: HostClient, run_id: str) -> dict[str, Any]:
    while True:
        run = (await client.http.get(f"/plain/{run_id}")).raise_for_status().json()
        if run["status"] not in ("queued", "running"):
            return run


async def test_a_stream_has_its_updates_and_its_run() -> None:
    async with _serve(EchoAgent()) as client:
        answer = await client.http.post("/plain", json={"text": "one two", "stream": True})
        events = list(parse_sse(answer.content))
    assert "".join(event.json() for event in events[:-1]) == "one two"
    assert (events[-1].event, events[-1].json()["status"]) == ("end", "completed")
    assert [event.id for event in events] == [str(number) for number in range(1, len(events) + 1)]


async def test_a_failed_stream_ends_with_the_failure() -> None:
    async with _serve(FailingAgent()) as client:
        answer = await client.http.post("/plain", json={"text": "one two", "stream": True})
        last = list(parse_sse(answer.content))[-1]
    assert (answer.status_code, last.json()["status"]) == (200, "failed")


async def test_a_background_run_is_fetched() -> None:
    async with _serve(EchoAgent()) as client:
        answer = await client.http.post("/plain", json={"text": "hello", "background": True})
        assert answer.status_code == 202
        assert (await _wait_for_end(client, answer.json()["id"]))["text"] == "hello"


async def test_an_approval_is_listed_and_decided() -> None:
    paid: list[int] = []

    @tool(approval_mode="always_require")
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    call = Content.from_function_call("call-1", "pay", arguments={"amount": 5})
    async with _serve(Agent(client=ScriptedChatClient([[call], "done"]), tools=[pay])) as client:
        await client.http.post("/plain", json={"text": "pay 5", "session": "s-1"})
        (waiting,) = (await client.http.get("/plain/approvals")).json()["approvals"]
        assert waiting["tool"] == "pay"
        assert paid == []
        decided = await client.http.post(f"/plain/approvals/{waiting['id']}", json={"approved": True})
        assert decided.json()["outcome"] == "recorded"
        assert (await _wait_for_end(client, decided.json()["run"]))["text"] == "done"
    assert paid == [5]


async def test_ids_of_requests() -> None:
    async with _serve(EchoAgent()) as client:
        own = await client.http.post("/plain", json={"text": "hello"}, headers={"x-request-id": "r-1"})
        other = await client.http.post("/plain", json={"text": "hello"})
        assert own.headers["x-request-id"] == "r-1"
        assert other.headers["x-request-id"] == other.json()["id"]
        once = [
            await client.http.post("/plain", json={"text": "hello"}, headers={"idempotency-key": "k-1"})
            for _ in range(2)
        ]
        assert once[0].json() == once[1].json()
