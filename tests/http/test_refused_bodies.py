"""Refusals that clients could not understand, over real HTTP."""

import gzip
import logging
from typing import Any

import msgspec
import pytest

from frontdesk import AgentFrameworkHost
from frontdesk.asgi.messages import RefusedOrigins, RefusedPreflights
from frontdesk.channels.chat_completions import ChatCompletionsChannel
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk.errors.sizes import format_size
from frontdesk_testing import EchoAgent, HostClient, serving
from tests.architecture import PACKAGE

BODIES: dict[str, Any] = {
    "/invocations": {"message": "hello"},
    "/v1/responses": {"input": "hello"},
    "/v1/chat/completions": {"model": "m", "messages": [{"role": "user", "content": "hello"}]},
    "/v1/conversations": {"metadata": {}},
}


def _host(**options: Any) -> AgentFrameworkHost:
    kinds = (InvocationsChannel, ResponsesChannel, ChatCompletionsChannel, ConversationsChannel)
    return AgentFrameworkHost(EchoAgent(), channels=[kind(**options) for kind in kinds])


@pytest.mark.parametrize("path", BODIES)
async def test_a_gzip_body_was_not_valid_json(path: str) -> None:
    raw = msgspec.json.encode(BODIES[path])
    async with serving(_host()) as client:
        for encoding, body in (("gzip", gzip.compress(raw)), ("br", raw), ("GZIP", gzip.compress(raw))):
            headers = {"content-type": "application/json", "content-encoding": encoding}
            answer = await client.http.post(path, content=body, headers=headers)
            assert answer.status_code == 415, answer.text
            error = answer.json()["error"]
            assert error["code"] == "unsupported_encoding"
            assert repr(encoding.lower()) in error["message"]
        plain = {"content-type": "application/json", "content-encoding": "identity"}
        assert (await client.http.post(path, content=raw, headers=plain)).status_code < 300


async def test_a_regular_expression_was_in_an_error_message() -> None:
    tool: Any = {"type": "function", "name": "no good", "parameters": {}}
    choice = {"type": "function", "function": {"name": "no good"}}
    bodies: dict[str, Any] = {
        "/v1/responses": {"input": "hello", "tools": [tool]},
        "/v1/chat/completions": {**BODIES["/v1/chat/completions"], "tool_choice": choice},
    }
    bodies["/v1/chat/completions"]["tools"] = [{"type": "function", "function": tool}]
    async with serving(_host()) as client:
        for path, body in bodies.items():
            answer = await client.http.post(path, json=body)
            error = answer.json()["error"]
            assert answer.status_code == 400
            assert error["message"] == "Expected letters, digits, _ and - only.", error
            assert error["param"].endswith(".name")


def test_every_pattern_of_a_body_has_words() -> None:
    for place in (PACKAGE / "channels").rglob("*.py"):
        text = place.read_text("utf-8")
        assert "pattern=r" not in text, f"{place}: use NAME of http/bodies.py, or give the pattern words there"


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (10, "10 B"),
        (1024, "1 KB"),
        (1536, "1.5 KB"),
        (10_485_760, "10 MB"),
        (33_554_432, "32 MB"),
        (1_600_000, "1.5 MB"),
    ],
)
def test_sizes_are_shown_in_mb(size: int, shown: str) -> None:
    assert format_size(size) == shown


async def test_a_limit_was_stated_in_bytes() -> None:
    async with serving(_host(max_body_bytes=2 * 1024 * 1024)) as client:
        for path in BODIES:
            answer = await client.http.post(path, json={**BODIES[path], "x": "y" * 2 * 1024 * 1024})
            assert answer.status_code == 413
            assert "2 MB" in answer.json()["error"]["message"]


async def test_an_image_url_that_was_a_bare_string_was_refused() -> None:
    pixel = "data:image/png;base64,iVBORw0KGgo="
    agent = EchoAgent()
    async with serving(AgentFrameworkHost(agent, channels=[ChatCompletionsChannel()])) as client:
        for image in (pixel, {"url": pixel}):
            content = [{"type": "text", "text": "what?"}, {"type": "image_url", "image_url": image}]
            body = {"model": "m", "messages": [{"role": "user", "content": content}]}
            answer = await client.http.post("/v1/chat/completions", json=body)
            assert answer.status_code == 200, answer.text
        wrong = {"type": "image_url", "image_url": 7}
        body = {"model": "m", "messages": [{"role": "user", "content": [wrong]}]}
        assert (await client.http.post("/v1/chat/completions", json=body)).status_code == 400


async def _preflight(client: HostClient, path: str, origin: str) -> int:
    asked = {"origin": origin, "access-control-request-method": "POST"}
    return (await client.http.options(path, headers=asked)).status_code


@pytest.mark.parametrize("listed", [(), ("https://shop.example",)])
async def test_a_refused_preflight_left_no_trace(listed: tuple[str, ...], caplog: pytest.LogCaptureFixture) -> None:
    origin = f"https://other{len(listed)}.example"
    async with serving(_host(allowed_origins=listed)) as client:
        assert await _preflight(client, "/v1/responses", origin) == 403
        assert await _preflight(client, "/v1/responses", origin) == 403
    (record,) = [record for record in caplog.records if "preflight refused" in record.message]
    assert record.levelno == logging.WARNING
    assert origin in record.message
    assert "allowed_origins" in record.message
    assert "/v1/responses" in record.message


def test_made_up_origins_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    refused = RefusedPreflights(max_origins=3)
    for number in range(50):
        refused.warn(f"https://{number}.example\n".encode() + b"x" * 5_000, "/p")
    assert len(caplog.records) == 3
    assert all(len(record.message) < 600 and "\n" not in record.message for record in caplog.records)


def test_a_refused_origin_is_logged_once_with_the_accepted_ones(caplog: pytest.LogCaptureFixture) -> None:
    refused = RefusedOrigins(max_origins=3)
    accepted = [f"https://{number}.example".encode() + b"y" * 5_000 for number in range(50)]
    for _ in range(2):
        for number in range(50):
            refused.warn(f"https://{number}.other\n".encode() + b"x" * 5_000, accepted)
    assert len(caplog.records) == 3
    assert all(len(record.message) < 2_000 and "\n" not in record.message for record in caplog.records)
    assert "https://0.other" in caplog.records[0].message
    assert "https://0.example" in caplog.records[0].message
    assert "and 45 more" in caplog.records[0].message


async def test_a_request_of_a_refused_origin_logs_both_origins(caplog: pytest.LogCaptureFixture) -> None:
    host = _host(allowed_origins=("https://shop.example",))
    async with serving(host) as client:
        for _ in range(2):
            page = {"origin": "https://desk.example:8443"}
            answer = await client.http.post("/v1/responses", json={"input": "hi"}, headers=page)
            assert answer.json()["error"]["code"] == "origin_refused"
        (record,) = [record for record in caplog.records if "origin refused" in record.message]
        assert record.levelno == logging.WARNING
        own = client.base_url.removeprefix("http://")
        for origin in ("https://desk.example:8443", "https://shop.example", f"http://{own}", f"https://{own}"):
            assert repr(origin) in record.message
        assert await _preflight(client, "/v1/responses", "https://desk.example:9443") == 403
    assert sum("9443" in record.message for record in caplog.records) == 1


async def test_the_page_logs_both_origins_too(caplog: pytest.LogCaptureFixture) -> None:
    host = AgentFrameworkHost(EchoAgent(), channels=[WebChatChannel()])
    async with serving(host) as client:
        page = {"origin": "http://desk.example:8443"}
        for _ in range(2):
            assert (await client.http.get("/chat/api/me", headers=page)).status_code == 403
        (record,) = [record for record in caplog.records if "origin refused" in record.message]
        assert repr("http://desk.example:8443") in record.message
        assert repr(client.base_url) in record.message
