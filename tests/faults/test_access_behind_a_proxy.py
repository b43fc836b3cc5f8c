"""Access behind a proxy: everyone who came through one on the same machine was taken for local, or for the platform."""

import asyncio
import json
import logging
from typing import Any

import httpx
import pytest
import uvicorn

from frontdesk import AgentFrameworkHost, Channel, PlatformAuth
from frontdesk.auth.local_callers import FORWARDED, FORWARDED_PREFIXES
from frontdesk.auth.platform_auth import TrustedPeers
from frontdesk.auth.verifier import HttpVerifier
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.cli.serve import listen, serve
from frontdesk.errors import UnauthenticatedError
from frontdesk.server.uvicorn_server import Server
from frontdesk_testing import EchoAgent, serving

CALLS = {"/invocations": {"message": "x"}, "/v1/responses": {"input": "x"}, "/v1/conversations": {}}
HERE = "127.0.0.1:8000"
PUBLIC = "concierge.example"
CURL = {"User-Agent": "curl/8.5.0", "Accept": "*/*"}
PROXIES: dict[str, tuple[str, dict[str, str]]] = {
    # What each sends to its upstream as it is installed, for a visitor who uses curl.
    "nginx, proxy_pass alone": ("1.0", {"Host": HERE, "Connection": "close", **CURL}),
    "nginx, Host passed on": ("1.1", {"Host": PUBLIC, "Connection": "close", **CURL}),
    "nginx, X-Real-IP only": ("1.1", {"Host": HERE, "X-Real-IP": "203.0.113.9", **CURL}),
    "nginx of a hosting panel": ("1.1", {"Host": HERE, "X-Scheme": "https", "X-Original-URI": "/", **CURL}),
    "Apache, ProxyPass": (
        "1.1",
        {
            "Host": HERE,
            **CURL,
            "X-Forwarded-For": "203.0.113.9",
            "X-Forwarded-Host": PUBLIC,
            "X-Forwarded-Server": PUBLIC,
            "Connection": "Keep-Alive",
        },
    ),
    "Apache, ProxyAddHeaders Off and ProxyVia On": ("1.1", {"Host": HERE, **CURL, "Via": f"1.1 {PUBLIC}"}),
    "HAProxy": ("1.1", {"host": PUBLIC, "user-agent": "curl/8.5.0", "accept": "*/*"}),
    "HAProxy, option forwarded": ("1.1", {"host": HERE, "forwarded": "proto=http;for=203.0.113.9", **CURL}),
    "Caddy, header_up Host": (
        "1.1",
        {
            "Host": HERE,
            **CURL,
            "X-Forwarded-For": "203.0.113.9",
            "X-Forwarded-Host": PUBLIC,
            "X-Forwarded-Proto": "https",
            "Via": "1.1 Caddy",
            "Accept-Encoding": "gzip",
        },
    ),
    "Envoy": (
        "1.1",
        {
            "host": HERE,
            "user-agent": "curl/8.5.0",
            "accept": "*/*",
            "x-request-id": "0b5cf0a1-1111-4222-8333-444455556666",
            "x-envoy-expected-rq-timeout-ms": "15000",
        },
    ),
    "cloudflared": (
        "1.1",
        {
            "Host": HERE,
            **CURL,
            "Cdn-Loop": "cloudflare; loops=1",
            "Cf-Connecting-Ip": "203.0.113.9",
            "Cf-Ray": "8a0000000000-FRA",
            "Cf-Visitor": '{"scheme":"https"}',
        },
    ),
    "Squid as an accelerator": ("1.1", {"Host": HERE, **CURL, "Surrogate-Capability": "x=ESI/1.0"}),
    "Varnish": ("1.1", {"Host": HERE, **CURL, "X-Varnish": "32770"}),
    "tailscale serve": ("1.1", {"Host": HERE, **CURL, "Tailscale-User-Login": "a@example.com"}),
    "an Azure front door": ("1.1", {"Host": HERE, **CURL, "X-Azure-ClientIP": "203.0.113.9"}),
    "IIS with ARR": ("1.1", {"Host": HERE, **CURL, "X-ARR-LOG-ID": "1", "X-Original-URL": "/"}),
    "a load balancer of AWS": ("1.1", {"Host": HERE, **CURL, "X-Amzn-Trace-Id": "Root=1-0-0"}),
    "an unknown one that names nobody": ("1.1", {"Host": "", **CURL}),
}
LOCAL: dict[str, tuple[str, dict[str, str]]] = {
    "curl": ("1.1", {"Host": HERE, **CURL}),
    "curl to localhost": ("1.1", {"Host": "localhost:8000", **CURL}),
    "curl to ::1": ("1.1", {"Host": "[::1]:8000", **CURL}),
    "urllib": ("1.1", {"Accept-Encoding": "identity", "Host": HERE, "Connection": "close", "User-Agent": "Python"}),
    "a browser": (
        "1.1",
        {
            "Host": HERE,
            "Origin": f"http://{HERE}",
            "Referer": f"http://{HERE}/",
            "User-Agent": "Mozilla/5.0",
            "Sec-Fetch-Site": "same-origin",
            "Accept-Language": "de",
            "Cookie": "a=b",
            "DNT": "1",
            "Upgrade-Insecure-Requests": "1",
        },
    ),
    "an OpenAI client": (
        "1.1",
        {"Host": HERE, "Authorization": "Bearer x", "X-Stainless-Lang": "python", "x-request-id": "1", **CURL},
    ),
}
UNSEEN: dict[str, tuple[str, dict[str, str]]] = {
    "nginx, proxy_pass with HTTP/1.1 alone": ("1.1", {"Host": HERE, **CURL}),
    "a TCP proxy, ssh -R or kubectl port-forward to which the visitor says localhost": ("1.1", {"Host": HERE, **CURL}),
}


async def exchange(port: int, path: str, proxy: tuple[str, dict[str, str]], *, socket: bool = False) -> int:
    """Sends exactly these bytes, and returns the status of the answer."""
    version, headers = proxy
    body = b"" if socket else json.dumps(CALLS[path]).encode()
    sent = dict(headers)
    if socket:
        sent.pop("Connection", None)
        sent |= {"Connection": "Upgrade", "Upgrade": "websocket"}
        sent |= {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    else:
        sent |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    head = [f"{'GET' if socket else 'POST'} {path} HTTP/{version}", *(f"{name}: {sent[name]}" for name in sent)]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write("\r\n".join([*head, "", ""]).encode() + body)
        return int((await reader.readline()).split()[1])
    finally:
        writer.close()
        await writer.wait_closed()


async def statuses(proxies: dict[str, tuple[str, dict[str, str]]]) -> tuple[dict[str, set[int]], int]:
    """What each of them is told at every door, and how often the agent was asked."""
    agent, told = EchoAgent(), {}
    channels: list[Channel] = [InvocationsChannel(), ResponsesChannel(), ConversationsChannel()]
    async with serving(AgentFrameworkHost(agent, channels=channels)) as client:
        port = int(client.base_url.rpartition(":")[2])
        for name, proxy in proxies.items():
            told[name] = {await exchange(port, path, proxy) for path in CALLS}
            if proxy[0] == "1.1":
                told[name].add(await exchange(port, "/v1/responses", proxy, socket=True))
    return told, len(agent.seen)


async def test_a_proxy_on_the_machine_made_everyone_local() -> None:
    told, seen = await statuses(PROXIES)
    assert told == {name: {401} for name in PROXIES}
    assert seen == 0


async def test_callers_of_this_machine_are_still_local() -> None:
    told, _ = await statuses(LOCAL)
    assert told == {name: {200, 101} for name in LOCAL}


async def test_what_a_proxy_does_not_say_can_not_be_seen() -> None:
    """Not a promise: the threat model names these, so that nobody relies on them."""
    told, _ = await statuses(UNSEEN)
    assert told == {name: {200, 101} for name in UNSEEN}


ADDED = sorted(FORWARDED | {prefix + b"anything" for prefix in FORWARDED_PREFIXES})


@pytest.mark.parametrize("name", ADDED, ids=bytes.decode)
async def test_any_header_that_proxies_add_makes_a_caller_a_stranger(name: bytes) -> None:
    verifier = HttpVerifier("web", None)
    scope = {"type": "http", "http_version": "1.1", "client": ("127.0.0.1", 1)}
    local = {b"host": HERE.encode(), b"accept": b"*/*"}
    assert (await verifier.verify(scope, local)).may_name_sessions
    with pytest.raises(UnauthenticatedError):
        await verifier.verify(scope, {**local, name: b"127.0.0.1"})


def _read_config(how: str, host: AgentFrameworkHost, monkeypatch: pytest.MonkeyPatch) -> uvicorn.Config:
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
    for module in ("frontdesk.server.uvicorn_server", "frontdesk.cli.serve"):
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
    config = _read_config(how, host, monkeypatch)
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
