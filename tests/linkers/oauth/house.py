"""A host's part in the ceremony, served for real, with a provider beside it and a person who goes through it."""

import contextlib
import html
import re
import time
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import httpx
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from frontdesk.access.identify import IdentityKeys
from frontdesk.access.links import Links
from frontdesk.ids import RandomIds
from frontdesk.interfaces.store import HostStateStore
from frontdesk.linkers.oauth import OAuthIdentityLinker, Oidc, Provider
from frontdesk.linkers.oauth.ceremony import HEADERS
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.link import LinkRecord
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk_testing import FakeClock
from tests.oidc import CLIENT_ID, CLIENT_SECRET, OidcProvider, build_agreement, oidc_provider, serve_app

ADA = ChannelIdentity(channel="telegram", native_id="42", attributes={"name": "Ada L."})
EVE = ChannelIdentity(channel="telegram", native_id="666", attributes={"name": "Eve"})

Preset = Callable[[OidcProvider], Provider]


class LinkingWorld:
    """The linker and what it stands on."""

    def __init__(self, provider: OidcProvider, clock: FakeClock, store: HostStateStore) -> None:
        self.provider, self.clock, self.store = provider, clock, store
        self.desk: Any = None
        self.url = ""
        self.app: ASGIApp | None = None
        self.linker: Any = None

    def build(self, url: str, preset: Preset, **options: Any) -> None:
        self.url = url
        settings = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "public_url": url, "clock": self.clock}
        self.linker = OAuthIdentityLinker(preset(self.provider), **{**settings, **options})
        ids = RandomIds()
        self.desk = Links(self.store, IdentityKeys(self.store, ids, self.clock), ids, self.clock)
        self.linker.use(self.desk)
        self.provider.client.redirect_uris = {f"{self.linker._base}/callback"}
        base = urlsplit(self.linker._base).path
        # Flat and without redirects, as in a host.
        routes = [Route(base + one.path, one.endpoint, methods=list(one.methods)) for one in self.linker.routes()]
        app = Starlette(routes=routes)
        app.router.redirect_slashes = False
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self.app is not None
        await self.app(scope, receive, send)

    async def link(self, identity: ChannelIdentity = ADA) -> LinkRecord | None:
        return await self.linker.resolve(identity)

    async def begin(self, identity: ChannelIdentity = ADA) -> str:
        """The link that somebody gets in their chat."""
        url = (await self.linker.begin(identity)).url
        assert url is not None
        return url


class Browser:
    """A browser without a screen: it keeps cookies, and shows where it was sent."""

    def __init__(self, house: LinkingWorld) -> None:
        self.house = house
        self.http = httpx.AsyncClient(timeout=60, trust_env=False)

    async def start(self, url: str) -> str:
        """Presses the button of the first page; returns where the browser is sent."""
        shown = await self.http.get(url)
        assert shown.status_code == 200, shown.text
        left = await self.http.post(url, headers={"origin": "null", "sec-fetch-site": "same-origin"})
        assert left.status_code == 200, left.text
        found = re.search(r'<a href="([^"]*)"', left.text)
        assert found is not None
        return html.unescape(found.group(1))

    async def sign_in(self, url: str, person: str = "ada") -> str:
        """Agrees at the provider; returns where it sends the browser back to."""
        assert (await self.http.get(url)).status_code == 200
        form = {"content-type": "application/x-www-form-urlencoded"}
        answer = await self.http.post(url, content=build_agreement(person), headers=form)
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]

    async def come_back(self, person: str = "ada", identity: ChannelIdentity = ADA) -> str:
        """From the chat to the provider; returns the address of the way back."""
        return await self.sign_in(await self.start(await self.house.begin(identity)), person)

    async def prove(self, person: str = "ada", identity: ChannelIdentity = ADA) -> str:
        """The same and back again; returns the address of the page that asks."""
        answer = await self.http.get(await self.come_back(person, identity))
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    async def link(self, person: str = "ada", identity: ChannelIdentity = ADA) -> httpx.Response:
        """The whole ceremony."""
        return await self.http.post(await self.prove(person, identity))


@contextlib.asynccontextmanager
async def open_house(
    preset: Preset = lambda provider: Oidc(provider.issuer),
    *,
    store: HostStateStore | None = None,
    provider: OidcProvider | None = None,
    base: str = "",
    server: dict[str, Any] | None = None,
    **options: Any,
) -> AsyncIterator[LinkingWorld]:
    """A provider and a linker, both served."""
    async with contextlib.AsyncExitStack() as stack:
        provider = provider or await stack.enter_async_context(oidc_provider())
        house = LinkingWorld(provider, FakeClock(now()), store or InMemoryStateStore())
        url = await stack.enter_async_context(serve_app(house, **(server or {})))
        house.build(url + base, preset, **options)
        await house.store.open()
        stack.push_async_callback(house.store.close)
        yield house


@contextlib.asynccontextmanager
async def browser(house: LinkingWorld) -> AsyncIterator[Browser]:
    """A browser of its own."""
    one = Browser(house)
    async with one.http:
        yield one


def now() -> float:
    """The real time, by which the provider signs."""
    return time.time()


def query(url: str) -> dict[str, str]:
    """The parameters of an address."""
    return {name: values[-1] for name, values in parse_qs(urlsplit(url).query).items()}


def change_url(url: str, **changes: str | None) -> str:
    """The address with other parameters."""
    parts = urlsplit(url)
    pairs = {**dict(parse_qsl(parts.query, keep_blank_values=True)), **changes}
    kept = {name: value for name, value in pairs.items() if value is not None}
    return parts._replace(query=urlencode(kept)).geturl()


def is_page(answer: httpx.Response) -> None:
    """Every page of ours is plain and safe."""
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    assert "<script" not in answer.text
    assert "http" not in re.sub(r'(href|action|content)="[^"]*"', "", answer.text).replace("http-equiv", "")
