"""Scenarios 1 to 3 of the design: one door, two doors and middleware, and a policy in a hook."""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from agent_framework import Agent
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from frontdesk import AgentFrameworkHost, ApiKeyAuth, ChannelRequest
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import serving
from tests.faults.ports import free_port, is_ready
from tests.scenarios.desk import until

PAGE = "https://shop.example"
PROGRAM = """
from agent_framework import Agent
from frontdesk import AgentFrameworkHost
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.scripted import ScriptedChatClient

agent = Agent(client=ScriptedChatClient(lambda messages: "Good day!"), name="Concierge")
host = AgentFrameworkHost(target=agent, channels=[ResponsesChannel()])
host.serve(host="localhost", port=PORT)
"""
APP = """
from agent_framework import Agent
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.scripted import ScriptedChatClient

agent = Agent(client=ScriptedChatClient(lambda messages: "Good day!"), name="Concierge")
cors = Middleware(CORSMiddleware, allow_origins=["PAGE"], allow_methods=["*"], allow_headers=["*"])
host = AgentFrameworkHost(target=agent, channels=[ResponsesChannel(), InvocationsChannel()], middleware=[cors])
app = host.app
"""
SERVERS = {
    "hypercorn": ["-m", "hypercorn", "--bind", "127.0.0.1:PORT", "desk:app"],
    "granian": ["-m", "granian", "--interface", "asgi", "--host", "127.0.0.1", "--port", "PORT", "desk:app"],
}


@asynccontextmanager
async def run_program(words: Sequence[str], port: int, place: Path | None = None) -> AsyncIterator[httpx.AsyncClient]:
    """Run a program until the block ends, and give a client once it answers."""
    process = await asyncio.create_subprocess_exec(sys.executable, *words, cwd=place)
    try:
        async with httpx.AsyncClient(base_url=f"http://localhost:{port}", trust_env=False) as client:
            await until(lambda: is_ready(client))
            yield client
    finally:
        process.terminate()
        await process.wait()


def _agent() -> Agent:
    return Agent(client=ScriptedChatClient(lambda messages: "Good day!"), name="Concierge")


def _text(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    return answer.json()["output"][0]["content"][0]["text"]


class TestOneAgentOnTheResponsesApi:
    async def test_responses_answers(self) -> None:
        port = free_port()
        async with run_program(["-c", PROGRAM.replace("PORT", str(port))], port) as client:
            assert _text(await client.post("/responses", json={"input": "Hello"})) == "Good day!"


class TestTwoDoorsAndMiddleware:
    def _host(self) -> AgentFrameworkHost:
        cors = Middleware(CORSMiddleware, allow_origins=[PAGE], allow_methods=["*"], allow_headers=["*"])
        doors = [ResponsesChannel(), InvocationsChannel()]
        return AgentFrameworkHost(target=_agent(), channels=doors, middleware=[cors])

    @pytest.mark.parametrize(("path", "body"), [("/responses", {"input": "Hi"}), ("/invocations", {"message": "Hi"})])
    async def test_a_page_may_call_both_doors(self, path: str, body: Any) -> None:
        async with serving(self._host()) as client:
            asks = {"origin": PAGE, "access-control-request-method": "POST"}
            preflight = await client.http.options(path, headers=asks)
            assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (200, PAGE)
            answer = await client.http.post(path, json=body, headers={"origin": PAGE})
            assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, PAGE)
            assert "Good day!" in answer.text
            other = await client.http.options(path, headers={**asks, "origin": "https://other.example"})
            assert "access-control-allow-origin" not in other.headers

    async def test_pages_that_the_middleware_lets_in_were_refused_by_the_channels(self) -> None:
        async with serving(self._host()) as client:
            for path, body in (("/responses", {"input": "Hi"}), ("/invocations", {"message": "Hi"})):
                assert (await client.http.post(path, json=body, headers={"origin": PAGE})).status_code == 200
                other = await client.http.post(path, json=body, headers={"origin": "https://other.example"})
                assert other.status_code == 403

    async def test_a_host_that_lets_every_page_in_warns_of_it(self) -> None:
        cors = Middleware(CORSMiddleware, allow_origins=["*"], allow_methods=["*"], allow_headers=["*"])
        doors = [ResponsesChannel(), InvocationsChannel(auth=ApiKeyAuth({"ann": "a key that is long enough for ann"}))]
        host = AgentFrameworkHost(target=_agent(), channels=doors, middleware=[cors])
        (warning,) = host.warnings
        assert warning.startswith("channel 'responses': the host's CORSMiddleware lets pages of every origin in")
        async with serving(host) as client:
            answer = await client.http.post("/responses", json={"input": "Hi"}, headers={"origin": PAGE})
            assert answer.status_code == 200

    @pytest.mark.parametrize("server", SERVERS)
    async def test_the_app_runs_on_another_asgi_server(self, server: str, tmp_path: Path) -> None:
        (tmp_path / "desk.py").write_text(APP.replace("PAGE", PAGE), "utf-8")
        port = free_port()
        words = [word.replace("PORT", str(port)) for word in SERVERS[server]]
        async with run_program(words, port, tmp_path) as client:
            page = {"origin": PAGE}
            assert _text(await client.post("/responses", json={"input": "Hi"}, headers=page)) == "Good day!"
            answer = await client.post("/invocations", json={"message": "Hi"}, headers=page)
            assert answer.json()["text"] == "Good day!"
            assert answer.headers["access-control-allow-origin"] == PAGE
            asked = {**page, "access-control-request-method": "POST"}
            preflight = await client.options("/responses", headers=asked)
            assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (200, PAGE)


def policy(request: ChannelRequest, **kwargs: Any) -> ChannelRequest:
    """The hook of scenario 3, as it stands there."""
    if "temperature" not in request.options:
        raise ValueError("temperature is required")
    return replace(request, session_mode="required")


class TestAPolicyInARunHook:
    async def test_a_request_without_temperature_is_the_callers_error(self) -> None:
        host = AgentFrameworkHost(target=_agent(), channels=[InvocationsChannel(run_hook=policy)])
        async with serving(host) as client:
            refused = await client.http.post("/invocations", json={"message": "Hi"})
            assert (refused.status_code, refused.json()["error"]["code"]) == (422, "hook_failed")
            warm = {"message": "Hi", "options": {"temperature": 0.5}}
            assert (await client.http.post("/invocations", json=warm)).json()["error"]["code"] == "session_required"
            answer = await client.http.post("/invocations", json={**warm, "session_id": "mine"})
            assert answer.json()["text"] == "Good day!"

    async def test_the_same_on_responses(self) -> None:
        host = AgentFrameworkHost(target=_agent(), channels=[ResponsesChannel(run_hook=policy)])
        async with serving(host) as client:
            assert (await client.http.post("/responses", json={"input": "Hi"})).status_code == 422
            answer = await client.http.post("/responses", json={"input": "Hi", "temperature": 0.5})
            assert (answer.status_code, answer.json()["error"]["code"]) == (409, "session_required")
