"""Callers who name slow URLs: they hold up themselves, and nobody else."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost, ApiKeyAuth
from frontdesk.channels.responses import ResponsesChannel
from frontdesk_testing import EchoAgent, HostClient, serving
from tests.outbound.origin import Origin, ok
from tests.outbound.origin import serve_origin as originating
from tests.scenarios.desk import until

MALLORY, BOB = {"x-api-key": "the key of mallory, long enough"}, {"x-api-key": "the key of bob, long enough"}
AUTH = ApiKeyAuth({"mallory": MALLORY["x-api-key"], "bob": BOB["x-api-key"]})


async def _shows(client: HostClient, origin: Origin, path: str, who: dict[str, str]) -> Any:
    picture = {"type": "input_image", "image_url": f"http://127.0.0.1:{origin.port}{path}"}
    body = {"input": [{"role": "user", "content": [picture, {"type": "input_text", "text": "look"}]}]}
    return await client.http.post("/v1/responses", json=body, headers=who)


@pytest.mark.parametrize("slow", [16, 48])
async def test_the_slow_urls_of_one_caller_held_every_connection(slow: int) -> None:
    go_on, refused = asyncio.Event(), max(0, slow - 36)

    async def waiting(origin: Origin, writer: asyncio.StreamWriter) -> None:
        await go_on.wait()
        writer.write(ok(b"picture", "Content-Type: image/png"))

    async with originating() as origin:
        origin.answers.update({"/slow": waiting, "/quick": ok(b"picture", "Content-Type: image/png")})
        channel = ResponsesChannel(auth=AUTH, fetch_urls=True, fetch_http=True, fetch_from=[f"127.0.0.1:{origin.port}"])
        async with serving(AgentFrameworkHost(EchoAgent(), channels=[channel])) as client:
            held = [asyncio.create_task(_shows(client, origin, "/slow", MALLORY)) for _ in range(slow)]
            try:
                await until(lambda: len(origin.heads) >= 4)
                await until(lambda: sum(one.done() for one in held) == refused)
                async with asyncio.timeout(10):
                    assert (await _shows(client, origin, "/quick", BOB)).status_code == 200
                assert not go_on.is_set()
            finally:
                go_on.set()
                told = [(await one).status_code for one in held]
            # What is more than may wait is refused at once, and can be tried again.
            assert (told.count(200), told.count(429)) == (slow - refused, refused)


async def test_who_asks_for_too_many_is_told_when_to_come_back() -> None:
    async def silent(origin: Origin, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with originating() as origin:
        origin.answers["/slow"] = silent
        channel = ResponsesChannel(auth=AUTH, fetch_urls=True, fetch_http=True, fetch_from=[f"127.0.0.1:{origin.port}"])
        async with serving(AgentFrameworkHost(EchoAgent(), channels=[channel])) as client:
            held = [asyncio.create_task(_shows(client, origin, "/slow", MALLORY)) for _ in range(37)]
            done, left = await asyncio.wait(held, return_when=asyncio.FIRST_COMPLETED)
            (refused,) = [one.result() for one in done]
            error = refused.json()["error"]
            assert (refused.status_code, error["code"]) == (429, "too_many_requests")
            assert (refused.headers["retry-after"], error["param"]) == ("1", "input[0].content[0].image_url")
            for one in left:
                one.cancel()
            for one in left:
                with suppress(asyncio.CancelledError):
                    await one
