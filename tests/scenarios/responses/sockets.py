"""The WebSocket of the API: what is said on a connection is looked at, and clients for it."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from openai.types.responses.responses_server_event import ResponseWsError
from pydantic import TypeAdapter, ValidationError
from starlette.types import Message
from websockets.asyncio.client import ClientConnection, connect

from tests.scenarios.responses.published import load_schema
from tests.scenarios.responses.sequence import wrong_sequence

LAST = ("response.completed", "response.failed", "response.incomplete", "error")

Judge = Callable[[dict[str, Any]], list[str]]


class Connection:
    """What the host has said on one connection."""

    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []
        self.closed: int | None = None

    def note(self, message: Message) -> None:
        """Takes down what the host sends."""
        if message["type"] == "websocket.send":
            self.said.append(json.loads(message["text"]))
        elif message["type"] == "websocket.close":
            self.closed = message["code"]

    def judge(self, judge: Judge) -> list[str]:
        """What is wrong with it: each event by itself, and those of each response together."""
        wrong: list[str] = []
        told: dict[Any, list[dict[str, Any]]] = {}
        for event in self.said:
            lane = event.get("stream_id")
            if event["type"] == "error":
                wrong += _wrong_error(event)
                continue
            plain = {name: value for name, value in event.items() if name != "stream_id"}
            wrong += judge(plain)
            told.setdefault(lane, []).append(plain)
            if event["type"] in LAST or event["type"] == "response.queued":
                events = told.pop(lane)
                wrong += wrong_sequence(events)
        return wrong + [one for events in told.values() for one in wrong_sequence(events, ended=False)]


def _wrong_error(event: dict[str, Any]) -> list[str]:
    schema = load_schema()
    wrong = [] if schema is None else schema.socket_error(event)
    try:
        TypeAdapter(ResponseWsError).validate_json(json.dumps(event), strict=True)
    except ValidationError as error:
        wrong.append(str(error))
    return wrong


class Line:
    """A connection that sends whatever a test wants to."""

    def __init__(self, connection: ClientConnection) -> None:
        self.wire = connection

    async def send(self, message: Any) -> None:
        """Sends a message; a text or bytes as they are."""
        await self.wire.send(message if isinstance(message, (str, bytes)) else json.dumps(message))

    async def create(self, said: Any = "hello", **body: Any) -> None:
        """Asks for a response."""
        await self.send({"type": "response.create", "model": "Concierge", "input": said, **body})

    async def receive(self) -> dict[str, Any]:
        """The next event."""
        return json.loads(await self.wire.recv())

    async def until(self, *kinds: str) -> list[dict[str, Any]]:
        """The events up to the first of some kinds."""
        events = [await self.receive()]
        while events[-1]["type"] not in kinds:
            events.append(await self.receive())
        return events

    async def ask(self, said: Any = "hello", **body: Any) -> dict[str, Any]:
        """The last event of a response."""
        await self.create(said, **body)
        return (await self.until(*LAST))[-1]

    async def response(self, said: Any = "hello", **body: Any) -> dict[str, Any]:
        """A response that must succeed."""
        event = await self.ask(said, **body)
        assert event["type"] == "response.completed", event
        return event["response"]

    async def error(self, said: Any = "hello", **body: Any) -> dict[str, Any]:
        """An error that must come."""
        event = await self.ask(said, **body)
        assert event["type"] == "error", event
        return {**event["error"], "status": event["status"]}


def extract_text(response: dict[str, Any]) -> str:
    """What a response says."""
    parts = [part for item in response["output"] if item["type"] == "message" for part in item["content"]]
    return "".join(part["text"] for part in parts)


@asynccontextmanager
async def dial(desk: Any, path: str = "/v1/responses", **options: Any) -> AsyncIterator[Line]:
    """A connection to a desk."""
    url = desk.url.replace("http://", "ws://") + path
    async with connect(url, proxy=None, max_size=None, **options) as connection:
        yield Line(connection)
