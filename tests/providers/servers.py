"""Local servers that speak as those of models do: the Responses API is our own, the others are the least there is."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agent_framework import Agent
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from frontdesk import AgentFrameworkHost
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.scripted import ScriptedChatClient


def model_servers() -> Starlette:
    """Return an app with a server for each of the APIs; each says in its answer which one it is."""
    openai = _host("OpenAI", "/v1/responses")
    azure = _host("Azure", "/openai/v1/responses")
    return Starlette(
        routes=[
            Route("/v1/chat/completions", _chat_completions, methods=["POST"]),
            Route("/v1/messages", _messages, methods=["POST"]),
            Route("/api/chat", _ollama, methods=["POST"]),
            Mount("/azure", azure.app),
            Mount("/", openai.app),
        ],
        lifespan=_both(openai, azure),
    )


def _host(name: str, path: str) -> AgentFrameworkHost:
    agent = Agent(ScriptedChatClient(lambda messages: f"{name} heard {messages[-1].text}"), name=name)
    return AgentFrameworkHost(agent, channels=[ResponsesChannel(path=path)])


def _both(first: AgentFrameworkHost, second: AgentFrameworkHost) -> Any:
    @asynccontextmanager
    async def lifespan(app: object):
        async with first.lifespan(), second.lifespan():
            yield

    return lifespan


async def _chat_completions(request: Request) -> Response:
    asked = await request.json()
    said = f"Compatible heard {_text(asked)}"
    head = {"id": "c1", "created": 1, "model": asked["model"]}
    if asked.get("stream"):
        deltas = [{"role": "assistant", "content": word} for word in _words(said)]
        chunks = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        chunks.append({"index": 0, "delta": {}, "finish_reason": "stop"})
        frames = [json.dumps({**head, "object": "chat.completion.chunk", "choices": [chunk]}) for chunk in chunks]
        return _stream("text/event-stream", *(f"data: {frame}\n\n" for frame in [*frames, "[DONE]"]))
    choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
    return JSONResponse({**head, "object": "chat.completion", "choices": [choice]})


async def _messages(request: Request) -> Response:
    asked = await request.json()
    assert request.headers["x-api-key"] == "a-key"
    said = f"Anthropic heard {_text(asked)}"
    usage = {"input_tokens": 1, "output_tokens": 1}
    head = {"id": "m1", "type": "message", "role": "assistant", "model": asked["model"], "stop_sequence": None}
    if not asked.get("stream"):
        content = [{"type": "text", "text": said}]
        return JSONResponse({**head, "content": content, "stop_reason": "end_turn", "usage": usage})
    begun = {**head, "content": [], "stop_reason": None, "usage": usage}
    deltas = [{"type": "text_delta", "text": word} for word in _words(said)]
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    frames = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return _stream("text/event-stream", *frames)


async def _ollama(request: Request) -> Response:
    asked = await request.json()
    words = _words(f"Ollama heard {_text(asked)}")
    head = {"model": asked["model"], "created_at": "2026-01-01T00:00:00Z"}
    if not asked.get("stream"):
        return JSONResponse({**head, "message": {"role": "assistant", "content": "".join(words)}, "done": True})
    lines = [{**head, "message": {"role": "assistant", "content": word}, "done": False} for word in words]
    lines.append({**head, "message": {"role": "assistant", "content": ""}, "done": True})
    return _stream("application/x-ndjson", *(json.dumps(line) + "\n" for line in lines))


def _stream(kind: str, *pieces: str) -> Response:
    async def written() -> AsyncIterator[str]:
        for piece in pieces:
            yield piece

    return StreamingResponse(written(), media_type=kind)


def _words(text: str) -> list[str]:
    return re.findall(r"\S+\s*", text)


def _text(asked: dict[str, Any]) -> str:
    content = asked["messages"][-1]["content"]
    return content if isinstance(content, str) else content[-1]["text"]
