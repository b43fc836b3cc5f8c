"""Sessions of the older era and access: whose they are, how many there may be, and who may call at all."""

import asyncio
from typing import Any

import httpx
import pytest

from frontdesk import AgentFrameworkHost, ApiKeyAuth, HttpLimits, NativeIdAllowlist
from frontdesk.channels.mcp import MCPChannel
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk_testing import serving
from tests.channels.mcp.clients import LEGACY, MODERN, VERSION, connect, in_session, initialize, modern, send
from tests.scenarios.cast import echo, parrot
from tests.scenarios.desk import until

KEYS = {"ada": "the-key-of-ada-is-long", "bob": "the-key-of-bob-is-long"}
ADA, BOB = ({"x-api-key": key} for key in KEYS.values())
CALL = {"name": "echo", "arguments": {"message": "hi"}}


def host_of(**settings: Any) -> AgentFrameworkHost:
    return AgentFrameworkHost(echo, channels=[MCPChannel(auth=ApiKeyAuth(KEYS), **settings)])


async def opened(http: httpx.AsyncClient, **headers: str) -> str:
    response = await initialize(http, **headers)
    assert response.status_code == 200
    return response.headers["mcp-session-id"]


def sessions_of(host: AgentFrameworkHost) -> Any:
    return host.channels[0].server.sessions  # type: ignore[attr-defined]


async def test_a_session_answers_only_to_the_credential_that_opened_it() -> None:
    async with serving(host_of()) as served:
        http = served.http
        session = await opened(http, **ADA)
        await in_session(http, session, "notifications/initialized", {}, **ADA)
        foreign = await in_session(http, session, "tools/call", CALL, **BOB)
        unknown = await in_session(http, "mcps_unknown", "tools/call", CALL, **BOB)
        assert foreign.status_code == unknown.status_code == 404
        assert foreign.json() == unknown.json()
        for method in ("GET", "DELETE"):
            headers = {"mcp-session-id": session, "accept": "text/event-stream", **BOB}
            assert (await http.request(method, "/mcp", headers=headers)).status_code == 404
        assert (await in_session(http, session, "tools/call", CALL)).status_code == 401
        own = await in_session(http, session, "tools/call", CALL, **ADA)
        assert "you said hi" in own.text


async def test_each_caller_of_a_session_has_runs_of_its_own() -> None:
    async with serving(host_of()) as served:
        async with connect(served.base_url, LEGACY, headers=ADA) as ada:
            session = (await ada.call_tool("echo", {"message": "hi"})).structured_content["session"]
        async with connect(served.base_url, LEGACY, headers=BOB) as bob:
            result = await bob.call_tool("echo", {"message": "", "session": session})
            assert result.structured_content["code"] == "not_found"


async def test_the_sessions_of_a_caller_and_of_all_are_limited() -> None:
    async with serving(host_of(max_sessions=3, max_sessions_per_caller=2)) as served:
        first = await opened(served.http, **ADA)
        await opened(served.http, **ADA)
        refused = await initialize(served.http, **ADA)
        assert refused.status_code == 429
        assert refused.json()["error"]["data"]["code"] == "too_many_requests"
        await opened(served.http, **BOB)
        full = await initialize(served.http, **BOB)
        assert full.status_code == 503
        ended = await served.http.delete("/mcp", headers={"mcp-session-id": first, **ADA})
        assert ended.status_code == 200
        assert (await in_session(served.http, first, "ping", {}, **ADA)).status_code == 404
        await opened(served.http, **ADA)


async def test_a_request_that_opens_nothing_leaves_no_session() -> None:
    host = host_of()
    async with serving(host) as served:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        accept = {"accept": "application/json, text/event-stream", **ADA}
        assert (await served.http.post("/mcp", json=body, headers=accept)).status_code == 400
        bad = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
        await served.http.post("/mcp", json=bad, headers={**ADA, "accept": "text/html"})
        assert len(sessions_of(host)) == 0


async def test_an_idle_session_ends() -> None:
    host = host_of(session_idle_seconds=0.1)
    async with serving(host) as served:
        session = await opened(served.http, **ADA)

        async def is_gone() -> bool:
            return len(sessions_of(host)) == 0

        await until(is_gone)
        assert (await in_session(served.http, session, "ping", {}, **ADA)).status_code == 404


async def test_with_a_shared_store_there_are_no_sessions_and_any_replica_answers(postgres: str) -> None:
    hosts = [
        AgentFrameworkHost(parrot(), channels=[MCPChannel(auth=ApiKeyAuth(KEYS))], store=PostgresStateStore(postgres))
        for _ in range(2)
    ]
    async with serving(hosts[0]) as one, serving(hosts[1]) as other:
        response = await initialize(one.http, **ADA)
        assert response.status_code == 200
        assert "mcp-session-id" not in response.headers
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": VERSION, **ADA}
        body: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {**CALL, "name": "Concierge"},
        }
        assert "you said hi" in (await other.http.post("/mcp", json=body, headers=headers)).text
        assert (await other.http.get("/mcp", headers=headers)).status_code == 405
        assert (await other.http.delete("/mcp", headers=headers)).status_code == 405
        async with connect(one.base_url, MODERN, headers=ADA) as first:
            session = (await first.call_tool("Concierge", {"message": "a"})).structured_content["session"]
        async with connect(other.base_url, LEGACY, headers=ADA) as second:
            result = await second.call_tool("Concierge", {"message": "b", "session": session})
            assert result.structured_content["session"] == session


@pytest.mark.parametrize("method", ["tools/list", "tools/call", "server/discover"])
async def test_a_caller_without_access_gets_nothing(method: str) -> None:
    called: list[str] = []

    async def target(text: str) -> str:
        called.append(text)
        return text

    channel = MCPChannel(auth=ApiKeyAuth(KEYS), allowlist=NativeIdAllowlist(["ada"]))
    async with serving(AgentFrameworkHost(target, channels=[channel])) as served:
        params = {"name": "target", "arguments": {"message": "hi"}} if method == "tools/call" else {}
        answer = await send(served.http, modern(method, params), **BOB)
        assert "error" in answer.json()
        assert "tools" not in answer.text.replace(method, "")
        assert answer.json()["id"] == 1
        assert (await initialize(served.http, **BOB)).status_code == 403
        assert (await send(served.http, modern(method, params), **ADA)).status_code == 200
    assert called in ([], ["hi"])


async def test_pages_of_other_origins_and_other_host_names_are_refused() -> None:
    async with serving(AgentFrameworkHost(echo, channels=[MCPChannel()])) as served:
        evil = {"origin": "https://evil.example"}
        assert (await send(served.http, modern("tools/list"), **evil)).status_code == 403
        rebound = {"host": "evil.example", "origin": "http://evil.example"}
        assert (await send(served.http, modern("tools/list"), **rebound)).status_code in (401, 403)
        assert (await send(served.http, modern("tools/list"))).status_code == 200


async def test_bodies_are_limited_before_they_are_parsed() -> None:
    async with serving(host_of(max_body_bytes=2_000, max_body_values=100)) as served:
        long = await send(served.http, modern("tools/call", {**CALL, "pad": "x" * 3_000}), **ADA)
        assert (long.status_code, long.json()["error"]["code"]) == (413, -32600)
        deep: Any = []
        for _ in range(80):
            deep = [deep]
        nested = await send(served.http, modern("tools/call", {**CALL, "pad": deep}), **ADA)
        assert (nested.status_code, nested.json()["error"]["data"]["code"]) == (400, "nested_too_deep")
        wide = await send(served.http, modern("tools/call", {**CALL, "pad": [0] * 150}), **ADA)
        assert wide.json()["error"]["data"]["code"] == "too_many_values"
        broken = await served.http.post("/mcp", content=b"{", headers={"content-type": "application/json", **ADA})
        assert (broken.status_code, broken.json()["error"]["code"]) == (400, -32700)


async def test_the_streams_of_a_caller_are_limited() -> None:
    channel_limits = HttpLimits(max_running_per_caller=1)
    async with serving(host_of(limits=channel_limits)) as served:
        sessions = [await opened(served.http, **ADA) for _ in range(2)]
        headers = {"accept": "text/event-stream", "mcp-protocol-version": VERSION, **ADA}
        async with served.http.stream("GET", "/mcp", headers={**headers, "mcp-session-id": sessions[0]}) as stream:
            assert stream.status_code == 200
            second = await served.http.get("/mcp", headers={**headers, "mcp-session-id": sessions[1]})
            assert second.status_code == 429


async def test_the_host_stops_with_open_sessions_and_streams() -> None:
    async with serving(host_of(), raise_errors=False) as served:
        session = await opened(served.http, **ADA)
        headers = {"accept": "text/event-stream", "mcp-session-id": session, "mcp-protocol-version": VERSION, **ADA}
        stream = served.http.stream("GET", "/mcp", headers=headers)
        response = await stream.__aenter__()
        assert response.status_code == 200
        closing = asyncio.create_task(stream.__aexit__(None, None, None))
        await closing
