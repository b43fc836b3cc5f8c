"""A visitor of the page without a browser: the cookie, the calls and the feed of one, for a test."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
from websockets.asyncio.client import connect

from frontdesk import AgentFrameworkHost
from frontdesk.channels.web import WebChatChannel
from frontdesk.interfaces.store import HostStateStore
from frontdesk_testing import serving

DEADLINE = 60.0


class Visitor:
    """One visitor; each has a cookie of its own."""

    def __init__(self, base_url: str, http: httpx.AsyncClient, page: str = "/chat") -> None:
        self.base_url, self.http, self.page = base_url, http, page
        self.count = 0

    async def get(self, path: str) -> Any:
        """What the page is answered to a question."""
        response = await self.http.get(f"{self.page}/api/{path}")
        assert response.status_code == 200, response.text
        return response.json()

    async def post(self, path: str, **body: Any) -> httpx.Response:
        return await self.http.post(f"{self.page}/api/{path}", json=body)

    async def say(self, text: str, chat: str = "main", **fields: Any) -> int:
        """Sends a message, and returns its number."""
        self.count += 1
        body = {"client_id": f"c{self.count}", "text": text, **fields}
        response = await self.post(f"conversations/{chat}/messages", **body)
        assert response.status_code == 200, response.text
        return response.json()["number"]

    async def messages(self, chat: str = "main") -> list[dict[str, Any]]:
        return (await self.get(f"conversations/{chat}/messages"))["messages"]

    async def texts(self, chat: str = "main") -> list[str]:
        return [message.get("text", "") for message in await self.messages(chat)]

    async def wait_for_messages(self, count: int, chat: str = "main") -> list[dict[str, Any]]:
        """The messages of a conversation, once there are so many that are complete."""

        async def look() -> list[dict[str, Any]] | None:
            messages = await self.messages(chat)
            done = [message for message in messages if message.get("state", "done") != "live"]
            return messages if len(done) >= count else None

        return await self.until(look)

    async def until(self, look: Callable[[], Any]) -> Any:
        """What a look returns, as soon as that is something; it is taken again at each change."""
        cursor = 0
        async with asyncio.timeout(DEADLINE):
            while not (seen := await look()):
                cursor = (await self.get(f"poll?after={cursor}"))["cursor"]
        return seen

    @asynccontextmanager
    async def feed(self, after: int = 0) -> AsyncIterator["Page"]:
        """The feed of a tab, on a WebSocket."""
        cookie = "; ".join(f"{name}={value}" for name, value in self.http.cookies.items())
        url = self.base_url.replace("http", "ws", 1)
        headers = {"Cookie": cookie, "Origin": self.base_url}
        async with connect(
            f"{url}{self.page}/api/feed?after={after}", additional_headers=headers, proxy=None
        ) as socket:
            yield Page(socket)


class Page:
    """What a tab shows: it puts the events of its feed together, as the script of the page does."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket
        self.messages: dict[tuple[str, int], dict[str, Any]] = {}
        self.chats: dict[str, dict[str, Any]] = {}
        self.frames: list[dict[str, Any]] = []

    async def until(self, holds: Callable[["Page"], Any]) -> Any:
        """Reads the feed until something holds of what is shown."""
        async with asyncio.timeout(DEADLINE):
            while not (seen := holds(self)):
                self.take(json.loads(await self.socket.recv()))
        return seen

    def take(self, frame: dict[str, Any]) -> None:
        self.frames.append(frame)
        for event in frame["events"]:
            if event["type"] == "message":
                self.messages[event["chat"], event["message"]["number"]] = event["message"]
            elif event["type"] == "delta":
                message = self.messages[event["chat"], event["number"]]
                text = message.get("text", "")
                assert (message.get("epoch", 0), len(text)) == (event["epoch"], event["from"])
                message["text"] = text + event["text"]
            elif event["type"] == "notes":
                message = self.messages[event["chat"], event["number"]]
                message |= {name: event[name] for name in ("tools", "citations")}
            elif event["type"] == "chat":
                self.chats[event["chat"]["id"]] = event["chat"]

    @property
    def cursor(self) -> int:
        return self.frames[-1]["cursor"]

    def texts(self, chat: str = "main") -> list[str]:
        """The texts of a conversation that are shown."""
        shown = sorted((number, message) for (where, number), message in self.messages.items() if where == chat)
        return [message.get("text", "") for _, message in shown if message.get("state") != "removed"]


@asynccontextmanager
async def open_visitor(base_url: str, page: str = "/chat") -> AsyncIterator[Visitor]:
    """A visitor who has loaded the page; the address may have a path below which the host is mounted."""
    headers = {"origin": base_url.removesuffix(httpx.URL(base_url).path)}
    async with httpx.AsyncClient(base_url=base_url, headers=headers, timeout=60, trust_env=False) as http:
        assert (await http.get(page)).status_code == 200
        yield Visitor(base_url, http, page)


@asynccontextmanager
async def web_host(target: Any, store: HostStateStore | None = None, **settings: Any) -> AsyncIterator[str]:
    """A host with the page; returns its address."""
    host = AgentFrameworkHost(target, channels=[WebChatChannel(**settings)], store=store)
    async with serving(host) as client:
        yield client.base_url
