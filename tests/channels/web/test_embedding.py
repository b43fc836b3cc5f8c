"""The page in other sites: who may embed it, and what differs there."""

from typing import Any

import httpx
import pytest

from frontdesk import AgentFrameworkHost, ChannelConfigurationError
from frontdesk.channels.web import WebChatChannel
from frontdesk.channels.web.pages import POLICY
from frontdesk_testing import EchoAgent, serving
from tests.channels.web.visiting import Visitor, web_host

SHOP, OTHER = "https://shop.example", "https://www.shop.example:8443"
FORWARDED = {"x-forwarded-for": "203.0.113.9"}


async def test_only_the_frame_may_be_framed_and_only_by_the_sites_that_were_named() -> None:
    async with web_host(EchoAgent(), embed_origins=[SHOP, OTHER]) as url, httpx.AsyncClient(trust_env=False) as http:
        page, frame = await http.get(f"{url}/chat"), await http.get(f"{url}/chat/frame")
        assert page.headers["content-security-policy"].encode() == POLICY
        assert page.headers["x-frame-options"] == "DENY"
        policy = frame.headers["content-security-policy"].encode()
        assert policy == POLICY.replace(b"frame-ancestors 'none'", f"frame-ancestors {SHOP} {OTHER}".encode())
        assert b"require-trusted-types-for 'script'" in policy
        assert "x-frame-options" not in frame.headers
        assert frame.text == page.text


async def test_the_cookie_of_a_frame_is_kept_for_the_site_around_it_alone() -> None:
    host = AgentFrameworkHost(EchoAgent(), channels=[WebChatChannel(embed_origins=[SHOP])], allow_anonymous=True)
    async with serving(host) as client:
        frame = (await client.http.get("/chat/frame", headers=FORWARDED)).headers["set-cookie"]
        name, _, settings = frame.partition("=")
        assert name.startswith("__Host-")
        assert {"SameSite=None", "Partitioned", "Secure", "HttpOnly", "Path=/"} <= set(settings.split("; "))
        client.http.cookies.clear()
        page = (await client.http.get("/chat", headers=FORWARDED)).headers["set-cookie"]
        assert "SameSite=Lax" in page
        assert "Partitioned" not in page
        assert page.partition("=")[0] != name


async def test_a_visitor_in_a_frame_talks_and_other_origins_still_may_not() -> None:
    async with web_host(EchoAgent(), embed_origins=[SHOP]) as url:
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as http:
            cookie = (await http.get("/chat/frame")).headers["set-cookie"].partition(";")[0]
        headers = {"cookie": cookie, "origin": url}
        async with httpx.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=60) as http:
            visitor = Visitor(url, http)
            await visitor.say("from the shop")
            assert (await visitor.wait_for_messages(2))[1]["text"] == "from the shop"
            # The site around the frame is no page of the host.
            body = {"client_id": "c9", "text": "not by the visitor"}
            for more in ({"origin": SHOP}, {"origin": "null"}):
                refused = await http.post("/chat/api/conversations/main/messages", json=body, headers=more)
                assert refused.json()["error"]["code"] == "origin_refused"
            read = await http.get("/chat/api/me", headers={"origin": SHOP})
            assert (read.status_code, "access-control-allow-origin" in read.headers) == (403, False)


async def test_without_origins_there_is_nothing_to_embed_and_no_cookie_of_a_frame_counts() -> None:
    async with web_host(EchoAgent(), embed_origins=[SHOP]) as url, httpx.AsyncClient(trust_env=False) as http:
        assert (await http.get(f"{url}/chat/embed.js")).headers["cross-origin-resource-policy"] == "cross-origin"
    async with web_host(EchoAgent()) as url, httpx.AsyncClient(trust_env=False) as http:
        for path in ("frame", "embed.js"):
            answer = await http.get(f"{url}/chat/{path}")
            assert answer.status_code == 404
            assert "set-cookie" not in answer.headers


async def test_the_script_names_the_page_and_can_t_be_broken_out_of() -> None:
    title = 'Desk"); alert(1); ("'
    async with (
        web_host(EchoAgent(), title=title, embed_origins=[SHOP]) as url,
        httpx.AsyncClient(trust_env=False) as http,
    ):
        script = (await http.get(f"{url}/chat/embed.js")).text
        assert script.rstrip().endswith(");")
        assert '"label":"Desk\\"); alert(1); (\\""' in script
        assert len(script) < 5_000


@pytest.mark.parametrize(
    "origin",
    [
        "*",
        "https://*.example",
        "http://shop.example",
        "https://shop.example/",
        "https://shop.example; script-src *",
        "https://Shop.example",
        "shop.example",
        "null",
        "",
    ],
)
def test_an_origin_that_says_too_much_is_a_mistake(origin: str) -> None:
    with pytest.raises(ChannelConfigurationError, match="embed_origins"):
        AgentFrameworkHost(EchoAgent(), channels=[WebChatChannel(embed_origins=[origin])])


def test_sites_on_the_machine_itself_may_embed_without_tls() -> None:
    sites: list[Any] = ["http://localhost:5173", "http://127.0.0.1", SHOP, OTHER]
    assert WebChatChannel(embed_origins=sites).findings() == []
