"""Access from web pages: what a page on another origin did to the host of somebody who had opened it."""

import asyncio
import json
from pathlib import Path

import pytest

from frontdesk import AgentFrameworkHost, Channel
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk_testing import EchoAgent, serving

PAGES = {
    "another origin": {"origin": "https://evil.example"},
    "another port of this machine": {"origin": "http://127.0.0.1:1"},
    "a sandboxed frame": {"origin": "null"},
    "no origin at all": {"origin": ""},
    "a name of the attacker's that leads here": {"host": "evil.example"},
    "that name, as its own origin": {"host": "evil.example", "origin": "http://evil.example"},
}
CALLS = [
    ("POST", "/invocations", {"message": "hello"}),
    ("GET", "/invocations/run_1", None),
    ("POST", "/invocations/run_1/cancel", None),
    ("POST", "/v1/responses", {"input": "hello"}),
    ("DELETE", "/v1/responses/resp_1", None),
    ("POST", "/v1/conversations", {}),
    ("DELETE", "/v1/conversations/conv_1", None),
]


def _doors() -> list[Channel]:
    return [ResponsesChannel(), ConversationsChannel(), InvocationsChannel()]


@pytest.mark.parametrize("headers", PAGES.values(), ids=PAGES)
async def test_a_page_on_another_origin_drove_the_local_host(headers: dict[str, str], tmp_path: Path) -> None:
    agent = EchoAgent()
    async with serving(AgentFrameworkHost(agent, channels=_doors(), state_dir=tmp_path)) as client:
        for method, path, body in CALLS:
            # What a page may send without asking first, as a form or a beacon does.
            for kind in ("application/json", "text/plain", "application/x-www-form-urlencoded"):
                content = b"" if body is None else json.dumps(body).encode()
                sent = {"content-type": kind, **headers}
                refused = await client.http.request(method, path, content=content, headers=sent)
                assert refused.status_code in (401, 403), (method, path, kind)
                assert "access-control-allow-origin" not in refused.headers
    assert agent.seen == []


@pytest.mark.parametrize("headers", PAGES.values(), ids=PAGES)
async def test_a_page_on_another_origin_opened_a_websocket_to_the_local_host(headers: dict[str, str]) -> None:
    agent = EchoAgent()
    async with serving(AgentFrameworkHost(agent, channels=_doors())) as client:
        port = int(client.base_url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        lines = {"host": f"127.0.0.1:{port}", "upgrade": "websocket", "connection": "upgrade"}
        lines |= {"sec-websocket-version": "13", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==", **headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        writer.write(f"GET /v1/responses HTTP/1.1\r\n{head}\r\n".encode())
        status = (await reader.readline()).split()[1]
        writer.close()
    assert status in (b"401", b"403")
    assert agent.seen == []
