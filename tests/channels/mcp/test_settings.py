"""Settings of the channel, what is found wrong with them when the host is built, and the OAuth resource."""

import sys
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost, ApiKeyAuth, BearerAuth, ChannelConfigurationError
from frontdesk.channels.mcp import MCPChannel, MCPTool
from frontdesk_testing import serving
from tests.access_matrix.issuer import serve_issuers
from tests.channels.mcp.clients import modern, send
from tests.scenarios.cast import echo

GOOD = MCPTool(name="ask", description="Asks.")
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no tools": ({"tools": []}, "tools must have 1 to 100 tools"),
    "no tool": ({"tools": ["ask"]}, "tools must be a list of MCPTool"),
    "twice": ({"tools": [GOOD, GOOD]}, "the name 'ask' is used twice"),
    "name": ({"tools": [GOOD.replace(name="ask me")]}, "name must have 1 to 64"),
    "description": ({"tools": [GOOD.replace(description=" ")]}, "description is missing"),
    "long": ({"tools": [GOOD.replace(description="x" * 9_000)]}, "at most 8000 characters"),
    "tasks": ({"tools": [GOOD.replace(tasks="maybe")]}, "tasks must be 'auto', 'never' or 'always'"),
    "always": ({"tools": [GOOD.replace(tasks="always")], "tasks": False}, "needs tasks=True"),
    "schema": ({"tools": [GOOD.replace(input_schema={"type": "string"})]}, "with the type 'object'"),
    "bad schema": (
        {"tools": [GOOD.replace(input_schema={"type": "object", "properties": {"x": {"type": "text"}}})]},
        "Unknown JSON schema type",
    ),
    "attributes": ({"tools": [GOOD.replace(attributes={"x": object()})]}, "attributes can't be written as JSON"),
    "target": ({"tools": [GOOD.replace(target="another")]}, "the host has no target 'another'"),
    "url": ({"approval_url": "/approvals"}, "approval_url must be the http(s) URL of a page"),
    "sessions": ({"max_sessions": 0}, "max_sessions must be at least 1"),
    "seconds": ({"question_seconds": 0.0}, "question_seconds must be positive"),
    "stateless": ({"stateless": "yes"}, "stateless"),
}


@pytest.mark.parametrize(("settings", "text"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_found_when_the_host_is_built(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ChannelConfigurationError) as found:
        AgentFrameworkHost(echo, channels=[MCPChannel(**settings)])
    assert text in str(found.value)


def test_without_its_extra_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*sys.modules]:
        if name.startswith(("mcp.", "frontdesk.channels.mcp.")) and name not in (
            "frontdesk.channels.mcp.channel",
            "frontdesk.channels.mcp.config",
        ):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(ChannelConfigurationError, match=r"MCPChannel needs its extra: .*\[mcp\]"):
        AgentFrameworkHost(echo, channels=[MCPChannel()])


def test_a_tool_may_name_the_target_of_the_host() -> None:
    AgentFrameworkHost(echo, channels=[MCPChannel(tools=[GOOD.replace(target="echo")])])


async def test_clients_find_the_authorization_server() -> None:
    async with serve_issuers() as issuers:
        issuer = issuers.url("north")
        auth = BearerAuth(issuer=issuer, audience="api://desk", required_claims={"scope": "desk.ask"})
        host = AgentFrameworkHost(echo, channels=[MCPChannel(auth=auth)], public_url="https://desk.example")
        assert any("RFC 8707" in warning for warning in host.warnings)
        async with serving(host) as served:
            refused = await send(served.http, modern("tools/list"))
            assert refused.status_code == 401
            url = "https://desk.example/.well-known/oauth-protected-resource/mcp"
            challenge = refused.headers["www-authenticate"]
            assert challenge == f'Bearer resource_metadata="{url}", scope="desk.ask"'
            forged = await send(served.http, modern("tools/list"), authorization="Bearer a.b.c")
            assert forged.headers["www-authenticate"].startswith('Bearer error="invalid_token", resource_metadata=')
            document = (await served.http.get("/.well-known/oauth-protected-resource/mcp")).json()
    assert document == {
        "resource": "https://desk.example/mcp",
        "authorization_servers": [issuer],
        "bearer_methods_supported": ["header"],
        "resource_name": "echo",
        "scopes_supported": ["desk.ask"],
    }


async def test_without_a_public_url_the_resource_is_that_of_the_request() -> None:
    async with serve_issuers() as issuers:
        auth = BearerAuth(issuer=issuers.url("north"), audience="api://desk")
        several = [auth, ApiKeyAuth({"ada": "the-key-of-ada-is-long"})]
        async with serving(AgentFrameworkHost(echo, channels=[MCPChannel(auth=several)])) as served:
            document = (await served.http.get("/.well-known/oauth-protected-resource/mcp")).json()
            assert document["resource"] == f"{served.base_url}/mcp"


async def test_without_issuers_there_is_no_metadata() -> None:
    channel = MCPChannel(auth=ApiKeyAuth({"ada": "the-key-of-ada-is-long"}))
    async with serving(AgentFrameworkHost(echo, channels=[channel])) as served:
        assert (await served.http.get("/.well-known/oauth-protected-resource/mcp")).status_code == 404
        assert (await send(served.http, modern("tools/list"))).headers["www-authenticate"] == "Bearer"
