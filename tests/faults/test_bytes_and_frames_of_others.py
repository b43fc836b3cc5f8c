"""Found by an attacker: bodies without a sum, frames that nobody counted, and strangers who wrote into the log."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus
from websockets.frames import Frame, Opcode

from frontdesk import AgentFrameworkHost, ApiKeyAuth, HttpLimits
from frontdesk.asgi.messages import BodyBudget, BodyHold
from frontdesk.channels.chat_completions import ChatCompletionsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk.errors import RequestError
from frontdesk_testing import EchoAgent, GatedAgent, HostClient, serving
from tests.faults.test_request_heads import serve
from tests.scenarios.desk import until

ALICE, BOB = {"x-api-key": "the key of alice, long enough"}, {"x-api-key": "the key of bob, long enough"}
AUTH = ApiKeyAuth({"alice": ALICE["x-api-key"], "bob": BOB["x-api-key"]})
SMALL_BUDGET = HttpLimits(max_bytes_per_caller=150_000, max_bytes=400_000)
LONG = "x" * 100_000
BODIES: dict[str, Any] = {
    "/invocations": {"message": LONG},
    "/v1/responses": {"input": LONG},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": LONG}]},
}


def host_of(target: Any, **options: Any) -> AgentFrameworkHost:
    kinds = (InvocationsChannel, ResponsesChannel, ChatCompletionsChannel)
    return AgentFrameworkHost(target, channels=[kind(auth=AUTH, **options) for kind in kinds])


def socket_of(client: HostClient, path: str = "/v1/responses", **options: Any) -> connect:
    return connect(f"ws{str(client.http.base_url).removeprefix('http').rstrip('/')}{path}", **options)


class TestBytes:
    @pytest.mark.parametrize("chunked", [False, True])
    @pytest.mark.parametrize("path", list(BODIES))
    async def test_large_bodies_were_let_in_by_their_number_and_not_by_their_sum(
        self, path: str, chunked: bool
    ) -> None:
        agent = GatedAgent()
        raw = json.dumps(BODIES[path]).encode()

        async def pieces() -> AsyncIterator[bytes]:
            for start in range(0, len(raw), 10_000):
                yield raw[start : start + 10_000]

        async with serving(host_of(agent, limits=SMALL_BUDGET)) as client:

            def post(who: dict[str, str], content: Any = None) -> Any:
                headers = {**who, "content-type": "application/json"}
                return client.http.post(path, content=content or (pieces() if chunked else raw), headers=headers)

            first = asyncio.create_task(post(ALICE))
            await agent.started.wait()
            refused = await post(ALICE)
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
            assert refused.json()["error"]["code"] == "too_many_requests"
            agent.release.set()
            assert (await post(ALICE, raw[:-100_000] + raw[-10:])).status_code in (200, 400)
            assert (await post(BOB)).status_code == 200
            assert (await first).status_code == 200
            assert (await post(ALICE)).status_code == 200

    async def test_a_body_that_was_refused_was_read_first(self) -> None:
        agent = GatedAgent()
        raw = json.dumps(BODIES["/invocations"]).encode()
        async with serving(host_of(agent, limits=SMALL_BUDGET)) as client:
            first = asyncio.create_task(client.http.post("/invocations", content=raw, headers=ALICE))
            await agent.started.wait()
            url = client.http.base_url
            reader, writer = await asyncio.open_connection(url.host, url.port)
            head = f"POST /invocations HTTP/1.1\r\nhost: a\r\nx-api-key: {ALICE['x-api-key']}\r\ncontent-length: 99999"
            writer.write(head.encode() + b"\r\n\r\n")
            # Not a byte of the body was sent.
            assert (await reader.readline()).startswith(b"HTTP/1.1 429")
            writer.close()
            agent.release.set()
            await first

    async def test_messages_of_sockets_were_not_added_up(self) -> None:
        agent = GatedAgent()
        message = json.dumps({"type": "response.create", "input": LONG})
        async with serving(host_of(agent, limits=SMALL_BUDGET)) as client, AsyncExitStack() as stack:
            one, two = [await stack.enter_async_context(socket_of(client, additional_headers=ALICE)) for _ in range(2)]
            await one.send(message)
            await agent.started.wait()
            await two.send(message)
            told = json.loads(await two.recv())
            assert (told["status"], told["error"]["code"]) == (429, "too_many_requests")
            agent.release.set()
            while json.loads(await one.recv())["type"] != "response.completed":
                pass
            await two.send(message)
            assert json.loads(await two.recv())["type"] == "response.created"

    async def test_messages_that_were_not_complete_were_not_counted(self) -> None:
        async with serving(host_of(EchoAgent(), limits=SMALL_BUDGET)) as client, AsyncExitStack() as stack:
            sockets = [await stack.enter_async_context(socket_of(client, additional_headers=ALICE)) for _ in range(2)]

            async def never_ending(size: int) -> AsyncIterator[str]:
                yield "x" * size
                await asyncio.Event().wait()

            sending = [asyncio.create_task(socket.send(never_ending(300_000))) for socket in sockets]
            closed = [asyncio.create_task(socket.wait_closed()) for socket in sockets]
            await asyncio.wait(closed, return_when=asyncio.FIRST_COMPLETED)
            assert sorted(socket.close_code or 0 for socket in sockets) == [0, 1008]
            for task in (*sending, *closed):
                task.cancel()

    def test_others_had_taken_all_bytes(self) -> None:
        budget = BodyBudget(1_000_000, 600_000)
        for who in ("alice", "bob"):
            BodyHold(budget, ("api", who)).add(500_000)
        hold = BodyHold(budget, ("api", "carol"))
        with pytest.raises(RequestError) as caught:
            hold.add(300_000)
        assert (caught.value.status, caught.value.retry_after) == (503, 1)
        hold.add(200_000)
        with pytest.raises(RequestError):
            BodyHold(budget, ("api", "carol")).add(20_000)
        hold.release()
        assert budget._total == 1_000_000
        assert set(budget._held) == {("api", "alice"), ("api", "bob")}

    def test_one_body_larger_than_the_budget_was_never_let_in(self) -> None:
        hold = BodyHold(BodyBudget(100, 50), ("api", "alice"))
        for _ in range(4):
            hold.add(60)


def flood(*frames: Frame) -> bytes:
    return b"".join(frame.serialize(mask=True) for frame in frames)


PINGS = flood(*[Frame(Opcode.PING, b"")] * 2_000)
PARTS = flood(Frame(Opcode.TEXT, b"{", fin=False), *[Frame(Opcode.CONT, b"", fin=False)] * 2_000)
MESSAGES = flood(*[Frame(Opcode.TEXT, b"{}")] * 2_000)


async def close_with(socket: ClientConnection, sent: bytes) -> int | None:
    socket.transport.write(sent)
    await socket.wait_closed()
    return socket.close_code


class TestFrames:
    @pytest.mark.parametrize("frames", [PINGS, PARTS, MESSAGES], ids=["pings", "parts", "messages"])
    @pytest.mark.parametrize("path", ["/v1/responses", "/chat/api/feed"])
    async def test_frames_that_are_no_messages_were_not_counted(
        self, path: str, frames: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        channels = [ResponsesChannel(), WebChatChannel()]
        async with serving(AgentFrameworkHost(EchoAgent(), channels=channels)) as client:
            headers = {"cookie": await cookie_of(client), "origin": str(client.http.base_url).rstrip("/")}
            async with socket_of(client, path, additional_headers=headers, ping_interval=None) as socket:
                assert await close_with(socket, frames) == 1008
        assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []

    async def test_a_large_message_in_many_parts_is_still_taken(self) -> None:
        async with serve() as found, connect(f"ws://127.0.0.1:{found.port}/v1/responses") as socket:
            message = json.dumps({"type": "response.create", "input": "x" * 3_000_000})
            await socket.send(message[start : start + 1_024] for start in range(0, len(message), 1_024))
            assert json.loads(await socket.recv())["type"] == "response.created"


async def cookie_of(client: HostClient) -> str:
    answer = await client.http.get("/chat")
    return "; ".join(f"{name}={value}" for name, value in answer.cookies.items())


class TestLogs:
    async def test_a_refused_handshake_was_logged_as_an_error(self, caplog: pytest.LogCaptureFixture) -> None:
        async with serving(host_of(EchoAgent())) as client:
            with pytest.raises(InvalidStatus) as caught:
                async with socket_of(client, additional_headers={"x-api-key": "a key that nobody has"}):
                    pass
            assert caught.value.response.status_code == 401
            url = client.http.base_url
            # A client that leaves at once, or does not wait for the answer, leaves no line either.
            for more in (b"", flood(Frame(Opcode.PING, b"")), flood(Frame(Opcode.CLOSE, b""))):
                reader, writer = await asyncio.open_connection(url.host, url.port)
                writer.write(
                    b"GET /v1/responses HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
                    b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
                )
                await writer.drain()
                writer.write(more)
                await reader.read()
                writer.close()
        assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []

    async def test_a_message_that_is_no_text_was_logged_with_a_traceback(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with (
            serving(host_of(EchoAgent())) as client,
            socket_of(client, additional_headers=ALICE) as socket,
        ):
            assert await close_with(socket, flood(Frame(Opcode.TEXT, b"\xff\xfe"))) == 1007
        assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_what_a_caller_holds_is_free_again_when_the_connection_is_lost() -> None:
    agent = GatedAgent()
    message = json.dumps({"type": "response.create", "input": LONG})
    async with serving(host_of(agent, limits=SMALL_BUDGET)) as client:
        async with socket_of(client, additional_headers=ALICE) as socket:
            await socket.send(message)
            await agent.started.wait()
        agent.release.set()

        async def taken() -> bool:
            answer = await client.http.post("/v1/responses", json=BODIES["/v1/responses"], headers=ALICE)
            return answer.status_code == 200

        await until(taken)
