"""Our host: in-memory store, MCP channel, an agent that costs nothing. Requests of the protocol version 2026-07-28."""

from __future__ import annotations

import json
from typing import Any

from bench.setting import Setting
from bench.subjects.base import Case
from bench.subjects.frontdesk import Served, limits, parse_target, to_json

PATH = "/mcp"
TOOL = "ask"
VERSION = "2026-07-28"
_META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def call(message: str, session_id: str | None = None) -> bytes:
    """Return the body of a call of the tool."""
    arguments = {"message": message, **({"session": session_id} if session_id else {})}
    params = {"name": TOOL, "arguments": arguments, "_meta": _META}
    return to_json({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


class Mcp(Served):
    name = "mcp"
    measures = ("json",)
    import_package = "import frontdesk"
    import_app = "from frontdesk import AgentFrameworkHost; from frontdesk.channels.mcp import MCPChannel"
    headers = {"mcp_protocol_version": VERSION, "mcp_method": "tools/call", "mcp_name": TOOL}  # noqa: RUF012

    def build_app(self, setting: Setting) -> Any:
        from frontdesk import AgentFrameworkHost
        from frontdesk.channels.mcp import MCPChannel, MCPTool

        channel = MCPChannel(tools=[MCPTool(name=TOOL, description="Asks.")], limits=limits())
        return AgentFrameworkHost(parse_target(setting), channels=[channel]).app

    def request(self, case: Case) -> tuple[str, bytes]:
        return PATH, call(case)

    def turn_request(self, text: str, session_id: str | None) -> tuple[str, bytes]:
        return PATH, call(text, session_id)

    def session_id_in(self, body: bytes) -> str | None:
        return json.loads(body)["result"]["structuredContent"]["session"]


subject = Mcp()
