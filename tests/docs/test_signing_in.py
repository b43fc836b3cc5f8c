"""The pages about signing in: their examples run against a real provider, and their tables say what the code says."""

import html
import re
from collections.abc import Awaitable, Callable
from urllib.parse import urljoin

import httpx
import pytest
from starlette.routing import Route

from frontdesk import GitHub, OAuthIdentityLinker
from frontdesk.auth.bearer import MAX_TOKEN_LENGTH
from frontdesk.auth.oidc import MAX_ANSWER_BYTES
from frontdesk.linkers.oauth.provider import MAX_CLAIMS_BYTES
from frontdesk_testing import serving, serving_app
from frontdesk_testing.issuer import PORT, Issuer
from tests.channels.web.visiting import Visitor, open_visitor
from tests.docs.pages import ROOT, tables
from tests.docs.running import example
from tests.docs.test_reference import spans
from tests.oidc import CLIENT_ID, CLIENT_SECRET, build_agreement, oidc_provider

REFERENCE = ROOT / "docs/reference/signing-in.md"
TOKENS = ROOT / "docs/guides/bearer-tokens.md"
LINKS = ROOT / "docs/guides/link-with-oauth.md"
PUBLIC = "http://127.0.0.1:8000"
SignIn = Callable[[httpx.AsyncClient, str, str], Awaitable[httpx.Response]]


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
    assert f"At most {MAX_TOKEN_LENGTH} bytes" in TOKENS.read_text("utf-8")
    assert f"at most {MAX_CLAIMS_BYTES} bytes" in LINKS.read_text("utf-8")
    assert f"at most {MAX_ANSWER_BYTES} bytes" in REFERENCE.read_text("utf-8")


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

    def __init__(self, http: httpx.AsyncClient, url: str, sign_in: SignIn) -> None:
        self.http, self.url, self.sign_in = http, url, sign_in

    async def follow(self, link: str, person: str) -> str:
        here = link.replace(PUBLIC, self.url)
        assert "chat" in (await self.http.get(here)).text
        left = re.search(r'<a href="([^"]*)"', (await self.http.post(here)).text)
        assert left is not None
        back = await self.sign_in(self.http, html.unescape(left.group(1)), person)
        asked = await self.http.get(back.headers["location"].replace(PUBLIC, self.url))
        place = asked.headers["location"].replace(PUBLIC, self.url)
        assert "Are both of these you?" in (await self.http.get(place)).text
        return (await self.http.post(place)).text


async def at_a_provider(http: httpx.AsyncClient, url: str, person: str) -> httpx.Response:
    form = {"content-type": "application/x-www-form-urlencoded"}
    return await http.post(url, content=build_agreement(person), headers=form)


async def at_the_stand_in(http: httpx.AsyncClient, url: str, person: str) -> httpx.Response:
    """Click on a name."""
    links = [html.unescape(link) for link in re.findall(r'<a href="([^"]*)"', (await http.get(url)).text)]
    (chosen,) = [link for link in links if link.endswith(f"person={person}")]
    return await http.get(urljoin(url, chosen))


async def link_and_ask(person: str, sign_in: SignIn) -> str:
    """Return what the example answers on its page to somebody who has signed in."""
    host = example(ROOT / "docs/examples/oauth_link.py")
    async with serving(host) as client, open_visitor(client.base_url) as ada:
        steps = Steps(client.http, client.base_url, sign_in)
        await ada.say("hello")
        assert "/link" in (await ada.wait_for_messages(2))[1]["text"]
        await ada.say("/link")
        found = re.search(r"http[^\s)>]+", (await ada.wait_for_messages(4))[3]["text"])
        assert found is not None
        assert "are linked" in await steps.follow(found.group(), person)
        asked = await ada.post("conversations/main/messages", client_id="again", text="hello")
        if asked.status_code == 403:
            return asked.json()["error"]["message"]
        return await ada.until(lambda: _last_answer(ada, after="hello"))


async def _last_answer(visitor: Visitor, after: str) -> str | None:
    """What was said after the last message of the visitor."""
    messages = await visitor.messages()
    asked = max(index for index, message in enumerate(messages) if message.get("role") == "user")
    assert messages[asked]["text"] == after
    done = [message["text"] for message in messages[asked + 1 :] if message.get("state", "done") != "live"]
    return done[-1] if done else None


@pytest.mark.parametrize(("person", "answer"), [("ada", "message 1"), ("bob", "You can't use this assistant.")])
async def test_the_four_steps_of_signing_in(monkeypatch: pytest.MonkeyPatch, person: str, answer: str) -> None:
    for name, value in (("CLIENT_ID", CLIENT_ID), ("CLIENT_SECRET", CLIENT_SECRET), ("PUBLIC_URL", PUBLIC)):
        monkeypatch.setenv(name, value)
    async with oidc_provider() as provider:
        monkeypatch.setenv("ISSUER", provider.issuer)
        provider.client.redirect_uris = {f"{PUBLIC}/link/callback"}
        assert (await link_and_ask(person, at_a_provider)).startswith(answer)


@pytest.mark.parametrize(("person", "answer"), [("ada", "message 1"), ("bob", "You can't use this assistant.")])
async def test_the_stand_in_of_the_example_signs_people_in(
    monkeypatch: pytest.MonkeyPatch, person: str, answer: str
) -> None:
    issuer = Issuer("")
    async with serving_app(issuer.app) as served:
        issuer.url = served.base_url
        monkeypatch.setenv("ISSUER", issuer.url)
        assert (await link_and_ask(person, at_the_stand_in)).startswith(answer)
        elsewhere = (
            "/authorize?redirect_uri=https://evil.example/&code_challenge=x&code_challenge_method=S256&person=ada"
        )
        assert (await served.http.get(elsewhere)).status_code == 400
        assert (await served.http.post("/token", data={"code": "made-up"})).json() == {"error": "invalid_grant"}


def test_the_example_names_the_stand_in_that_there_is() -> None:
    text = (ROOT / "docs/examples/oauth_link.py").read_text("utf-8")
    assert f"http://127.0.0.1:{PORT}" in text
    assert "python -m frontdesk_testing.issuer" in text
    assert "python -m frontdesk_testing.issuer" in LINKS.read_text("utf-8")
