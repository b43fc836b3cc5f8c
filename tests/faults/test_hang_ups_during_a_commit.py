"""A client left while its turn was being committed, and the next turn of the session did not hear it."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agent_framework import Message
from starlette.types import ASGIApp

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk_testing import serving
from frontdesk_testing.internals import get_store

STEPS = 20
"""How many requests are answered before a turn that could have gone ahead has done so."""


async def heard(messages: list[Message]) -> str:
    """Tell which words of the user's there are."""
    return " ".join(message.text for message in messages if message.role == "user")


class Gate:
    """Stops the commits of a SQLite store for a while."""

    def __init__(self, host: AgentFrameworkHost) -> None:
        engine: Any = get_store(host)
        engine = engine._engine
        self._finish = engine._finish
        self._open = threading.Event()
        self.reached = threading.Event()
        engine._finish = self._pass

    def _pass(self) -> None:
        self.reached.set()
        self._open.wait(30)
        self._finish()

    def open(self) -> None:
        self._open.set()

    def close(self) -> None:
        self._open.clear()
        self.reached.clear()


class LeavingClient:
    """One request, and a hang-up when the test says so."""

    def __init__(self, app: ASGIApp, message: str) -> None:
        self.left = asyncio.Event()
        self.watched = asyncio.Event()
        self._body: bytes | None = json.dumps({"message": message, "session_id": "s"}).encode()
        self.request = asyncio.create_task(app(_scope(), self._receive, self._send))  # pyright: ignore[reportArgumentType]

    async def _receive(self) -> dict[str, Any]:
        body, self._body = self._body, None
        if body is not None:
            return {"type": "http.request", "body": body, "more_body": False}
        self.watched.set()
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        return


def _scope() -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/invocations",
        "raw_path": b"/invocations",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 80),
    }


@asynccontextmanager
async def open_gated(directory: Path) -> AsyncIterator[tuple[AgentFrameworkHost, Any, Gate]]:
    host = AgentFrameworkHost(target=heard, channels=[InvocationsChannel()], state_dir=directory)
    async with serving(host) as client:
        gate = Gate(host)
        gate.open()
        try:
            yield host, client, gate
        finally:
            gate.open()


async def test_a_client_left_during_the_commit_and_the_next_turn_missed_what_it_had_said(tmp_path: Path) -> None:
    async with open_gated(tmp_path) as (host, client, gate):
        await client.invoke("zero", session_id="s")
        gate.close()
        leaving = LeavingClient(host.app, "X")
        assert await asyncio.to_thread(gate.reached.wait, 30)
        await leaving.watched.wait()
        leaving.left.set()
        following = asyncio.create_task(client.invoke("Y", session_id="s"))
        for _ in range(STEPS):
            await client.http.get("/invocations/none")
        gate.open()
        assert (await following)["text"] == "zero X Y"
        assert (await client.invoke("Z", session_id="s"))["text"] == "zero X Y Z"
        await asyncio.gather(leaving.request, return_exceptions=True)
