"""Pages of the origins that a channel lists may call it, over real HTTP; all others may not."""

from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from frontdesk import AgentFrameworkHost, ApiKeyAuth
from frontdesk.asgi.messages import Cors
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk_testing import EchoAgent, FailingAgent, HostClient, serving
from tests.examples import examples

PAGE = "https://shop.example"
PLAIN = "http://shop.example"
LOCAL = "http://localhost:5173"
ORIGINS = (PAGE, PLAIN, LOCAL)
KEY = "the-key-of-somebody"
AUTH = ApiKeyAuth({"somebody": KEY})
PATHS = {
    "/invocations": {"message": "hello"},
    "/v1/responses": {"input": "hello"},
    "/v1/conversations": {"metadata": {}},
}


def _host(target: Any = None, **options: Any) -> AgentFrameworkHost:
    kinds = (InvocationsChannel, ResponsesChannel, ConversationsChannel)
    settings: dict[str, Any] = {"allowed_origins": ORIGINS, **options}
    middleware = settings.pop("middleware", ())
    channels = [kind(**settings) for kind in kinds]
    return AgentFrameworkHost(target or EchoAgent(), channels=channels, middleware=middleware)


async def _preflight(client: HostClient, path: str, origin: str, headers: str = "authorization") -> httpx.Response:
    asked = {"access-control-request-method": "POST", "access-control-request-headers": headers}
    return await client.http.options(path, headers={"origin": origin, **asked})


def _shares(response: httpx.Response) -> list[str]:
    return [name for name in response.headers if name.startswith("access-control-")]


async def test_a_preflight_of_a_listed_origin_is_answered_without_credentials() -> None:
    async with serving(_host(auth=AUTH)) as client:
        for path in PATHS:
            answer = await _preflight(client, path, PAGE, "authorization,x-stainless-lang")
            assert (answer.status_code, answer.content) == (204, b"")
            assert answer.headers["access-control-allow-origin"] == PAGE
            assert answer.headers["access-control-allow-methods"] == "POST"
            assert answer.headers["access-control-allow-headers"] == "authorization,x-stainless-lang"
            assert answer.headers["access-control-allow-credentials"] == "true"
            assert (answer.headers["vary"], answer.headers["access-control-max-age"]) == ("Origin", "600")
        several = await _preflight(client, "/v1/responses/resp_1", PAGE)
        assert several.headers["access-control-allow-methods"] == "GET, DELETE"


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "https://shop.example.evil.example", PAGE.upper()])
async def test_no_other_origin_is_answered_or_shared_with(origin: str) -> None:
    async with serving(_host(auth=AUTH)) as client:
        for path, body in PATHS.items():
            asked = await _preflight(client, path, origin)
            called = await client.http.post(
                path, json=body, headers={"origin": origin, "authorization": f"Bearer {KEY}"}
            )
            for answer in (asked, called):
                assert (answer.status_code, answer.json()["error"]["code"]) == (403, "origin_refused")
                assert (answer.headers["vary"], _shares(answer)) == ("Origin", [])


async def test_every_answer_for_a_listed_origin_is_shared_with_it() -> None:
    async with serving(_host(auth=AUTH)) as client:
        ours = {"origin": PAGE, "authorization": f"Bearer {KEY}"}
        for path, body in PATHS.items():
            good = await client.http.post(path, json=body, headers=ours)
            wrong = await client.http.post(path, json=[], headers=ours)
            stranger = await client.http.post(path, json=body, headers={"origin": PAGE})
            method = await client.http.put(path, json=body, headers=ours)
            assert [answer.status_code for answer in (good, wrong, stranger, method)] == [200, 400, 401, 405]
            for answer in (good, wrong, stranger, method):
                assert (answer.headers["access-control-allow-origin"], answer.headers["vary"]) == (PAGE, "Origin")
                assert "x-request-id" in answer.headers["access-control-expose-headers"].split(", ")
            assert "www-authenticate" in stranger.headers["access-control-expose-headers"]
            plain = await client.http.post(path, json=body, headers={"authorization": f"Bearer {KEY}"})
            assert (plain.status_code, plain.headers["vary"], _shares(plain)) == (200, "Origin", [])


@pytest.mark.parametrize("target", [EchoAgent(), FailingAgent()], ids=["answers", "fails"])
async def test_a_stream_is_shared_too(target: Any) -> None:
    async with serving(_host(target), raise_errors=False) as client:
        for path in ("/invocations", "/v1/responses"):
            answer = await client.http.post(path, json={**PATHS[path], "stream": True}, headers={"origin": LOCAL})
            assert answer.headers["content-type"].startswith("text/event-stream")
            assert (answer.headers["access-control-allow-origin"], answer.headers["vary"]) == (LOCAL, "Origin")


async def test_credentials_of_a_browser_count_only_where_nobody_between_can_speak_for_the_origin() -> None:
    name = "access-control-allow-credentials"
    async with serving(_host(auth=AUTH)) as client:
        told = {origin: (await _preflight(client, "/invocations", origin)).headers.get(name) for origin in ORIGINS}
        assert told == {PAGE: "true", PLAIN: None, LOCAL: "true"}
    async with serving(_host()) as client:
        # Without `auth` there is nothing that credentials could say.
        told = {origin: (await _preflight(client, "/invocations", origin)).headers.get(name) for origin in ORIGINS}
        assert set(told.values()) == {None}


async def test_a_channel_that_lists_no_origin_says_nothing_about_them() -> None:
    async with serving(_host(allowed_origins=())) as client:
        for path, body in PATHS.items():
            answer = await client.http.post(path, json=body)
            assert (answer.status_code, "vary" in answer.headers, _shares(answer)) == (200, False, [])
            own = {"origin": client.base_url, "access-control-request-method": "POST"}
            assert (await client.http.options(path, headers=own)).status_code == 405


async def test_a_middleware_of_the_hosts_is_not_contradicted() -> None:
    middleware = [Middleware(CORSMiddleware, allow_origins=[PAGE], allow_methods=["*"])]
    async with serving(_host(middleware=middleware)) as client:
        asked = await _preflight(client, "/invocations", PAGE, "content-type")
        called = await client.http.post("/invocations", json={"message": "hello"}, headers={"origin": PAGE})
        for answer in (asked, called):
            assert answer.status_code == 200
            assert answer.headers.get_list("access-control-allow-origin") == [PAGE]


@given(asked=st.binary(max_size=60), origin=st.sampled_from([PAGE.encode(), b"https://evil.example"]))
@examples(50)
async def test_whatever_a_preflight_asks_for_makes_no_other_header(asked: bytes, origin: bytes) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 405, "headers": []})

    headers = [
        (b"origin", origin),
        (b"access-control-request-method", b"POST"),
        (b"access-control-request-headers", asked),
    ]
    scope = {"type": "http", "method": "OPTIONS", "headers": headers}
    receive: Any = None
    await Cors([PAGE], credentials=False).serve(app, ["POST"], scope, receive, send)
    head = dict(sent[0]["headers"])
    assert head.get(b"access-control-allow-origin") == (origin if origin == PAGE.encode() else None)
    assert head.get(b"access-control-allow-headers") in (None, asked)
    assert not any(byte in value for value in head.values() for byte in b"\r\n\0")
