"""Runs that were cancelled while their client did not read: the stream went on to its proper end when it read again.

A run is cancelled by cancelling the wait of the task that works on it. With a slow client, that is the wait for the
client: a stream of Responses was cut there, and so was any stream of a run that outlives its request.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from websockets.asyncio.client import connect

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk_testing import parse_sse
from tests.scenarios.desk import DEADLINE, serve_host
from tests.scenarios.responses.sequence import wrong_sequence
from tests.scenarios.responses.sockets import LAST

WORDS = ["one ", "two ", "three ", "four "]
KEY = {"idempotency-key": "a-key-of-the-client"}


async def talk(text: str) -> AsyncIterator[str]:
    """Say some words, and then nothing more."""
    for word in WORDS:
        yield word
    await asyncio.Event().wait()


class Chatter:
    """Says as much as anybody takes, so that its run is as far ahead of a client as it may be."""

    def __init__(self) -> None:
        self.said: list[str] = []

    async def talk(self, text: str) -> AsyncIterator[str]:
        while True:
            self.said.append(f"{len(self.said)} ")
            yield self.said[-1]


class SlowClient:
    """Stands between a host and its server: the first stream takes so many messages, and more only when it is let."""

    def __init__(self, app: ASGIApp, takes: int) -> None:
        self._app = app
        self._takes = takes
        self.tried: list[Message] = []
        self.waits = asyncio.Event()
        self.reads = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.tried or scope["type"] == "lifespan":
            return await self._app(scope, receive, send)

        async def send_slowly(message: Message) -> None:
            if message["type"] != "websocket.accept":
                self.tried.append(message)
                if len(self.tried) > self._takes and not self.reads.is_set():
                    self.waits.set()
                    # As uvicorn does: it waits until there is room, and writes then.
                    await self.reads.wait()
            await send(message)

        await self._app(scope, receive, send_slowly)

    @property
    def run_id(self) -> str:
        first = self.tried[0]
        if first["type"] == "websocket.send":
            return json.loads(first["text"])["response"]["id"]
        return dict(first["headers"])[b"x-request-id"].decode()


class Place:
    """A host, its slow client, and another client that is not slow."""

    def __init__(self, server: uvicorn.Server, slow: SlowClient, http: httpx.AsyncClient) -> None:
        self.slow = slow
        self.http = http
        self.port = server.servers[0].sockets[0].getsockname()[1]

    async def cancel(self, path: str) -> None:
        """Cancel the run while its client waits, and let that read on."""
        await self.slow.waits.wait()
        cancelled = await self.http.post(f"{path}/{self.slow.run_id}/cancel")
        assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
        self.slow.reads.set()

    async def stream(self, path: str, body: Any, headers: Any = None) -> list[Any]:
        """Return the events of a stream that is cancelled while it is not read."""
        async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
            asked = tasks.create_task(self.http.post(path, json={"stream": True, **body}, headers=headers))
            await self.cancel(path)
        response = asked.result()
        assert response.status_code == 200
        return parse_sse(response.content)

    async def connect(self, **body: Any) -> list[dict[str, Any]]:
        """Return the events of a response on a WebSocket that is cancelled while it is not read."""
        url = f"ws://127.0.0.1:{self.port}/v1/responses"
        async with asyncio.timeout(DEADLINE), connect(url, proxy=None) as line:
            await line.send(json.dumps({"type": "response.create", "input": "it", **body}))
            await self.cancel("/v1/responses")
            events = [json.loads(await line.recv())]
            while events[-1]["type"] not in LAST:
                events.append(json.loads(await line.recv()))
            return events


@asynccontextmanager
async def serve(takes: int, target: Any = talk, **options: Any) -> AsyncIterator[Place]:
    host = AgentFrameworkHost(target, channels=[ResponsesChannel(**options), InvocationsChannel()])
    slow = SlowClient(host.app, takes)
    app: Any = SimpleNamespace(app=slow)
    async with serve_host(app) as server:
        url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        async with httpx.AsyncClient(base_url=url, timeout=DEADLINE, trust_env=False) as http:
            yield Place(server, slow, http)


@pytest.fixture(autouse=True)
def no_errors(caplog: pytest.LogCaptureFixture) -> Any:
    """Nothing of this is an error of anybody's."""
    caplog.set_level(logging.ERROR)
    yield
    assert caplog.messages == []


def _judge(events: list[dict[str, Any]], words: list[str]) -> None:
    """Every piece has come once and in order, and the last event says how it ended."""
    assert wrong_sequence(events) == []
    assert (events[-1]["type"], events[-1]["response"]["status"]) == ("response.incomplete", "cancelled")
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert deltas == words
    said = [part["text"] for item in events[-1]["response"]["output"] for part in item["content"]]
    assert "".join(said) == "".join(words)


# The head, the first events, and then a message for each word.
@pytest.mark.parametrize("takes", range(2 + len(WORDS)))
async def test_a_response_was_cut_off(takes: int) -> None:
    async with serve(takes) as place:
        events = [event.json() for event in await place.stream("/v1/responses", {"input": "it"})]
        _judge(events, WORDS[: max(0, takes - 1)])


@pytest.mark.parametrize("takes", range(2 + len(WORDS)))
async def test_an_invocation_was_cut_off(takes: int) -> None:
    async with serve(takes) as place:
        first, *updates, last = await place.stream("/invocations", {"message": "it"})
        assert (first.event, last.event, last.json()["status"]) == ("started", "cancelled", "cancelled")
        assert [event.json()["text"] for event in updates] == WORDS[: max(0, takes - 1)]
        assert [event.id for event in (first, *updates, last)] == [str(number) for number in range(2 + len(updates))]


# Two messages at the beginning, three for the first word, and then one for each.
@pytest.mark.parametrize(("takes", "words"), [(1, 0), (2, 1), (3, 1), (4, 1), (5, 2), (7, 4)])
async def test_a_response_on_a_websocket_was_cut_off(takes: int, words: int) -> None:
    async with serve(takes) as place:
        _judge(await place.connect(), WORDS[:words])


async def test_a_response_that_outlives_its_request_was_cut_off() -> None:
    chatter = Chatter()
    async with serve(3, chatter.talk) as place:
        events = [event.json() for event in await place.stream("/v1/responses", {"input": "it"}, KEY)]
        _judge(events, chatter.said)


async def test_an_invocation_that_outlives_its_request_was_cut_off() -> None:
    chatter = Chatter()
    async with serve(3, chatter.talk) as place:
        _, *updates, last = await place.stream("/invocations", {"message": "it"}, KEY)
        assert (last.event, last.json()["status"]) == ("cancelled", "cancelled")
        assert [event.json()["text"] for event in updates] == chatter.said
