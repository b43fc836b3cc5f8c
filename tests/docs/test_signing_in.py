"""The pages about signing in: their examples run against a real provider, and their tables say what the code says."""

import html
import re
from pathlib import Path

import httpx
import pytest
from starlette.routing import Route

from frontdesk import BearerAuth, Entra, GitHub, Google, OAuthIdentityLinker, Oidc, ProviderHttp
from frontdesk.kit.auth.provider import LARGEST_ANSWER
from frontdesk.kit.auth.tokens import LONGEST_TOKEN
from frontdesk.linkers.oauth.provider import LARGEST_CLAIMS
from frontdesk.testing import serving
from tests.docs.pages import ROOT, tables
from tests.docs.running import example
from tests.docs.test_reference import parameters, shown, signature, spans
from tests.oidc import CLIENT_ID, CLIENT_SECRET, agreed, oidc_provider
from tests.testing.messages.starting import forked_platform

REFERENCE = ROOT / "docs/reference/signing-in.md"
TOKENS = ROOT / "docs/how-to/bearer-tokens.md"
LINKS = ROOT / "docs/how-to/link-with-oauth.md"
PUBLIC = "http://127.0.0.1:8000"


@pytest.mark.parametrize("documented", [BearerAuth, OAuthIdentityLinker, Oidc, Google, Entra, GitHub, ProviderHttp])
def test_every_parameter_is_documented_with_its_default(documented: type) -> None:
    assert parameters(REFERENCE, documented) == {name: shown(one) for name, one in signature(documented).items()}


def test_every_route_is_documented() -> None:
    linker = OAuthIdentityLinker(GitHub(), client_id="x", public_url="https://desk.example")
    served = {
        f"{method} {linker.path}{route.path}"
        for route in linker.routes()
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }
    assert {spans(row[0])[0] for row in tables(REFERENCE)["Routes of the linker"]} == served


def test_the_limits_are_those_of_the_code() -> None:
    assert f"At most {LONGEST_TOKEN} bytes" in TOKENS.read_text("utf-8")
    assert f"at most {LARGEST_CLAIMS} bytes" in LINKS.read_text("utf-8")
    assert f"at most {LARGEST_ANSWER} bytes" in REFERENCE.read_text("utf-8")


async def test_the_example_takes_tokens_and_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    async with oidc_provider() as provider:
        monkeypatch.setenv("ISSUER", provider.issuer)
        async with serving(example(ROOT / "docs/examples/bearer_tokens.py")) as client:
            statuses: list[int] = []
            for claims in ({"scope": "chat"}, {"scope": "mail"}, {"scope": "chat", "aud": "other"}):
                token = provider.sign(provider.claims(**{"aud": "api://concierge", **claims}))
                headers = {"authorization": f"Bearer {token}"}
                answer = await client.http.post("/invocations", json={"message": "good day"}, headers=headers)
                statuses.append(answer.status_code)
    assert statuses == [200, 403, 401]


class Steps:
    """What a person does in a browser, of whose address bar the host's public name is on this machine."""

    def __init__(self, http: httpx.AsyncClient, url: str) -> None:
        self.http, self.url = http, url

    async def follow(self, link: str, person: str) -> str:
        here = link.replace(PUBLIC, self.url)
        assert "Ada" in (await self.http.get(here)).text
        left = re.search(r'<a href="([^"]*)"', (await self.http.post(here)).text)
        assert left is not None
        form = {"content-type": "application/x-www-form-urlencoded"}
        back = await self.http.post(html.unescape(left.group(1)), content=agreed(person), headers=form)
        asked = await self.http.get(back.headers["location"].replace(PUBLIC, self.url))
        place = asked.headers["location"].replace(PUBLIC, self.url)
        assert "Are both of these you?" in (await self.http.get(place)).text
        return (await self.http.post(place)).text


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("person", "answer"), [("ada", "message 1"), ("bob", "You can't use this assistant.")])
async def test_the_four_steps_of_signing_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, person: str, answer: str
) -> None:
    for name, value in (("CLIENT_ID", CLIENT_ID), ("CLIENT_SECRET", CLIENT_SECRET), ("PUBLIC_URL", PUBLIC)):
        monkeypatch.setenv(name, value)
    platform_at = forked_platform(tmp_path / "chat", "--token", "the-token-of-the-bot")
    async with oidc_provider() as provider, platform_at as platform:
        monkeypatch.setenv("ISSUER", provider.issuer)
        monkeypatch.setenv("CHAT_URL", platform.url)
        provider.client.redirect_uris = {f"{PUBLIC}/link/callback"}
        who = await platform.user("Ada")
        async with serving(example(ROOT / "docs/examples/oauth_link.py")) as client:
            steps = Steps(client.http, client.base_url)
            told: list[str] = []
            for text in ("hello", "/link"):
                await platform.say(who, text)
                told = [said.text for said in await platform.wait_for_answers(who.chat_id, len(told) + 1)]
            found = re.search(r"http\S+", told[-1])
            assert found is not None
            assert "are linked" in await steps.follow(found.group(), person)
            await platform.say(who, "hello")
            told = [said.text for said in await platform.wait_for_answers(who.chat_id, len(told) + 1)]
            assert told[-1].startswith(answer)
