"""MCP clients of the SDK for tests: one for each era, with credentials and answers to questions."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import ElicitResult

MODERN, LEGACY = "2026-07-28", "legacy"
ERAS = (MODERN, LEGACY)
TASKS = "io.modelcontextprotocol/tasks"
VERSION = "2025-11-25"


class Asked:
    """Answers questions of a server, and keeps them."""

    def __init__(self, answer: Callable[[str, Mapping[str, Any]], ElicitResult]) -> None:
        self._answer = answer
        self.messages: list[str] = []
        self.schemas: list[Mapping[str, Any]] = []

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        self.messages.append(params.message)
        self.schemas.append(params.requested_schema)
        return self._answer(params.message, params.requested_schema)


def answering(**content: Any) -> Asked:
    return Asked(lambda _message, _schema: ElicitResult(action="accept", content=content))


def refusing(action: Any = "decline") -> Asked:
    return Asked(lambda _message, _schema: ElicitResult(action=action))


@asynccontextmanager
async def connect(
    base_url: str, era: str = MODERN, *, headers: dict[str, str] | None = None, path: str = "/mcp", **options: Any
) -> AsyncIterator[Any]:
    async with create_mcp_http_client(headers=headers) as http:
        transport = streamable_http_client(f"{base_url}{path}", http_client=http)
        async with Client(transport, mode=era, **options) as client:  # type: ignore[arg-type]
            yield client


def modern(method: str, params: Mapping[str, Any] | None = None, **capabilities: Any) -> dict[str, Any]:
    """The body of a request of the newer era."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    }
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**(params or {}), "_meta": meta}}


def with_tasks(**capabilities: Any) -> dict[str, Any]:
    return {**capabilities, "extensions": {TASKS: {}}}


async def send(http: httpx.AsyncClient, body: Mapping[str, Any], path: str = "/mcp", **headers: str) -> httpx.Response:
    """Send a message of the newer era, with the headers that name it."""
    params: Mapping[str, Any] = body.get("params") or {}
    name = params.get("name") or params.get("taskId")
    named = {"mcp-name": name} if isinstance(name, str) else {}
    shown = {"accept": "application/json, text/event-stream", "mcp-protocol-version": MODERN}
    return await http.post(path, json=body, headers={**shown, "mcp-method": body["method"], **named, **headers})


async def initialize(http: httpx.AsyncClient, **headers: str) -> httpx.Response:
    """Open a session of the older era."""
    params = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    accept = {"accept": "application/json, text/event-stream"}
    return await http.post("/mcp", json=body, headers={**accept, **headers})


async def in_session(
    http: httpx.AsyncClient, session: str, method: str, params: Mapping[str, Any] | None = None, **headers: str
) -> httpx.Response:
    """Send a request in a session of the older era."""
    body = {"jsonrpc": "2.0", "id": 5, "method": method, "params": params or {}}
    shown = {"accept": "application/json, text/event-stream", "mcp-session-id": session}
    return await http.post("/mcp", json=body, headers={**shown, "mcp-protocol-version": VERSION, **headers})
