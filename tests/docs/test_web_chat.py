"""The pages about the web chat: their examples run, for visitors who do what the pages say."""

import html
import re

import pytest

from frontdesk_testing import serving
from tests.channels.web.visiting import open_visitor
from tests.docs.pages import ROOT
from tests.docs.running import example
from tests.oidc import CLIENT_ID, CLIENT_SECRET, build_agreement, oidc_provider

PUBLIC = "http://127.0.0.1:8000"
# The pages of a sign-in send no referrer, and so no origin.
NULL = {"origin": "null"}


@pytest.mark.parametrize(("person", "answer"), [("ada", "message 1"), ("bob", "You can't use this assistant.")])
async def test_who_signs_in_on_the_page_is_known_there(
    monkeypatch: pytest.MonkeyPatch, person: str, answer: str
) -> None:
    for name, value in (("CLIENT_ID", CLIENT_ID), ("CLIENT_SECRET", CLIENT_SECRET), ("PUBLIC_URL", PUBLIC)):
        monkeypatch.setenv(name, value)
    async with oidc_provider() as provider:
        monkeypatch.setenv("ISSUER", provider.issuer)
        provider.client.redirect_uris = {f"{PUBLIC}/link/callback"}
        host = example(ROOT / "docs/examples/web_sign_in.py")
        async with serving(host) as client, open_visitor(client.base_url) as visitor:
            http, url = visitor.http, client.base_url
            start = (await visitor.post("account/link")).json()["url"].replace(PUBLIC, url)
            left = re.search(r'<a href="([^"]*)"', (await http.post(start, headers=NULL)).text)
            assert left is not None
            form = {"content-type": "application/x-www-form-urlencoded"}
            back = await http.post(html.unescape(left.group(1)), content=build_agreement(person), headers=form)
            asked = await http.get(back.headers["location"].replace(PUBLIC, url))
            linked = await http.post(asked.headers["location"].replace(PUBLIC, url), headers=NULL)
            assert (linked.status_code, linked.headers["location"]) == (303, "/chat")
            if person == "ada":
                assert (await visitor.get("account"))["name"] == "Ada"
                count = len(await visitor.messages())
                await visitor.say("hello")
                assert (await visitor.wait_for_messages(count + 2))[-1]["text"] == answer
            else:
                refused = await visitor.post("conversations/main/messages", client_id="c", text="hello")
                assert refused.status_code == 403


async def test_the_shop_of_the_example_may_embed_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP", "https://shop.example")
    async with serving(example(ROOT / "docs/examples/web_embed.py")) as client:
        script, frame = await client.http.get("/chat/embed.js"), await client.http.get("/chat/frame")
        assert '"label":"Ask the shop"' in script.text
        assert "frame-ancestors https://shop.example;" in frame.headers["content-security-policy"]


async def test_the_page_of_the_example_has_its_theme() -> None:
    async with (
        serving(example(ROOT / "docs/examples/web_theme.py")) as client,
        open_visitor(client.base_url) as visitor,
    ):
        me = await visitor.get("me")
        assert me["prompts"] == ["When is breakfast?", "Book a room"]
        assert (await visitor.http.get(me["logo"])).headers["content-type"] == "image/svg+xml"
        assert (
            'font: "Georgia", serif' in (await visitor.http.get(_theme_in((await visitor.http.get("/chat")).text))).text
        )


def _theme_in(page: str) -> str:
    return page.rpartition('rel="stylesheet" href="')[2].partition('"')[0]
