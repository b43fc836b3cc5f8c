"""Content that was shown to people whom it was not meant for: prompts, tools, reasons, tokens."""

import asyncio
import logging
import subprocess
import sys
from typing import Any

import pytest
from agent_framework import tool

from frontdesk import AgentFrameworkHost, ApiKeyAuth
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk_testing import FailingAgent, serving
from tests.outbound.origin import ok
from tests.outbound.origin import serve_origin as originating
from tests.scenarios.cast import build_scripted, call

PROMPT = "SYSTEM-PROMPT: never mention the basement"
INSIDE = ("SYSTEM-PROMPT", "look_up_guest", "basement", "room-404", "Traceback")
DOORS = {"/invocations": ["message"], "/v1/responses": ["input"]}


def _agent() -> Any:
    @tool(approval_mode="never_require")
    def look_up_guest(room: str) -> str:
        """Looks into the book."""
        return f"{room}: nobody of the basement"

    turns = [[call("look_up_guest", room="room-404")], ["Nobody that I know of."]]
    return build_scripted(turns * 4, tools=[look_up_guest], instructions=PROMPT)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", DOORS)
async def test_tool_traces_and_system_prompts_were_shown(path: str, stream: bool) -> None:
    channels = [InvocationsChannel(), ResponsesChannel()]
    async with serving(AgentFrameworkHost(_agent(), channels=channels)) as client:
        body = dict.fromkeys(DOORS[path], "who lives there?")
        answer = await client.http.post(path, json={**body, "stream": stream})
        assert answer.status_code == 200
        assert "Nobody" in answer.text
        shown = [answer.text]
        if not stream:
            shown.append((await client.http.get(f"{path}/{answer.json()['id']}")).text)
    assert not [word for word in INSIDE for text in shown if word in text]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", DOORS)
async def test_the_reason_of_a_failure_was_shown(path: str, stream: bool) -> None:
    agent = FailingAgent(RuntimeError("postgres://admin:hunter2@db.internal/guests"), after=1)
    channels = [InvocationsChannel(), ResponsesChannel()]
    async with serving(AgentFrameworkHost(agent, channels=channels)) as client:
        body: dict[str, Any] = dict.fromkeys(DOORS[path], "one two three")
        answer = await client.http.post(path, json={**body, "stream": stream})
        assert "failed" in answer.text or answer.is_error
        for word in ("hunter2", "postgres", "db.internal", "Traceback", "RuntimeError"):
            assert word not in answer.text


async def test_a_key_was_in_an_error_a_repr_or_a_log(caplog: pytest.LogCaptureFixture) -> None:
    key, wrong = "planted-key-of-alice-4711", "planted-wrong-key-0815"
    auth = ApiKeyAuth({"alice": key})
    host = AgentFrameworkHost(FailingAgent(), channels=[InvocationsChannel(auth=auth)])
    with caplog.at_level(logging.DEBUG):
        async with serving(host) as client:
            told = [repr(auth), str(auth), repr(vars(auth))]
            for one in (key, wrong):
                for name, value in (("x-api-key", one), ("authorization", f"Bearer {one}")):
                    answer = await client.http.post("/invocations", json={"message": "x"}, headers={name: value})
                    told += [answer.text, repr(dict(answer.headers))]
    lines = [
        f"{record.getMessage()} {record.exc_text or ''}"
        for record in caplog.records
        # The client of the test logs at this level what it sends itself.
        if not record.name.startswith(("httpcore", "httpx", "asyncio"))
    ]
    for planted in (key, wrong):
        assert not [text for text in [*told, *lines] if planted in text]


TOKEN = "4711471147:AAplantedTokenOfTheBot-xyz0123456789"
CALLS = """
import asyncio, logging, sys, httpx
from frontdesk.telemetry.redaction import install
logging.basicConfig(level=logging.DEBUG)
install()
async def main(base, token):
    async with httpx.AsyncClient(trust_env=False) as client:
        for path in (f"/bot{token}/getMe?access_token={token}", f"/bot{token}/refused"):
            try:
                (await client.get(base + path, headers={"authorization": f"Bearer {token}"})).raise_for_status()
            except httpx.HTTPError as error:
                logging.getLogger("anybody").exception("it failed: %s", error)
asyncio.run(main(*sys.argv[1:]))
"""


async def test_a_bots_token_was_in_error_texts_and_in_the_log_of_the_http_client() -> None:
    """Platforms put their bots' tokens into paths, and the HTTP client logs every URL that it asks for."""
    async with originating() as platform:
        platform.answers[f"/bot{TOKEN}/getMe"] = ok(b"{}")
        platform.answers[f"/bot{TOKEN}/refused"] = ok(b"{}", status="404 Not Found")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", CALLS, f"http://127.0.0.1:{platform.port}", TOKEN), stderr=subprocess.PIPE
        )
        _, logged = await process.communicate()
        assert len(platform.heads) == 2
    text = logged.decode()
    assert process.returncode == 0, text
    assert "HTTP Request: GET" in text
    assert "it failed" in text
    assert TOKEN not in text
