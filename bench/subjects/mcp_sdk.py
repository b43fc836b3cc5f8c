"""A bare server on the SDK of MCP with one tool, which returns a fixed answer."""

from __future__ import annotations

import json
from typing import Any

from bench.setting import Setting
from bench.subjects.base import Case, Subject
from bench.subjects.mcp import PATH, TOOL, Mcp, call

ANSWER = "Hello, this is the answer."


class McpSdk(Subject):
    name = "mcp-sdk"
    measures = ("json",)
    headers = Mcp.headers

    def build_app(self, setting: Setting) -> Any:
        from mcp.server.lowlevel import Server
        from mcp.server.transport_security import TransportSecuritySettings
        from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool
        from starlette.responses import PlainTextResponse
        from starlette.routing import Route

        schema = {"type": "object", "properties": {"message": {"type": "string"}, "session": {"type": "string"}}}

        async def list_tools(ctx: Any, params: Any) -> Any:
            return ListToolsResult(tools=[Tool(name=TOOL, description="Asks.", input_schema=schema)])

        async def call_tool(ctx: Any, params: Any) -> Any:
            content: Any = [TextContent(type="text", text=ANSWER)]
            return CallToolResult(content=content, structured_content={"status": "completed", "text": ANSWER})

        async def health(request: Any) -> Any:
            return PlainTextResponse("ok")

        server: Any = Server("bare", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
        # The generator names the host without its port, which the defaults of the SDK refuse.
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        return server.streamable_http_app(
            streamable_http_path=PATH,
            stateless_http=True,
            transport_security=security,
            custom_starlette_routes=[Route("/healthz", health)],
        )

    def request(self, case: Case) -> tuple[str, bytes]:
        return PATH, call(case)

    def turn_request(self, text: str, session_id: str | None) -> tuple[str, bytes]:
        return PATH, call(text, session_id)

    def session_id_in(self, body: bytes) -> str | None:
        return json.loads(body)["id"]


subject = McpSdk()
