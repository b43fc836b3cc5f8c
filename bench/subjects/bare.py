"""The measure of all things: a plain Starlette app that sends canned bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from bench.plan import STREAM_DELTAS
from bench.sample import Sample, make_up_sample
from bench.setting import Setting
from bench.subjects.base import Case, Subject

EVENT_STREAM = "text/event-stream"
PATHS: dict[Case, str] = {
    "json": "/json",
    "stream": "/stream",
    "fresh": "/stream",
    "paced": "/paced",
    "idle": "/idle",
}


class Bare(Subject):
    name = "bare"
    runs_agents = True
    import_app = "from starlette.applications import Starlette; from starlette.responses import StreamingResponse"

    def build_app(self, setting: Setting) -> Any:
        if setting.target != "stub":
            return agent_app(tools=setting.target == "tools")
        return bare_app(Sample.load(setting.sample) if setting.sample else make_up_sample(STREAM_DELTAS))

    def request(self, case: Case) -> tuple[str, bytes]:
        return PATHS[case], b'{"message":"hello","stream":false}'

    def turn_request(self, text: str, session_id: str | None) -> tuple[str, bytes]:
        body = {"message": text, "stream": False, "session_id": session_id}
        return PATHS["json"], json.dumps(body).encode()

    def session_id_in(self, body: bytes) -> str | None:
        return json.loads(body).get("session_id")


def bare_app(sample: Sample) -> Starlette:
    answer = sample.answer.encode()
    events = [event.encode() for event in sample.events]
    idle_events = [event.encode() for event in sample.idle_events]

    async def send_events() -> AsyncIterator[bytes]:
        for event in events:
            yield event

    async def send_paced() -> AsyncIterator[bytes]:
        for event in events:
            await asyncio.sleep(0)
            yield event

    async def send_and_wait() -> AsyncIterator[bytes]:
        for event in idle_events:
            yield event
        await asyncio.Event().wait()

    async def give_json(request: Request) -> Response:
        await request.body()
        return Response(answer, media_type="application/json")

    async def give_stream(request: Request) -> Response:
        await request.body()
        return StreamingResponse(send_events(), media_type=EVENT_STREAM)

    async def give_paced(request: Request) -> Response:
        await request.body()
        return StreamingResponse(send_paced(), media_type=EVENT_STREAM)

    async def give_idle(request: Request) -> Response:
        await request.body()
        return StreamingResponse(send_and_wait(), media_type=EVENT_STREAM)

    async def health(request: Request) -> Response:
        return Response(b"ok")

    return Starlette(
        routes=[
            Route("/json", give_json, methods=["POST"]),
            Route("/stream", give_stream, methods=["POST"]),
            Route("/paced", give_paced, methods=["POST"]),
            Route("/idle", give_idle, methods=["POST"]),
            Route("/healthz", health),
        ]
    )


def agent_app(*, tools: bool) -> Starlette:
    """The least that a conversation with the framework's own agent takes: sessions in a dict, history in a session."""
    from agent_framework import AgentSession

    from bench.real_agent import build_agent

    agent = build_agent(tools=tools)
    sessions: dict[str, AgentSession] = {}

    async def give_answer(request: Request) -> Response:
        asked = await request.json()
        session = sessions.get(asked["session_id"]) or agent.create_session()
        sessions[session.session_id] = session
        answer = await agent.run(asked["message"], session=session)
        return JSONResponse({"session_id": session.session_id, "text": answer.text})

    async def health(request: Request) -> Response:
        return Response(b"ok")

    return Starlette(routes=[Route(PATHS["json"], give_answer, methods=["POST"]), Route("/healthz", health)])


subject = Bare()
