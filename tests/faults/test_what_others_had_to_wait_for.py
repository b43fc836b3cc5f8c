"""Found by an attacker: requests that were not counted, not watched, or parsed for somebody who may not come in."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from agent_framework import Message
from websockets.asyncio.client import connect

from frontdesk import AgentFrameworkHost, ApiKeyAuth, HttpLimits, NativeIdAllowlist
from frontdesk.auth.verifier import HttpVerifier
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.concurrency.current import current_caller
from frontdesk.http.endpoint import HttpCall, HttpEndpoint
from frontdesk_testing import EchoAgent, GatedAgent, serving
from tests.asgi.test_messages import GONE
from tests.faults.test_request_heads import serve
from tests.scenarios.desk import until

ALICE, BOB = {"x-api-key": "the key of alice, long enough"}, {"x-api-key": "the key of bob, long enough"}
AUTH = ApiKeyAuth({"alice": ALICE["x-api-key"], "bob": BOB["x-api-key"]})
LARGE = b"{" * 70_000


def host_of(target: Any, **options: Any) -> AgentFrameworkHost:
    kinds = (InvocationsChannel, ResponsesChannel, ConversationsChannel)
    return AgentFrameworkHost(target, channels=[kind(auth=AUTH, **options) for kind in kinds])


async def test_messages_were_unpacked_before_anybody_counted_them() -> None:
    async with serve() as found, connect(f"ws://127.0.0.1:{found.port}/v1/responses", compression="deflate") as socket:
        assert socket.protocol.extensions == []


async def test_requests_to_conversations_were_not_counted() -> None:
    begun = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        yield b"{"
        begun.set()
        await asyncio.Event().wait()

    async with serving(host_of(EchoAgent(), limits=HttpLimits(max_running_per_caller=1))) as client:
        path, headers = "/v1/conversations", {**ALICE, "content-type": "application/json"}
        held = asyncio.create_task(client.http.post(path, content=endless(), headers=headers))
        await begun.wait()

        async def refused() -> bool:
            return (await client.http.post(path, json={}, headers=ALICE)).status_code == 429

        await until(refused)
        assert (await client.http.post(path, json={}, headers=BOB)).status_code == 200
        held.cancel()


@pytest.mark.parametrize("path", ["/invocations", "/v1/responses"])
async def test_readers_of_a_run_were_not_counted(path: str) -> None:
    agent = GatedAgent()
    body = {"message" if path == "/invocations" else "input": "one", "stream": True, "background": True}
    async with serving(host_of(agent, limits=HttpLimits(max_running_per_caller=2))) as client:
        async with client.http.stream("POST", path, json=body, headers=ALICE) as answer:
            lines = answer.aiter_lines()
            first = json.loads(await anext(line[6:] async for line in lines if line.startswith("data: ")))
        run_id = first["id"] if path == "/invocations" else first["response"]["id"]
        follow: dict[str, Any] = {"params": {"stream": "true"}, "headers": ALICE}
        place = f"{path}/{run_id}"
        async with client.http.stream("GET", place, **follow), client.http.stream("GET", place, **follow):
            refused = await client.http.get(place, headers=ALICE)
            assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_requests")
            agent.release.set()


@pytest.mark.parametrize("path", ["/invocations", "/v1/responses", "/v1/conversations"])
@pytest.mark.parametrize("chunked", [False, True])
async def test_a_large_body_was_parsed_for_somebody_who_may_not_come_in(path: str, chunked: bool) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield LARGE

    async with serving(host_of(EchoAgent(), allowlist=NativeIdAllowlist(["bob"]))) as client:

        async def told(headers: dict[str, str]) -> httpx.Response:
            headers = {**headers, "content-type": "application/json"}
            return await client.http.post(path, content=pieces() if chunked else LARGE, headers=headers)

        assert (await told(ALICE)).status_code == 403
        assert (await told(BOB)).status_code == 400


@pytest.mark.parametrize("name", ["content-type", "authorization", "origin"])
async def test_of_two_names_or_credentials_the_last_counted(name: str) -> None:
    async with serving(host_of(EchoAgent())) as client:
        twice = [(name, "a.example"), (name, "b.example"), *ALICE.items()]
        refused = await client.http.post("/invocations", json={"message": "hi"}, headers=twice)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "repeated_header")


async def test_what_was_read_for_a_client_went_on_after_it_had_left() -> None:
    ended = asyncio.Event()

    async def read(call: HttpCall) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def refuse(call: HttpCall, error: Exception) -> None:
        raise AssertionError("nobody is there to be refused")

    async def receive() -> Any:
        return GONE

    async def send(message: Any) -> None:
        raise AssertionError("nobody is there to be answered")

    endpoint = HttpEndpoint(HttpVerifier("door", None, allow_anonymous=True), refuse, GET=read)
    await endpoint({"type": "http", "method": "GET", "path": "/", "headers": [], "client": None}, receive, send)
    assert ended.is_set()


async def test_whose_large_work_it_is_was_not_known() -> None:
    seen: list[Any] = []

    async def look(messages: list[Message]) -> str:
        seen.append(current_caller.get())
        return "looked"

    async with serving(host_of(look)) as client:
        for headers in (ALICE, BOB):
            answer = await client.http.post("/v1/responses", json={"input": "hi"}, headers=headers)
            assert answer.status_code == 200
            address = f"ws{str(client.http.base_url).removeprefix('http').rstrip('/')}/v1/responses"
            async with connect(address, additional_headers=headers) as socket:
                await socket.send(json.dumps({"type": "response.create", "input": "hi"}))
                await until(lambda: len(seen) % 2 == 0)
    alice, bob = seen[0], seen[2]
    assert seen == [alice, alice, bob, bob]
    assert alice != bob
    assert current_caller.get() is None
