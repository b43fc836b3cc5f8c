"""Errors that leave a plain route of a channel's own."""

from typing import Any

import httpx
import pytest
from starlette.endpoints import HTTPEndpoint
from starlette.routing import Mount, Route, WebSocketRoute
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from frontdesk import AgentFrameworkHost, Channel, ChannelContribution
from frontdesk.errors import InvalidRequestError, TooManyRequestsError
from frontdesk_testing import serving
from tests.scenarios.cast import echo


async def busy(_: Any) -> Any:
    raise TooManyRequestsError("Not so fast.", retry_after=3)


async def broken(_: Any) -> Any:
    raise RuntimeError("a secret")


class Refusing(HTTPEndpoint):
    async def get(self, _: Any) -> Any:
        raise InvalidRequestError("Say more.", param="more")


class Plain(Channel):
    name, path = "plain", "/plain"

    def contribute(self, context: Any) -> ChannelContribution:
        return ChannelContribution(
            routes=[
                Route("/busy", busy),
                Route("/refusing", Refusing),
                Route("/broken", broken),
                WebSocketRoute("/socket", busy),
                Mount("/inside", routes=[Route("/busy", busy)]),
            ]
        )


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("/busy", 429, {"code": "too_many_requests", "message": "Not so fast."}),
        ("/inside/busy", 429, {"code": "too_many_requests", "message": "Not so fast."}),
        ("/refusing", 400, {"code": "invalid_request", "message": "Say more.", "param": "more"}),
    ],
)
async def test_an_error_of_a_request_was_a_bare_500(path: str, status: int, error: dict[str, str]) -> None:
    async with serving(AgentFrameworkHost(echo, channels=[Plain()])) as client:
        answer = await client.http.get(f"/plain{path}")
        assert (answer.status_code, answer.json()) == (status, {"error": error})
        assert answer.headers.get("retry-after") == ("3" if status == 429 else None)


async def test_any_other_error_stays_a_500_and_says_nothing() -> None:
    host = AgentFrameworkHost(echo, channels=[Plain()])
    transport = httpx.ASGITransport(host.app, raise_app_exceptions=False)
    async with host.lifespan(), httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answer = await client.get("/plain/broken")
        assert (answer.status_code, "secret" in answer.text) == (500, False)


async def test_a_socket_that_is_refused_is_closed() -> None:
    async with serving(AgentFrameworkHost(echo, channels=[Plain()])) as client:
        with pytest.raises(InvalidStatus) as caught:
            async with connect(client.base_url.replace("http", "ws") + "/plain/socket"):
                pass
        assert caught.value.response.status_code == 403
