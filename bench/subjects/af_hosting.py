"""A peer: the newest agent-framework-hosting-responses, in the smallest app that it can be used in.

It has no routes and no host of its own: an app calls its functions. It keeps sessions and neither responses nor, for an
agent such as the stub, a history; and it sends fewer fields.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from bench.setting import Setting
from bench.subjects.responses_api import PATH, ResponsesApi


class AgentFrameworkHosting(ResponsesApi):
    name = "af-hosting"
    # The bound lets pip choose pre-releases of these two, and of nothing else.
    requires = ("agent-framework-hosting>=1.0.0a0", "agent-framework-hosting-responses>=1.0.0a0")
    import_app = "import agent_framework_hosting, agent_framework_hosting_responses"

    def build_app(self, setting: Setting) -> Any:
        from starlette.applications import Starlette
        from starlette.responses import Response
        from starlette.routing import Route

        async def health(request: Any) -> Response:
            return Response(b"ok")

        return Starlette(routes=[Route(PATH, build_endpoint(), methods=["POST"]), Route("/healthz", health)])


def build_endpoint() -> Any:
    from agent_framework_hosting import AgentState  # pyright: ignore[reportMissingImports]
    from agent_framework_hosting_responses import (  # pyright: ignore[reportMissingImports]
        create_response_id,
        responses_from_run,
        responses_from_streaming_run,
        responses_session_id,
        responses_to_run,
    )
    from starlette.responses import JSONResponse, StreamingResponse

    from bench.stub_agent import StubAgent

    state: Any = AgentState(StubAgent())

    async def create(request: Any) -> Any:
        body = await request.json()
        run, response_id = responses_to_run(body), create_response_id()
        known, _ = responses_session_id(body)
        session = await state.get_or_create_session(known or response_id)
        agent = await state.get_target()
        if body.get("stream"):
            stream = agent.run(run["messages"], stream=True, session=session)
            return StreamingResponse(send(stream, response_id, session), media_type="text/event-stream")
        result = await agent.run(run["messages"], session=session)
        await state.set_session(response_id, session)
        return JSONResponse(responses_from_run(result, response_id=response_id))

    async def send(stream: Any, response_id: str, session: Any) -> AsyncIterator[str]:
        async for event in responses_from_streaming_run(stream, response_id=response_id):
            yield event
        await state.set_session(response_id, session)

    return create


subject = AgentFrameworkHosting()
