"""Access behind a proxy: everyone who came through one on the same machine was taken for local, or for the platform."""

import logging
from typing import Any

import httpx
import pytest
import uvicorn

from frontdesk import AgentFrameworkHost, Channel, PlatformAuth
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.cli.server import listen, serve
from frontdesk.host.server import Server
from frontdesk.kit.platform import TrustedPeers
from frontdesk.testing import EchoAgent, serving

FORWARDED = [
    {"x-forwarded-for": "203.0.113.9"},
    {"x-forwarded-for": "127.0.0.1"},
    {"forwarded": "for=203.0.113.9"},
    {"x-real-ip": "203.0.113.9"},
    {"x-forwarded-host": "concierge.example"},
]
CALLS = {"/invocations": {"message": "x"}, "/v1/responses": {"input": "x"}, "/v1/conversations": {}}


@pytest.mark.parametrize("headers", FORWARDED, ids=str)
async def test_a_proxy_on_the_machine_made_everyone_local(headers: dict[str, str]) -> None:
    agent = EchoAgent()
    channels: list[Channel] = [InvocationsChannel(), ResponsesChannel(), ConversationsChannel()]
    async with serving(AgentFrameworkHost(agent, channels=channels)) as client:
        for path, body in CALLS.items():
            assert (await client.http.post(path, json=body)).status_code == 200
            assert (await client.http.post(path, json=body, headers=headers)).status_code == 401, path
    assert len(agent.seen) == 2


def _served_by(how: str, host: AgentFrameworkHost, monkeypatch: pytest.MonkeyPatch) -> uvicorn.Config:
    """What the server was told, when it would have begun to serve."""
    found: list[uvicorn.Config] = []

    def begin(server: Server, sockets: Any = None) -> None:
        found.append(server.config)
        server.started = True

    monkeypatch.setattr(Server, "run", begin)
    _leave_logging_alone(monkeypatch)
    if how == "host.serve":
        host.serve(port=0, log_config=None)
    else:
        with listen("127.0.0.1", 0) as listener:
            serve(host, listener, on_ready=lambda: None, log_level="info")
    return found[0]


def _leave_logging_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of this process is the tests' own."""
    for module in ("frontdesk.host.server", "frontdesk.cli.server"):
        monkeypatch.setattr(f"{module}.install", lambda: None)
    monkeypatch.setattr(logging, "basicConfig", lambda **_: None)
    for name in ("frontdesk", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        monkeypatch.setattr(logger, "level", logger.level)
        monkeypatch.setattr(logger, "filters", list(logger.filters))


@pytest.mark.parametrize("how", ["host.serve", "frontdesk serve"])
async def test_a_header_made_a_stranger_one_of_the_platforms_peers(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = EchoAgent()
    auth = PlatformAuth(trusted=TrustedPeers("10.1.0.0/16"))
    host = AgentFrameworkHost(agent, channels=[InvocationsChannel(auth=auth)])
    config = _served_by(how, host, monkeypatch)
    config.load()
    app: Any = config.loaded_app
    async with host.app.router.lifespan_context(host.app):
        for peer, status in (("127.0.0.1", 401), ("203.0.113.9", 401), ("10.1.2.3", 200)):
            transport = httpx.ASGITransport(app=app, client=(peer, 4711))
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
                headers = {"x-forwarded-for": "10.1.0.5", "x-agent-user-id": "alice"}
                answer = await client.post("/invocations", json={"message": "x"}, headers=headers)
                assert answer.status_code == status, peer
    assert len(agent.seen) == 1
