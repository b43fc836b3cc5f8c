"""Sits between the host and the wire, and looks at everything that the host says there."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

import httpx
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.scenarios.responses.published import load_schema
from tests.scenarios.responses.sdk import wrong_body, wrong_event
from tests.scenarios.responses.sequence import wrong_rest, wrong_sequence
from tests.scenarios.responses.sockets import Connection

_ROUTES = {
    ("POST", r"/responses"): "response",
    ("GET", r"/responses/[^/]+"): "response",
    ("POST", r"/responses/[^/]+/cancel"): "response",
    ("POST", r"/responses/compact"): "compaction",
    ("POST", r"/responses/input_tokens"): "input_tokens",
    ("DELETE", r"/responses/[^/]+"): "deletion",
    ("GET", r"/responses/[^/]+/input_items"): "input_items",
    ("POST", r"/conversations"): "conversation",
    ("GET", r"/conversations/[^/]+"): "conversation",
    ("POST", r"/conversations/[^/]+"): "conversation",
    ("DELETE", r"/conversations/[^/]+"): "conversation_deleted",
    ("GET", r"/conversations/[^/]+/items"): "conversation_items",
    ("POST", r"/conversations/[^/]+/items"): "conversation_items",
    ("GET", r"/conversations/[^/]+/items/[^/]+"): "conversation_item",
    ("DELETE", r"/conversations/[^/]+/items/[^/]+"): "conversation",
    ("GET", r"/models"): "models",
    ("GET", r"/models/.+"): "model",
}


@dataclass
class Exchange:
    """One request, and what was answered."""

    method: str
    path: str
    headers: dict[str, str]
    status: int = 0
    media_type: str = ""
    body: bytes = b""
    ended: bool = False
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def response(self) -> dict[str, Any] | None:
        """The response that was created here, if it has come to its end."""
        if self.status != 200 or not self.ended or not re.fullmatch(r"(/v1)?/responses", self.path):
            return None
        return self.events[-1]["response"] if self.events else json.loads(self.body)


class Tap:
    """An app around the host's app: `wrong` has all that was seen and should not have been."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.exchanges: list[Exchange] = []
        self.connections: list[Connection] = []
        self.wrong: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            return await self._socket(scope, receive, send)
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        exchange = Exchange(scope["method"], scope["path"], headers)
        self.exchanges.append(exchange)

        async def seen(message: Message) -> None:
            await send(message)
            # What was interrupted was not sent.
            _note(exchange, message)

        try:
            await self._app(scope, receive, seen)
        finally:
            self.wrong += [f"{exchange.method} {exchange.path}: {one}" for one in _judge(exchange)]

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = Connection()
        self.connections.append(connection)

        async def seen(message: Message) -> None:
            await send(message)
            connection.note(message)

        try:
            await self._app(scope, receive, seen)
        finally:
            self.wrong += [f"a connection: {one}" for one in connection.judge(judge_event)]

    async def kept(self, client: httpx.AsyncClient) -> None:
        """Asks again for every response that was given out whole: what is kept is what was said."""
        for exchange in list(self.exchanges):
            said = exchange.response
            if said is None or not said["store"] or said["status"] not in ("completed", "incomplete"):
                continue
            headers = {name: value for name, value in exchange.headers.items() if name == "authorization"}
            again = await client.get(f"/responses/{said['id']}", headers=headers)
            if again.status_code != 404 and again.json() != said:
                self.wrong.append(f"GET {said['id']}: {again.text} is not what was said: {json.dumps(said)}")


def _note(exchange: Exchange, message: Message) -> None:
    if message["type"] == "http.response.start":
        exchange.status = message["status"]
        kinds = [value.decode() for name, value in message["headers"] if name == b"content-type"]
        exchange.media_type = kinds[0].partition(";")[0]
    elif message["type"] == "http.response.body":
        exchange.body += message.get("body", b"")
        exchange.ended = not message.get("more_body", False)


def _judge(exchange: Exchange) -> list[str]:
    try:
        return judge(exchange)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return [f"{error!r} in {exchange.body!r}"]


def judge(exchange: Exchange) -> list[str]:
    """What is wrong with an answer."""
    if exchange.media_type == "text/event-stream":
        exchange.events, wrong = read_events(exchange.body)
        wrong += [fault for event in exchange.events for fault in judge_event(event)]
        if exchange.method == "GET":
            return wrong + wrong_rest(exchange.events)
        return wrong + wrong_sequence(exchange.events, ended=exchange.ended)
    if not exchange.ended:
        return []
    if exchange.path.startswith("/invocations"):
        # Another door's words are not the API's.
        return []
    body = json.loads(exchange.body)
    if exchange.status != 200:
        return wrong_body("error", body) + _find_missing(body["error"], "message", "type", "param", "code")
    path = exchange.path.removeprefix("/v1")
    (kind,) = [kind for (method, shape), kind in _ROUTES.items() if method == exchange.method and _fits(shape, path)]
    if body.get("object") == "response.compaction":
        return judge_compaction(body)
    if kind == "response":
        return judge_response(body)
    if kind.startswith("conversation_item"):
        strictly = [fault for item in body.get("data", [body]) for fault in judge_item(item)]
        return strictly + wrong_body(kind if body.get("data", True) else "no_items", body)
    return wrong_body("no_items" if kind.endswith("_items") and not body["data"] else kind, body)


def judge_item(item: dict[str, Any]) -> list[str]:
    """What is wrong with an item."""
    schema = load_schema()
    return schema.item(item) if schema is not None and schema.knows(item) else []


def judge_response(body: dict[str, Any]) -> list[str]:
    """What is wrong with a response."""
    schema = load_schema()
    strictly = schema.response(body) if schema is not None and schema.knows(body) else []
    return strictly + wrong_body("response", body)


def judge_compaction(body: dict[str, Any]) -> list[str]:
    """What is wrong with a compaction; the package's own type for it does not know a user's message in an output."""
    schema = load_schema()
    items = [] if body["output"][-1]["type"] == "compaction" else ["it does not end with the compaction"]
    return items + (schema.compaction(body) if schema is not None else [])


def judge_event(event: dict[str, Any]) -> list[str]:
    """What is wrong with an event."""
    schema = load_schema()
    strictly = schema.event(event) if schema is not None and schema.knows(event) else []
    return strictly + wrong_event(event)


def read_events(body: bytes) -> tuple[list[dict[str, Any]], list[str]]:
    """The events of a stream, and what is wrong with their form."""
    events: list[dict[str, Any]] = []
    wrong: list[str] = []
    for block in body.decode().split("\n\n")[:-1]:
        if block.startswith(":"):
            continue
        shape = re.fullmatch(r"event: (\S+)\ndata: (.*)", block)
        if shape is None:
            wrong.append(f"{block!r} is not an event")
            continue
        events.append(json.loads(shape.group(2)))
        if events[-1]["type"] != shape.group(1):
            wrong.append(f"{events[-1]['type']} was sent as {shape.group(1)}")
    return events, wrong


def _fits(shape: str, path: str) -> bool:
    return re.fullmatch(shape, path) is not None


def _find_missing(body: dict[str, Any], *names: str) -> list[str]:
    return [f"{name} is missing" for name in names if name not in body]
