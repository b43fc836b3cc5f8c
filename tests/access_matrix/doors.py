"""A host with every channel, and its doors as it tells them."""

import re
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx
from starlette.routing import Route, WebSocketRoute

from frontdesk import (
    AgentFrameworkHost,
    ApiKeyAuth,
    AuthPolicy,
    BearerAuth,
    Channel,
    HmacAuth,
    OAuthIdentityLinker,
    Oidc,
)
from frontdesk.channels.a2a import A2AChannel
from frontdesk.channels.agui import AGUIChannel
from frontdesk.channels.chat_completions import ChatCompletionsChannel
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.mcp import MCPChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk.interfaces.channel import ChannelCommand, ChannelCommandContext, ChannelContext
from frontdesk.interfaces.linker import IdentityLinker
from frontdesk_testing import EchoAgent, serving
from frontdesk_testing.messages import MessageChannel
from tests.access_matrix.callers import OTHER_KEY, OWNER_KEY, Keys, owner
from tests.access_matrix.issuer import AUDIENCE, Issuers
from tests.access_matrix.purposes import SAYING, SOCKET, Door

MINE = {"message": {"messageId": "mine", "role": "ROLE_USER", "parts": [{"text": "mine"}]}}


class ChatWithCommand(MessageChannel):
    """A chat whose platform is away, with a command of the operator's own; what it could call is shown."""

    def __init__(self) -> None:
        async def open_the_safe(call: ChannelCommandContext) -> None:
            await call.reply("The safe is open.")

        command = ChannelCommand(name="safe", description="Open the safe", handler=open_the_safe)
        secret = "the-secret-of-the-platform"
        super().__init__(platform_url="http://127.0.0.1:1", token="a-token", secret=secret, commands=[command])


class EveryDoorHost:
    """A served host, and the things of its owner."""

    def __init__(self, host: AgentFrameworkHost, http: httpx.AsyncClient, url: str, agent: EchoAgent, place: Path):
        self.host = host
        self.http = http
        self.url = url
        self.agent = agent
        self._database = sqlite3.connect(f"file:{place}/frontdesk.db?mode=ro", uri=True)
        self._rows: tuple[int, dict[str, int]] = (-1, {})
        self._owned_at = -1
        self.ids: dict[str, str] = {}
        self._owned: list[Any] = []
        self.keys: Keys
        self.chat: ChannelContext

    async def doors(self) -> list[Door]:
        """Every door, as the route table and the doors themselves tell."""
        found: list[Door] = []
        for route in self.host.app.routes:
            if isinstance(route, WebSocketRoute):
                found.append(Door(SOCKET, route.path))
                continue
            assert isinstance(route, Route), f"{route!r} is of a kind that nobody has thought of"
            found += [Door(method, route.path) for method in await self._methods(route)]
        return found

    async def _methods(self, route: Route) -> Sequence[str]:
        if route.methods is not None:
            return sorted(route.methods - {"HEAD"})
        answer = await self.http.request("TRACE", self.fill_path(route.path))
        return answer.headers["allow"].split(", ") if answer.status_code == 405 else ["GET"]

    def fill_path(self, path: str) -> str:
        """The path with the owner's ids in it."""
        run = {"/invocations": "invocation", "/agui": "agui"}.get(f"/{path.split('/')[1]}", "response")
        names = {"run_id": self.ids.get(run, "x"), "model:path": self.agent.name, "path:path": "a/b/c/d"}
        names["text"] = "lnk_0192f0c1a2b3<script>.made-up"
        names["thread_id"] = "thread-of-the-owner"
        names |= {"conversation_id": self.ids.get("conversation", "x"), "item_id": self.ids.get("item", "x")}
        names |= {"id": self.ids.get("task", "x"), "task_id": self.ids.get("task", "x")}
        names |= {"chat": "main", "approval_id": "apr_1", "version": "x", "name:path": "chat.js", "file": "f"}
        return re.sub(r"\{([\w:]+)\}", lambda one: names[one.group(1)], path)

    async def furnish(self) -> None:
        """Makes something of every kind, which belongs to the owner."""
        for name, path, body in (
            ("response", "/v1/responses", {"input": "mine"}),
            ("conversation", "/v1/conversations", SAYING),
            ("invocation", "/invocations", {"message": "mine"}),
        ):
            made = await self.http.post(path, json=body, headers=owner(self.keys))
            self.ids[name] = made.raise_for_status().json()["id"]
        made = await self.http.post("/a2a/v1/message:send", json=MINE, headers=owner(self.keys))
        self.ids["task"] = made.raise_for_status().json()["task"]["id"]
        saying = {"id": "u1", "role": "user", "content": "mine"}
        body = {"threadId": "thread-of-the-owner", "runId": "run-of-the-owner", "messages": [saying]}
        (await self.http.post("/agui", json=body, headers=owner(self.keys))).raise_for_status()
        self.ids["agui"] = "run-of-the-owner"
        (item,) = (await self.read_back("conversation"))["data"]
        self.ids["item"] = item["id"]
        self._owned, self._owned_at = await self._belongings(), self._version()

    async def read_back(self, name: str) -> Any:
        """What the owner sees of a thing."""
        paths = {
            "response": "/responses/{}",
            "conversation": "/conversations/{}/items",
            "invocation": "/invocations/{}",
            "task": "/a2a/v1/tasks/{}",
            "agui": "/agui/threads/thread-of-the-owner",
        }
        if name == "agui":
            headers = {**owner(self.keys), "accept": "application/json"}
            return (await self.http.get(paths[name], headers=headers)).raise_for_status().json()
        shown = await self.http.get(paths[name].format(self.ids[name]), headers=owner(self.keys))
        return shown.raise_for_status().json()

    async def has_changed(self) -> bool:
        """Tell whether the owner sees anything else than at the last time; only what was written can change it."""
        if self._owned_at == self._version():
            return False
        before, self._owned = self._owned, await self._belongings()
        self._owned_at = self._version()
        return before != self._owned

    async def _belongings(self) -> list[Any]:
        return [
            await self.read_back(name)
            for name in ("response", "conversation", "invocation", "task", "agui")
            if name in self.ids
        ]

    def rows(self) -> dict[str, int]:
        """How many rows each table has; the host's own secrets are made when they are first needed, and once."""
        version = self._version()
        if self._rows[0] != version:
            names = [name for (name,) in self._database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            names.remove("secrets")
            counts = {name: self._database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}  # noqa: S608
            self._rows = version, counts
        return self._rows[1]

    def _version(self) -> int:
        """Return a number that changes with every write of the host's."""
        return self._database.execute("PRAGMA data_version").fetchone()[0]

    def close(self) -> None:
        self._database.close()


@asynccontextmanager
async def open_house(
    rules: str,
    issuers: Issuers,
    place: Path,
    *,
    linker: IdentityLinker | None = None,
    backwards: bool = False,
    more: Sequence[Channel] = (),
) -> AsyncIterator[EveryDoorHost]:
    """A served host with every channel; `rules` are `open`, `listed` or `linked`.

    `backwards` is the order in which the kinds of credentials are offered.
    """
    hmac = HmacAuth({"machine": "the-secret-of-the-machine"})
    tokens = BearerAuth(issuer=[issuers.url("north"), issuers.url("south")], audience=AUDIENCE)
    auth: list[Any] = [tokens, ApiKeyAuth({"owner": OWNER_KEY, "other": OTHER_KEY}), hmac]
    if backwards:
        auth.reverse()
    agent, chat = EchoAgent(), ChatWithCommand()
    host = AgentFrameworkHost(
        agent,
        channels=[
            ResponsesChannel(auth=auth, compactor=lambda messages: "short"),
            ChatCompletionsChannel(auth=auth),
            ConversationsChannel(auth=auth),
            InvocationsChannel(auth=auth),
            A2AChannel(auth=auth, push_notifications=True),
            AGUIChannel(auth=auth),
            MCPChannel(auth=auth),
            chat,
            WebChatChannel(),
            *more,
        ],
        state_dir=place,
        linker=linker or _by_browser(issuers),
        default_allowlist=RULES[rules],
    )
    async with serving(host) as client:
        house = EveryDoorHost(host, client.http, client.base_url, agent, place)
        house.keys = Keys(issuers, hmac)
        house.http.headers["A2A-Version"] = "1.0"
        house.chat = chat.context
        with closing(house):
            yield house


def _by_browser(issuers: Issuers) -> IdentityLinker:
    """The linker that has pages."""
    provider = Oidc(issuers.url("north"))
    return OAuthIdentityLinker(provider, client_id="frontdesk", public_url="https://concierge.example")


RULES = {
    "open": AuthPolicy.open(),
    "listed": AuthPolicy.native_allowlist(["somebody-else"]),
    "linked": AuthPolicy.require_link(),
}
