"""Local servers that speak as those of models do: the Responses API is our own, the others are the least there is."""

from contextlib import asynccontextmanager
from typing import Any

from agent_framework import Agent
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from frontdesk import AgentFrameworkHost
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.testing import ScriptedChatClient


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


async def _chat_completions(request: Request) -> JSONResponse:
    asked = await request.json()
    message = {"role": "assistant", "content": f"Compatible heard {_text(asked)}"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return JSONResponse(
        {"id": "c1", "object": "chat.completion", "created": 1, "model": asked["model"], "choices": [choice]}
    )


async def _messages(request: Request) -> JSONResponse:
    asked = await request.json()
    assert request.headers["x-api-key"] == "a-key"
    content = [{"type": "text", "text": f"Anthropic heard {_text(asked)}"}]
    usage = {"input_tokens": 1, "output_tokens": 1}
    said = {"id": "m1", "type": "message", "role": "assistant", "model": asked["model"], "content": content}
    return JSONResponse({**said, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage})


async def _ollama(request: Request) -> JSONResponse:
    asked = await request.json()
    message = {"role": "assistant", "content": f"Ollama heard {_text(asked)}"}
    return JSONResponse(
        {"model": asked["model"], "created_at": "2026-01-01T00:00:00Z", "message": message, "done": True}
    )


def _text(asked: dict[str, Any]) -> str:
    content = asked["messages"][-1]["content"]
    return content if isinstance(content, str) else content[-1]["text"]
