"""Who is a visitor, and what is refused."""

from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from frontdesk import AgentFrameworkHost, ApiKeyAuth, AuthPolicy, OneTimeCodeIdentityLinker
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk.channels.web.config import FeedLimits
from frontdesk.channels.web.pages import POLICY
from frontdesk.channels.web.wire import MAIN
from frontdesk.http.limits import HttpLimits
from frontdesk.models.operations import EventLimits, RateLimit
from frontdesk_testing import EchoAgent, serving
from tests.channels.web.visiting import open_visitor, web_host

FOREIGN = "https://elsewhere.example"
SEND = f"/chat/api/conversations/{MAIN}/messages"


async def test_the_page_makes_a_visitor_and_says_what_it_may_load() -> None:
    async with web_host(EchoAgent(), title="<b>Desk</b>") as url, httpx.AsyncClient(trust_env=False) as http:
        first, second = await http.get(f"{url}/chat"), await http.get(f"{url}/chat")
        assert first.headers["content-security-policy"].encode() == POLICY
        assert "&lt;b&gt;Desk&lt;/b&gt;" in first.text
        assert "<script>" not in first.text
        cookie = first.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Lax" in cookie
        assert "Path=/;" in cookie
        assert "set-cookie" not in second.headers


async def test_from_elsewhere_the_cookie_is_a_host_cookie_and_visitors_have_to_be_allowed() -> None:
    forwarded = {"x-forwarded-for": "203.0.113.9"}
    async with web_host(EchoAgent()) as url, httpx.AsyncClient(trust_env=False) as http:
        refused = await http.get(f"{url}/chat", headers=forwarded)
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "visitors_refused")
    host = AgentFrameworkHost(EchoAgent(), channels=[WebChatChannel()], allow_anonymous=True)
    async with serving(host) as client:
        cookie = (await client.http.get("/chat", headers=forwarded)).headers["set-cookie"]
        assert cookie.startswith("__Host-")
        assert "; Secure" in cookie


async def test_a_page_without_tls_spoke_for_the_one_with_it() -> None:
    host = AgentFrameworkHost(EchoAgent(), channels=[WebChatChannel()], allow_anonymous=True)
    elsewhere = {"x-forwarded-for": "203.0.113.9", "host": "chat.example"}
    async with serving(host) as client:
        cookie = (await client.http.get("/chat", headers=elsewhere)).headers["set-cookie"].partition(";")[0]

        async def asked(origin: str) -> int:
            headers = {**elsewhere, "cookie": cookie, "origin": origin}
            body = {"client_id": "a-client-id-of-its-own"}
            return (await client.http.post("/chat/api/conversations", json=body, headers=headers)).status_code

        # Whoever is on the network between can answer for the name without TLS, and has the browser send its cookies.
        assert await asked("http://chat.example") == 403
        assert await asked("https://chat.example") == 200


@pytest.mark.parametrize("scheme", ["ftp", "chrome-extension", "file", "HTTPS", ""])
async def test_another_scheme_before_the_own_name_passed_as_the_own_origin(scheme: str) -> None:
    channels = [WebChatChannel(), InvocationsChannel()]
    async with serving(AgentFrameworkHost(EchoAgent(), channels=channels)) as client:
        cookie = (await client.http.get("/chat")).headers["set-cookie"].partition(";")[0]
        _, _, name = client.base_url.partition("://")

        async def asked(path: str, body: Any, origin: str) -> int:
            headers = {"cookie": cookie, "origin": origin}
            return (await client.http.post(path, json=body, headers=headers)).status_code

        for path, body in (
            ("/chat/api/conversations", {"client_id": "a-client-id-of-its-own"}),
            ("/invocations", {"message": "hello"}),
        ):
            assert await asked(path, body, f"{scheme}://{name}") == 403
            assert await asked(path, body, f"http://{name}") == 200


async def test_two_pages_on_one_machine_keep_their_visitors_apart() -> None:
    channels = [WebChatChannel(), WebChatChannel(name="support", path="/support")]
    host = AgentFrameworkHost(EchoAgent(), channels=channels)
    async with serving(host) as client, web_host(EchoAgent()) as other, open_visitor(client.base_url) as ada:
        await ada.say("hello")
        await ada.wait_for_messages(2)
        # A browser sends its cookies of 127.0.0.1 to every port.
        for page in (f"{client.base_url}/support", f"{other}/chat"):
            assert (await ada.http.get(page)).status_code == 200
        assert await ada.texts() == ["hello", "hello"]
        assert (await ada.http.get(f"{client.base_url}/support/api/me")).json()["conversations"][0]["last"] == 0


async def test_a_forged_cookie_is_nobody() -> None:
    async with web_host(EchoAgent()) as url, open_visitor(url) as ada:
        name, value = next(iter(ada.http.cookies.items()))
        visitor, _, signature = value.rpartition(".")
        for forged in (f"{visitor}x.{signature}", f"{visitor}.{signature[:-2]}AA", visitor, "", "x" * 400):
            headers = {"cookie": f"{name}={forged}", "origin": url}
            async with httpx.AsyncClient(base_url=url, headers=headers, trust_env=False) as http:
                assert (await http.get("/chat/api/me")).json()["error"]["code"] == "no_visitor"


@pytest.mark.parametrize(
    "headers",
    [{"origin": FOREIGN}, {"origin": "null"}, {"origin": ""}, {"sec-fetch-site": "cross-site"}],
    ids=["foreign", "null", "empty", "no-origin"],
)
async def test_a_page_of_another_site_sends_nothing(headers: dict[str, str]) -> None:
    agent = EchoAgent()
    async with web_host(agent) as url, open_visitor(url) as ada:
        async with httpx.AsyncClient(base_url=url, cookies=ada.http.cookies, headers=headers, trust_env=False) as http:
            body = {"client_id": "c1", "text": "hello"}
            assert (await http.post(SEND, json=body)).json()["error"]["code"] == "origin_refused"
            assert (await http.get("/chat/api/me")).status_code == 403
        plain = await ada.http.post(
            SEND, content=b'{"client_id":"c","text":"x"}', headers={"content-type": "text/plain"}
        )
        assert plain.status_code == 415
        assert await ada.texts() == []
    assert agent.seen == []


async def test_visitors_see_only_what_is_theirs() -> None:
    async with web_host(EchoAgent()) as url, open_visitor(url) as ada, open_visitor(url) as bob:
        chat = (await ada.post("conversations", client_id="n1")).json()["conversation"]["id"]
        await ada.say("mine", chat=chat)
        await ada.wait_for_messages(2, chat=chat)
        for method, path in (("GET", f"{chat}/messages"), ("POST", f"{chat}/stop"), ("POST", f"{chat}/messages")):
            body = {"client_id": "x", **({"text": "hi"} if path.endswith("messages") else {})}
            response = await bob.http.request(
                method, f"/chat/api/conversations/{path}", json=body if method == "POST" else None
            )
            assert response.status_code == 404
        assert [one["id"] for one in (await bob.get("me"))["conversations"]] == [MAIN]
        assert (await bob.post("conversations", client_id="n1")).json()["conversation"]["id"] != chat


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"client_id": "c", "text": "  "}, "text_empty"),
        ({"client_id": "c", "text": "x" * 50}, "text_too_long"),
        ({"client_id": "../c", "text": "x"}, "invalid_request"),
        ({"client_id": "c", "text": "x", "more": 1}, "invalid_request"),
        ({"client_id": "c", "choice": "no choice"}, "invalid_request"),
    ],
)
async def test_a_body_that_is_wrong_says_why(body: dict[str, str], code: str) -> None:
    async with web_host(EchoAgent(), max_text=40) as url, open_visitor(url) as ada:
        response = await ada.http.post(SEND, json=body)
        assert (response.status_code, response.json()["error"]["code"]) == (400, code)


async def test_files_are_sent_once_and_for_ever() -> None:
    async with web_host(EchoAgent()) as url, httpx.AsyncClient(base_url=url, trust_env=False) as http:
        page = (await http.get("/chat")).text
        script = page.partition('type="module" src="')[2].partition('"')[0]
        response = await http.get(script)
        assert response.headers["cache-control"].endswith("immutable")
        assert response.headers["content-encoding"] == "gzip"
        assert response.headers["content-type"] == "text/javascript; charset=utf-8"
        for wrong in (
            script.replace("chat.en.js", "../config.py"),
            script.replace("chat.en.js", "view.js"),
            script.replace("/static/", "/static/x"),
        ):
            assert (await http.get(wrong)).status_code == 404


async def test_too_many_conversations_are_refused() -> None:
    async with web_host(EchoAgent(), max_conversations=2) as url, open_visitor(url) as ada:
        assert (await ada.post("conversations", client_id="n1")).status_code == 200
        assert (await ada.post("conversations", client_id="n2")).json()["error"]["code"] == "too_many_chats"


async def test_a_message_beyond_the_limits_is_refused_and_not_shown_as_sent() -> None:
    agent = EchoAgent()
    async with (
        web_host(agent, event_limits=EventLimits(per_caller=RateLimit(1, 3600))) as url,
        open_visitor(url) as ada,
    ):
        await ada.say("first")
        await ada.wait_for_messages(2)
        for text in ("second", "third"):
            refused = await ada.http.post(SEND, json={"client_id": text, "text": text})
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
        assert not {"second", "third"} & set(await ada.texts())
    assert len(agent.seen) == 1


async def test_who_has_to_link_first_is_told_how() -> None:
    host = AgentFrameworkHost(
        EchoAgent(),
        channels=[WebChatChannel(), InvocationsChannel(auth=ApiKeyAuth({"ada": "a-key-of-some-length"}))],
        linker=OneTimeCodeIdentityLinker(),
        default_allowlist=AuthPolicy.require_link(),
    )
    async with serving(host) as client, open_visitor(client.base_url) as ada:
        await ada.say("hello")
        said = (await ada.wait_for_messages(2))[1]
        assert said["role"] == "notice"
        assert "code" in said["text"]


async def test_who_may_not_come_in_leaves_nothing_behind() -> None:
    agent = EchoAgent()
    host = AgentFrameworkHost(
        agent, channels=[WebChatChannel()], default_allowlist=AuthPolicy.native_allowlist(["somebody-else"])
    )
    async with serving(host) as client, open_visitor(client.base_url) as ada:
        for response in (
            await ada.post(f"conversations/{MAIN}/messages", client_id="c", text="x"),
            await ada.http.get("/chat/api/me"),
        ):
            assert (response.status_code, response.json()["error"]["code"]) == (403, "denied")
    assert agent.seen == []


def test_settings_check_themselves() -> None:
    channel = WebChatChannel(title=" ", prompts=["", "x"], keep_days=0, max_conversations=1000)
    assert len(channel.findings()) == 4


async def test_who_may_not_come_in_hears_nothing_either() -> None:
    nobody = AuthPolicy.native_allowlist(["somebody-else"])
    host = AgentFrameworkHost(EchoAgent(), channels=[WebChatChannel()], default_allowlist=nobody)
    async with serving(host) as client, open_visitor(client.base_url) as ada:
        for path in ("events", "poll"):
            async with ada.http.stream("GET", f"/chat/api/{path}") as response:
                assert response.status_code == 403


async def test_streams_that_stay_open_take_no_room_from_other_visitors() -> None:
    limits, feed = HttpLimits(max_running=2, max_running_per_caller=2), FeedLimits(max_open_per_caller=3)
    async with (
        web_host(EchoAgent(), limits=limits, feed=feed) as url,
        open_visitor(url) as mallory,
        open_visitor(url) as ada,
        AsyncExitStack() as opened,
    ):
        for status in (200, 200, 200, 429):
            stream = mallory.http.stream("GET", "/chat/api/events")
            assert (await opened.enter_async_context(stream)).status_code == status
        assert (await ada.http.get("/chat/api/me")).status_code == 200
        await ada.say("hello")
        assert [message["text"] for message in await ada.wait_for_messages(2)] == ["hello", "hello"]


async def test_a_stream_ends_by_itself_so_that_a_server_can_stop() -> None:
    async with web_host(EchoAgent(), feed=FeedLimits(stream_seconds=0.05)) as url, open_visitor(url) as ada:
        response = await ada.http.get("/chat/api/events")
        assert (response.status_code, response.text) == (200, "")


async def test_a_page_that_sends_too_much_on_its_feed_is_closed_with_the_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with web_host(EchoAgent()) as url, open_visitor(url) as ada, ada.feed() as page:
        await page.socket.send("x" * 2_000)
        with pytest.raises(ConnectionClosed) as closed:
            await page.until(lambda _: False)
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1008, "body_too_large")
    assert "failed" not in caplog.text
