"""One public URL for all channels and linkers, routes below `/.well-known/`, and paths with a slash at their end."""

from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Mount, Route

from frontdesk import AgentFrameworkHost, Google, OAuthIdentityLinker
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.errors import ChannelConfigurationError
from frontdesk.interfaces.channel import Channel, ChannelContext, ChannelContribution
from frontdesk_testing import EchoAgent

URL = "https://bots.example.com/agents"


class Carded(Channel):
    """A channel with a document at the root."""

    requires_auth_when_public = False
    context: ChannelContext

    def __init__(self, name: str, *routes: BaseRoute) -> None:
        self.name, self.path, self._routes = name, f"/{name}", routes

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        self.context = context
        return ChannelContribution(well_known=self._routes, routes=[Route("/here", _show)])


async def _show(request: Request) -> PlainTextResponse:
    return PlainTextResponse(request.url.path)


def card(path: str = "/agent-card.json") -> Route:
    return Route(path, _show)


def host(*channels: Any, **options: Any) -> AgentFrameworkHost:
    return AgentFrameworkHost(EchoAgent(), channels=channels, **options)


async def statuses(built: AgentFrameworkHost, paths: Sequence[str], **body: str) -> list[int]:
    transport = httpx.ASGITransport(built.app, client=("127.0.0.1", 1))
    async with (
        built.app.router.lifespan_context(built.app),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
    ):
        return [(await (client.post(path, json=body) if body else client.get(path))).status_code for path in paths]


def test_channels_get_the_url_without_a_slash() -> None:
    channel = Carded("cards")
    host(channel, public_url=f"{URL}/")
    assert channel.context.public_url == URL
    host(channel)
    assert channel.context.public_url is None


@pytest.mark.parametrize(
    "url",
    [
        "bots.example.com",
        "ftp://a.example",
        "https://",
        "https://a b",
        "https://a.example:x",
        "https://ä.example",
        "",
        1,
    ],
)
def test_a_url_that_is_none_is_a_finding(url: Any) -> None:
    with pytest.raises(ChannelConfigurationError, match="public_url"):
        host(Carded("cards"), public_url=url)


@pytest.mark.parametrize("url", ["https://a@b.example", "https://a.example?x", "https://a.example/#x"])
def test_a_url_with_a_query_or_a_user_is_a_finding(url: str) -> None:
    with pytest.raises(ChannelConfigurationError, match="must not have a user, a query or a fragment"):
        host(Carded("cards"), public_url=url)


async def test_a_document_of_a_channel_is_at_the_root() -> None:
    built = host(Carded("cards", card(), card("/oauth-protected-resource/{rest:path}")))
    paths = ["/.well-known/agent-card.json", "/.well-known/oauth-protected-resource/cards", "/.well-known/other"]
    assert await statuses(built, paths) == [200, 200, 404]


def test_two_channels_can_not_have_the_same_document() -> None:
    with pytest.raises(
        ChannelConfigurationError, match=r"two: /.well-known/agent-card.json is also a route of .* 'one'"
    ):
        host(Carded("one", card()), Carded("two", card()))


def test_a_document_needs_a_path() -> None:
    for route in (card("/"), Mount("/files", routes=[])):
        with pytest.raises(ChannelConfigurationError, match="well_known must have Starlette routes"):
            host(Carded("cards", route))


@pytest.mark.parametrize("middleware", [False, True])
async def test_paths_have_a_slash_at_their_end_or_not(middleware: bool) -> None:
    built = host(InvocationsChannel(), ResponsesChannel(), Carded("cards", card()))
    if middleware:
        built.app.add_middleware(_Passing)
    paths = ["/cards/here", "/cards/here/", "/.well-known/agent-card.json/", "/healthz/", "/cards/here//", "/cards/x/"]
    assert await statuses(built, paths) == [200, 200, 200, 200, 404, 404]
    assert await statuses(built, ["/invocations", "/invocations/"], message="hi") == [200, 200]
    assert await statuses(built, ["/responses", "/responses/", "/v1/responses/"], input="hi") == [200] * 3


class _Passing:
    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app(scope, receive, send)


def linker(**options: Any) -> OAuthIdentityLinker:
    return OAuthIdentityLinker(Google(), client_id="id", **options)


def test_a_linker_takes_the_url_of_the_host() -> None:
    with pytest.raises(ChannelConfigurationError, match="OAuthIdentityLinker: set public_url"):
        host(Carded("cards"), linker=linker())
    with pytest.raises(ChannelConfigurationError, match="https"):
        host(Carded("cards"), linker=linker(), public_url="http://bots.example.com")
    host(Carded("cards"), linker=linker(), public_url=URL)
    host(Carded("cards"), linker=linker(public_url=URL))


def telegram(**options: Any) -> TelegramChannel:
    return TelegramChannel(bot_token="123456:" + "a" * 35, transport="webhook", secret_token="s" * 32, **options)


def test_a_chat_takes_the_url_of_the_host_if_its_platform_can_reach_it() -> None:
    assert any("webhook is not registered" in warning for warning in host(telegram()).warnings)
    assert not any("webhook is not registered" in warning for warning in host(telegram(), public_url=URL).warnings)
    with pytest.raises(ChannelConfigurationError, match="telegram: public_url must be https"):
        host(telegram(), public_url="https://bots.example.com:9000")
