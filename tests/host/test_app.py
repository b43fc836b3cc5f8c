"""The app: middleware, several doors, and paths that nobody serves."""

from typing import Any

import httpx
import pytest
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from frontdesk import AgentFrameworkHost, ApiKeyAuth, ChannelContribution
from frontdesk.channels.chat_completions import ChatCompletionsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from tests.scenarios.cast import PlainAgent, echo, spell
from tests.scenarios.desk import open_client, serve_host


class Stamp:
    """Pure ASGI middleware that adds a header."""

    def __init__(self, app: ASGIApp, text: str = "seen") -> None:
        self.app = app
        self.text = text

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def stamped(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-stamp", self.text.encode())]
            await send(message)

        await self.app(scope, receive, stamped if scope["type"] == "http" else send)


class Refuse(BaseHTTPMiddleware):
    """Lets only those in who say the word."""

    async def dispatch(self, request: Any, call_next: Any) -> Any:
        if request.headers.get("x-word") != "please":
            return JSONResponse({"error": {"code": "rude", "message": "Say please."}}, 403)
        return await call_next(request)


async def test_middleware_of_the_host_sees_every_request_in_order() -> None:
    middleware = [Middleware(Stamp, text="outer"), Middleware(Stamp, text="inner")]
    async with open_client(spell, middleware=middleware) as desk:
        run = (await desk.ask("hi")).json()
        answers = [
            await desk.ask("hi"),
            await desk.ask("hi", stream=True),
            await desk.post({"mesage": "hi"}),
            await desk.get(run["id"]),
            await desk.client.get("/healthz"),
            await desk.client.get("/nowhere"),
        ]
        for answer in answers:
            assert answer.headers.get_list("x-stamp") == ["inner", "outer"]


async def test_middleware_can_refuse() -> None:
    async with open_client(echo, middleware=[Middleware(Refuse)]) as desk:
        refused = await desk.ask()
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "rude")
        assert desk.untouched()
        assert (await desk.ask(headers={"x-word": "please"})).status_code == 200
        assert "completed" in (await desk.ask(headers={"x-word": "please"}, stream=True)).text


async def test_middleware_that_is_added_to_the_app_itself_is_not_passed_by() -> None:
    host = AgentFrameworkHost(echo, channels=[InvocationsChannel()])
    host.app.add_middleware(Refuse)
    async with serve_host(host) as server, httpx.AsyncClient(trust_env=False) as client:
        port = server.servers[0].sockets[0].getsockname()[1]
        response = await client.post(f"http://127.0.0.1:{port}/invocations", json={"message": "hi"})
        assert (response.status_code, response.json()["error"]["code"]) == (403, "rude")


class Stamped(InvocationsChannel):
    """A channel with middleware of its own."""

    def contribute(self, context: Any) -> ChannelContribution:
        return ChannelContribution(routes=super().contribute(context).routes, middleware=[Middleware(Stamp)])


async def test_middleware_of_a_channel_sees_only_its_own_requests() -> None:
    channels = [Stamped(name="a", path="/a"), InvocationsChannel(name="b", path="/b")]
    async with open_client(echo, channels=channels) as desk:
        for path, stamps in (("/a", ["seen"]), ("/b", []), ("/healthz", [])):
            answer = await (
                desk.client.get(path) if path == "/healthz" else desk.client.post(path, json={"message": "x"})
            )
            assert answer.status_code == 200
            assert answer.headers.get_list("x-stamp") == stamps


@pytest.mark.parametrize("path", ["", "/deep/down"])
async def test_a_door_can_be_anywhere(path: str) -> None:
    async with open_client(echo, InvocationsChannel(path=path)) as desk:
        run = (await desk.client.post(path or "/", json={"message": "hi"})).json()
        assert run["text"] == "you said hi"
        assert (await desk.client.get(f"{path}/{run['id']}")).json() == run
        assert (await desk.client.post(f"{path}/{run['id']}/cancel")).json() == run
        assert (await desk.client.get(f"{path}/docs/openapi.json")).json()["openapi"] == "3.1.0"
        assert (await desk.client.get("/healthz")).json() == {"status": "ok"}


async def test_two_doors_have_their_own_visitors() -> None:
    channels = [InvocationsChannel(name="a", path="/a"), InvocationsChannel(name="b", path="/b")]
    async with open_client(PlainAgent(), channels=channels) as desk:
        runs = {}
        for path in ("/a", "/b"):
            runs[path] = (await desk.client.post(path, json={"message": "hi", "session_id": "s"})).json()
            assert runs[path]["text"] == "1 messages"
        assert (await desk.client.get(f"/b/{runs['/a']['id']}")).status_code == 404
        assert (await desk.client.get(f"/a/{runs['/a']['id']}")).status_code == 200


@pytest.mark.parametrize("path", ["/", "/nowhere", "/invocations/a/b", "/invocations/a/cancel/b", "//"])
async def test_nobody_serves(path: str) -> None:
    async with open_client(echo) as desk:
        for method in ("GET", "POST"):
            response = await desk.client.request(method, path)
            assert response.status_code == 404
            assert response.json()["error"]["code"] == "not_found"
        assert desk.untouched()


class _Passing(BaseHTTPMiddleware):
    """Middleware that does nothing, but for the shortcut that it takes away."""

    async def dispatch(self, request: Any, call_next: Any) -> Any:
        return await call_next(request)


@pytest.mark.parametrize("middleware", [[], [Middleware(_Passing)]], ids=["shortcut", "usual way"])
async def test_of_two_channels_that_serve_a_path_the_first_answers(middleware: list[Middleware]) -> None:
    keys = [ApiKeyAuth({"first": "the-key-of-the-first"}), ApiKeyAuth({"second": "the-key-of-the-second"})]
    channels = [ResponsesChannel(auth=keys[0]), ChatCompletionsChannel(auth=keys[1])]
    async with open_client(echo, channels=channels, middleware=middleware) as desk:
        for path in ("/v1/models", "/v1/models/echo"):
            answers = [
                await desk.client.get(path, headers={"x-api-key": key})
                for key in ("the-key-of-the-first", "the-key-of-the-second")
            ]
            assert [answer.status_code for answer in answers] == [200, 401]
