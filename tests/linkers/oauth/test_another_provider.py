"""The ceremony with a provider that we did not write: `oidc-provider` for Node, as its authors ship it."""

import asyncio
import contextlib
import html
import re
import shutil
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urljoin

import pytest

from frontdesk.auth.bearer import BearerAuth
from frontdesk.errors import UnauthenticatedError
from frontdesk.linkers.oauth import Oidc
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk_testing import FakeClock
from tests.linkers.oauth.house import ADA, Browser, LinkingWorld, now, query
from tests.node_program import INSTALLED, SCRIPTS, node_with
from tests.oidc import CLIENT_ID, CLIENT_SECRET, OidcProvider, free_port, serve_app

NODE = node_with("oidc-provider", "signing in at")


class Issuer(OidcProvider):
    """What the house has to know of a provider that runs elsewhere."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url


@contextlib.asynccontextmanager
async def provider(folder: Path, redirect_uri: str) -> AsyncIterator[str]:
    """The provider in a process of its own; its address."""
    (folder / "node_modules").symlink_to(INSTALLED, target_is_directory=True)
    script = shutil.copy(SCRIPTS / "provider.mjs", folder)
    told = {"CLIENT_ID": CLIENT_ID, "CLIENT_SECRET": CLIENT_SECRET, "REDIRECT_URI": redirect_uri}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(NODE, script, env=told, stdin=pipe, stdout=pipe)
    try:
        assert process.stdout is not None
        url = (await process.stdout.readline()).decode().strip()
        assert url.startswith("http"), "the provider did not start"
        yield url
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LinkingWorld]:
    listener: socket.socket = free_port()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with provider(tmp_path, f"{url}/link/callback") as issuer:
        house = LinkingWorld(Issuer(issuer), FakeClock(now()), InMemoryStateStore())
        house.build(url, lambda provider: Oidc(provider.issuer, userinfo=True))
        async with serve_app(house, listener):
            yield house


class Person(Browser):
    """Somebody who goes through the provider's own pages."""

    async def agree(self, url: str) -> str:
        """Signs in and agrees; returns the way back."""
        page = await self.http.get(url, follow_redirects=True)
        for form in ({"prompt": "login", "login": "ada", "password": "any"}, {"prompt": "consent"}):
            action = re.search(r'action="([^"]+)"', page.text)
            assert action is not None, page.text
            page = await self.http.post(html.unescape(action.group(1)), data=form)
            while page.is_redirect:
                place = urljoin(str(page.url), page.headers["location"])
                if place.startswith(self.house.url):
                    return place
                page = await self.http.get(place)
        raise AssertionError(page.text)


async def test_an_account_is_linked(house: LinkingWorld) -> None:
    person = Person(house)
    async with person.http:
        back = await person.agree(await person.start(await house.begin()))
        assert query(back)["iss"] == house.provider.issuer
        asked = await person.http.get(back)
        assert asked.status_code == 303, asked.text
        page = await person.http.get(asked.headers["location"])
        assert "Your 127.0.0.1 account" in page.text
        assert (await person.http.post(asked.headers["location"])).status_code == 200
    link = await house.link(ADA)
    assert link is not None
    assert link.subject == f"{house.provider.issuer}|ada"
    # Its ID token has no more than the subject; the rest was asked for.
    assert (link.claims["email"], link.claims["name"]) == ("ada@example.com", "Ada")


async def test_its_keys_are_found_and_a_stranger_s_token_is_not_taken(house: LinkingWorld) -> None:
    auth = BearerAuth(issuer=house.provider.issuer, audience="api://desk")
    token = house.provider.sign(house.provider.claims())
    with pytest.raises(UnauthenticatedError, match="signing key is unknown"):
        await auth.authenticate({b"authorization": b"Bearer " + token.encode()})
