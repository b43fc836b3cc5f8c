"""The MCP channel keeps the channel contract, as the older version of the protocol without sessions."""

import json
from typing import Any

import httpx

from frontdesk.channels.mcp import MCPChannel, MCPTool
from frontdesk_testing import ChannelContract


def message_in(response: httpx.Response) -> dict[str, Any]:
    """Return the JSON-RPC message of a response: JSON, or the last event of a stream."""
    if response.headers["content-type"].startswith("text/event-stream"):
        return json.loads([line for line in response.text.splitlines() if line.startswith("data: {")][-1][6:])
    return response.json()


class TestMCP(ChannelContract):
    path = "/mcp"

    def channel(self, **settings: Any) -> MCPChannel:
        given = {name: value for name, value in settings.items() if value is not None}
        return MCPChannel(stateless=True, tools=[MCPTool(name="ask", description="Asks.")], **given)

    def message(self, text: str) -> Any:
        params = {"name": "ask", "arguments": {"message": text}}
        return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}

    def run_id(self, answer: httpx.Response) -> str:
        return message_in(answer)["result"]["structuredContent"]["run_id"]

    def error_text(self, response: httpx.Response) -> str:
        message = message_in(response)
        assert set(message) == {"jsonrpc", "id", "error"}
        assert isinstance(message["error"]["code"], int)
        return message["error"]["message"]

    def failure_text(self, response: httpx.Response) -> str:
        return message_in(response)["result"]["structuredContent"]["text"]
