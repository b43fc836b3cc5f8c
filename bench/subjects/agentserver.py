"""A peer: azure-ai-agentserver-responses with its own in-memory store.

It knows no agents, only handlers, so the handler asks the stub agent and hands its words on. Its telemetry and its
access log are off, and it runs under the same server as the others instead of its own.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator
from typing import Any

from bench.setting import Setting
from bench.subjects.responses_api import ResponsesApi


class AgentServer(ResponsesApi):
    name = "agentserver"
    requires = ("azure-ai-agentserver-responses",)
    health_path = "/readiness"
    import_app = "from azure.ai.agentserver.responses import ResponsesAgentServerHost, TextResponse"

    def build_app(self, setting: Setting) -> Any:
        # It may keep streams for a replay in files; they must not stay.
        folder = tempfile.TemporaryDirectory(prefix="bench-agentserver-")
        os.environ["AGENTSERVER_STATE_ROOT"] = folder.name
        app = build_host()
        app.state.folder = folder
        return app


def build_host() -> Any:
    from azure.ai.agentserver.responses import (  # pyright: ignore[reportMissingImports]
        InMemoryResponseProvider,
        ResponsesAgentServerHost,
        TextResponse,
    )

    from bench.stub_agent import StubAgent

    agent: Any = StubAgent()
    app = ResponsesAgentServerHost(
        store=InMemoryResponseProvider(), configure_observability=None, access_log=None, log_level="WARNING"
    )

    @app.response_handler
    async def answer(request: Any, context: Any, cancellation_signal: Any) -> Any:
        asked = await context.get_input_text()
        if request.get("previous_response_id"):
            # The agent of ours gets the history too.
            await context.get_history()
        if request.get("stream"):
            return TextResponse(context, request, text=words(agent.run(asked, stream=True)))
        return TextResponse(context, request, text=(await agent.run(asked)).text)

    return app


async def words(stream: Any) -> AsyncIterator[str]:
    async for update in stream:
        yield update.text


subject = AgentServer()
