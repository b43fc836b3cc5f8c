"""A host in a process of its own. It receives wide requests at once, and prints the growth of its memory as JSON.

The process is new for each measurement, so that its peak belongs to these requests alone.
"""

import asyncio
import json
import resource
import sys
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from agent_framework import Message
from websockets.asyncio.client import connect

from frontdesk import AgentFrameworkHost, SqliteStateStore
from frontdesk.channels.chat_completions import ChatCompletionsChannel
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk_testing import HostClient, serving

REQUESTS = 20
PARTS = 9_000
"""The one-letter parts of a body. It has 300 KB, and takes 22 MB of memory."""
ITEMS = 8
"""The wide items of a conversation."""


def wide(kind: str) -> list[dict[str, str]]:
    return [{"type": kind, "text": "a"}] * PARTS


BODIES: dict[str, Any] = {
    "/v1/responses": {"input": [{"role": "user", "content": wide("input_text")}]},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": wide("text")}]},
}


class Gate:
    """A target that holds its runs until all requests have arrived or were refused."""

    def __init__(self) -> None:
        self.started = 0
        self.open = asyncio.Event()

    async def run(self, messages: list[Message]) -> str:
        self.started += 1
        await self.open.wait()
        return f"{len(messages)}"

    async def release(self, requests: list["asyncio.Task[str]"]) -> list[str]:
        """Return the outcomes of the requests, once each of them is held or refused."""
        while self.started + sum(request.done() for request in requests) < len(requests):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        self.open.set()
        return await asyncio.gather(*requests)


def classify_outcome(answer: httpx.Response) -> str:
    error = answer.json().get("error") or {"code": ""}
    return f"{answer.status_code} {error['code']}".strip()


async def bodies(client: HostClient, gate: Gate, path: str) -> list[str]:
    raw = json.dumps(BODIES[path], separators=(",", ":")).encode()

    async def post() -> str:
        headers = {"content-type": "application/json"}
        return classify_outcome(await client.http.post(path, content=raw, headers=headers, timeout=300))

    return await gate.release([asyncio.create_task(post()) for _ in range(REQUESTS)])


async def sockets(client: HostClient, gate: Gate, path: str) -> list[str]:
    message = json.dumps({"type": "response.create", **BODIES[path]}, separators=(",", ":"))

    async def post(stack: AsyncExitStack) -> str:
        url = f"ws{str(client.http.base_url).removeprefix('http').rstrip('/')}{path}"
        socket = await stack.enter_async_context(connect(url, max_size=None, ping_interval=None))
        await socket.send(message)
        while True:
            told = json.loads(await socket.recv())
            if told["type"] == "error":
                return f"{told['status']} {told['error']['code']}"
            if told["type"] == "response.completed":
                return "200"

    async with AsyncExitStack() as stack:
        return await gate.release([asyncio.create_task(post(stack)) for _ in range(REQUESTS)])


async def conversations(client: HostClient, gate: Gate, kept: str) -> list[str]:
    """Send small requests to conversations with wide items: one conversation each."""
    gate.open.set()
    paths = [await _conversation(client, kept) for _ in range(REQUESTS // 4)]
    gate.open.clear()
    gate.started = 0

    async def post(conversation: str) -> str:
        body = {"input": "a", "conversation": conversation}
        return classify_outcome(await client.http.post("/v1/responses", json=body, timeout=300))

    return await gate.release([asyncio.create_task(post(path)) for path in paths])


async def _conversation(client: HostClient, kept: str) -> str:
    item = {"type": "message", "role": "user", "content": wide("input_text")}
    made = await client.http.post("/v1/conversations", json={}, timeout=300)
    conversation: str = made.json()["id"]
    if kept == "history":
        # After a turn the session has a history of its own, to which items are added.
        body = {"input": "a", "conversation": conversation}
        assert (await client.http.post("/v1/responses", json=body, timeout=300)).status_code == 200
    for _ in range(ITEMS):
        path = f"/v1/conversations/{conversation}/items"
        assert (await client.http.post(path, json={"items": [item]}, timeout=300)).status_code == 200
    return conversation


PROBES = {"bodies": bodies, "sockets": sockets, "conversations": conversations}


async def main(probe: str, argument: str) -> None:
    gate = Gate()

    async def hold(messages: list[Message]) -> str:
        return await gate.run(messages)

    channels = [ResponsesChannel(), ChatCompletionsChannel(), ConversationsChannel()]
    with TemporaryDirectory() as directory:
        store = SqliteStateStore(Path(directory) / "frontdesk.db")
        async with serving(AgentFrameworkHost(hold, channels=channels, store=store)) as client:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            outcomes = await PROBES[probe](client, gate, argument)
            after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"mib": (after - before) / 1024, "outcomes": Counter(outcomes)}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
