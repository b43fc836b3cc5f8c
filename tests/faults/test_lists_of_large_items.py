"""Found by an attacker: one `GET` of a list read and sent everything on its page, whatever its size.

40 items with one picture of 6 MB, which is stored once, were an answer of 320 MB. A hundred items may have 32 MiB each.
"""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent, Content, tool

from frontdesk import AgentFrameworkHost, ApiKeyAuth, InMemoryStateStore, SqliteStateStore
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.interfaces.storage.pages import MAX_PAGE_BYTES
from frontdesk.interfaces.store import HostStateStore
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import EchoAgent, serving

KEYS = {"alice": "alice-key-for-the-laptop"}
HEADERS = {"x-api-key": KEYS["alice"]}
PICTURE = b"\x89PNG\r\n\x1a\n" + b"\0" * (MAX_PAGE_BYTES // 3)
COUNT = 5


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> HostStateStore:
    return InMemoryStateStore() if request.param == "memory" else SqliteStateStore(str(tmp_path / "frontdesk.db"))


def text() -> dict[str, Any]:
    return {"type": "input_text", "text": "x" * (MAX_PAGE_BYTES // 2)}


def picture() -> dict[str, Any]:
    return {"type": "input_image", "image_url": f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}"}


@pytest.mark.parametrize("part", [text(), picture()], ids=["text", "picture"])
@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_a_list_of_large_items_was_read_and_sent_whole(
    store: HostStateStore, part: dict[str, Any], order: str
) -> None:
    auth = ApiKeyAuth(KEYS)
    host = AgentFrameworkHost(
        EchoAgent(), channels=[ResponsesChannel(auth=auth), ConversationsChannel(auth=auth)], store=store
    )
    async with serving(host) as client:
        made = (await client.http.post("/v1/conversations", json={}, headers=HEADERS)).json()["id"]
        path = f"/v1/conversations/{made}/items"
        item = {"type": "message", "role": "user", "content": [part]}
        for _ in range(COUNT):
            added = await client.http.post(path, json={"items": [item]}, headers=HEADERS)
            assert added.status_code == 200
        seen: list[str] = []
        more, query = True, {"limit": "100", "order": order}
        while more:
            listed = await client.http.get(path, params=query, headers=HEADERS)
            assert listed.status_code == 200
            assert len(listed.content) < 2 * MAX_PAGE_BYTES
            page = listed.json()
            seen += [one["id"] for one in page["data"]]
            more, query = page["has_more"], query | {"after": page["last_id"]}
        assert len(set(seen)) == len(seen) == COUNT
        # All of them count, read in pages.
        asked = {"model": "any", "input": "and now?", "conversation": made}
        counted = await client.http.post("/v1/responses/input_tokens", json=asked, headers=HEADERS)
        alone = await client.http.post(
            "/v1/responses/input_tokens", json=asked | {"conversation": None}, headers=HEADERS
        )
        first = await client.http.post(
            "/v1/responses/input_tokens", json=asked | {"conversation": None, "input": [item]}, headers=HEADERS
        )
        one = first.json()["input_tokens"]
        assert counted.json()["input_tokens"] - alone.json()["input_tokens"] == pytest.approx(COUNT * one, rel=0.01)


async def test_a_list_of_large_questions_was_read_and_sent_whole(store: HostStateStore) -> None:
    @tool(approval_mode="always_require")
    def pay(amount: int, note: str) -> str:
        """Pay."""
        return f"paid {amount}: {note}"

    def reply(messages: Any) -> list[Content]:
        arguments = json.dumps({"amount": 1, "note": "x" * (MAX_PAGE_BYTES // 2)})
        return [Content.from_function_call(f"call_{len(messages)}", "pay", arguments=arguments)]

    agent = Agent(client=ScriptedChatClient(reply), name="Bank", tools=[pay])
    host = AgentFrameworkHost(agent, channels=[InvocationsChannel(auth=ApiKeyAuth(KEYS))], store=store)
    async with serving(host) as client:
        for number in range(COUNT):
            body = {"message": "pay", "session_id": f"ses{number}"}
            assert (await client.http.post("/invocations", json=body, headers=HEADERS)).status_code == 200
        seen: list[str] = []
        after: str | None = None
        while after is not None or not seen:
            query = {"limit": "100"} | ({} if after is None else {"after": after})
            listed = await client.http.get("/invocations/approvals/pending", params=query, headers=HEADERS)
            assert len(listed.content) < 2 * MAX_PAGE_BYTES
            seen += [one["id"] for one in listed.json()["data"]]
            after = listed.json()["after"]
        assert len(set(seen)) == len(seen) == COUNT
