"""The page in a real browser, under its real policy: on a phone, in two tabs, and while its host dies."""

import base64
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent, Content, tool

from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import EchoAgent, GatedAgent
from tests.browser import Tab, chromium, need_chromium
from tests.channels.web.browsing import ANSWER, BOX, SEND, STOP, axe_source, open_page, say, violations, wait_for_text
from tests.channels.web.killing import mortal_host
from tests.channels.web.test_files import PNG
from tests.channels.web.visiting import web_host

CHROMIUM = need_chromium("the web chat")


@pytest.fixture(scope="module")
def axe() -> str:
    return axe_source()


@pytest.fixture
async def new_tab() -> AsyncIterator[Any]:
    async with chromium(CHROMIUM) as tab:
        yield tab


async def test_asking_reloading_in_mid_answer_a_second_tab_and_stopping(new_tab: Any) -> None:
    agent = GatedAgent()
    async with web_host(agent) as url:
        tab = await open_page(await new_tab(), url)
        await say(tab, "one two three")
        await wait_for_text(tab, "one")
        await tab.page.reload()
        await wait_for_text(tab, "one")
        await tab.page.wait_for_selector(STOP)
        other = Tab(await tab.page.context.new_page())
        await open_page(other, url)
        await wait_for_text(other, "one")
        agent.release.set()
        for each in (tab, other):
            await wait_for_text(each, "one two three", f"{ANSWER}.done")
            await each.page.wait_for_selector(STOP, state="detached")
            assert await each.page.locator(".message").count() == 2
        agent.release.clear()
        await say(other, "four five")
        await wait_for_text(tab, "four", f"{ANSWER}.live")
        await tab.page.click(STOP)
        for each in (tab, other):
            await each.page.wait_for_selector(f"{ANSWER}.stopped")
            await each.page.wait_for_selector(STOP, state="detached")
        assert await tab.fits()
        assert [*tab.complaints, *other.complaints] == []


async def test_a_host_that_dies_in_mid_answer_loses_nothing(new_tab: Any, tmp_path: Path) -> None:
    async with mortal_host(tmp_path) as host:
        tab = await open_page(await new_tab(), host.url)
        await say(tab, "one two three")
        await wait_for_text(tab, "one", f"{ANSWER}.live")
        await host.kill()
        await tab.page.wait_for_selector(".offline")
        await say(tab, "are you there")
        await tab.page.wait_for_selector(".failed")
        host.let_speak()
        await host.start()
        await wait_for_text(tab, "one two three", f"{ANSWER}.done")
        await wait_for_text(tab, "are you there", f"{ANSWER}.done")
        await tab.page.wait_for_selector(STOP, state="detached")
        assert await tab.page.locator(".message").count() == 4


async def test_an_approval_shows_large_numbers_as_they_are(new_tab: Any) -> None:
    @tool(approval_mode="always_require")
    def pay(account: int, amount: float) -> str:
        """Pay."""
        return "paid"

    arguments = '{"account": 12345678901234567890, "amount": 1e400}'
    call = Content.from_function_call("call_1", "pay", arguments=arguments)
    async with web_host(Agent(ScriptedChatClient([[call], "done"]), tools=[pay])) as url:
        tab = await open_page(await new_tab(), url)
        await say(tab, "pay")
        await tab.page.wait_for_selector(".card dt")
        assert await tab.page.locator(".card dt").all_inner_texts() == ["account", "amount"]
        assert await tab.page.locator(".card dd").all_inner_texts() == ["12345678901234567890", "1e400"]


async def test_an_approval_is_decided_on_a_card_and_axe_finds_nothing(new_tab: Any, axe: str) -> None:
    booked: list[int] = []

    @tool(approval_mode="always_require")
    def book(nights: int) -> str:
        """Book a room."""
        booked.append(nights)
        return "done"

    call = Content.from_function_call("call-1", "book", arguments={"nights": 2})
    sample = "# Rooms\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- [x] one\n\n```py\nx = 1\n```\n\n> *It* is [booked](https://a.example)."
    client = ScriptedChatClient([[call], sample])
    async with web_host(Agent(client, "Book.", tools=[book]), prompts=["Hello"]) as url:
        tab = await open_page(await new_tab(), url)
        other = Tab(await tab.page.context.new_page())
        await open_page(other, url)
        found = {"empty": await violations(tab, axe)}
        await say(tab, "two nights please")
        for each in (tab, other):
            await each.page.wait_for_selector(".card dl")
        found["card"] = await violations(tab, axe)
        await tab.page.click(".card button.primary")
        for each in (tab, other):
            await each.page.wait_for_selector(".card.approved")
            await wait_for_text(each, "booked")
        await tab.page.emulate_media(color_scheme="dark")
        await tab.page.click("button.menu")
        found["dark, with the drawer"] = await violations(tab, axe)
        assert found == {state: [] for state in found}
        assert booked == [2]
        assert await tab.fits()


class Moody(EchoAgent):
    """Fails at the first question, and answers from then on."""

    async def speak(self, words: list[str]) -> AsyncIterator[Any]:
        if len(self.seen) == 1:
            raise RuntimeError("the secret reason")
        async for update in super().speak(words):
            yield update


async def test_a_question_that_failed_is_asked_again_and_a_conversation_is_renamed(new_tab: Any) -> None:
    async with web_host(Moody()) as url:
        tab = await new_tab()
        await open_page(tab, url)
        await tab.page.click("button.menu")
        await tab.page.click("button.new")
        await tab.page.wait_for_url(re.compile("#.{5}"))
        await say(tab, "how are you")
        await tab.page.click(".message.notice .actions button")
        await wait_for_text(tab, "how are you", f"{ANSWER}.done")
        await tab.page.get_by_label("More about this conversation").click()
        await tab.page.get_by_role("button", name="Rename conversation").click()
        await tab.page.fill("dialog input", "My trip")
        await tab.page.press("dialog input", "Enter")
        await tab.page.locator("header p", has_text="My trip").wait_for()
        await tab.page.reload()
        await wait_for_text(tab, "how are you", f"{ANSWER}.done")
        assert "secret" not in await tab.text()
        assert await tab.fits()


@pytest.mark.parametrize("blocked", [("feed",), ("feed", "events")], ids=["events", "polls"])
async def test_without_websockets_the_page_is_told_in_another_way(new_tab: Any, blocked: tuple[str, ...]) -> None:
    picture = Content.from_uri(f"data:image/png;base64,{base64.b64encode(PNG).decode()}", media_type="image/png")
    client = ScriptedChatClient([[Content.from_text("Here you are."), picture]])
    async with web_host(Agent(client, "Draw.")) as url:
        tab = await new_tab()
        await tab.page.route_web_socket("**/api/feed*", lambda socket: socket.close())
        if "events" in blocked:
            await tab.page.route("**/api/events*", lambda route: route.abort())
        await open_page(tab, url)
        await tab.page.set_input_files("input[type=file]", {"name": "a.png", "mimeType": "image/png", "buffer": PNG})
        await tab.page.wait_for_selector(".attached li")
        await tab.page.click(SEND)
        await wait_for_text(tab, "Here you are.", f"{ANSWER}.done")
        for role in ("user", "assistant"):
            drawn = tab.page.locator(f".message.{role} img")
            await drawn.wait_for()
            assert await drawn.evaluate("one => one.decode().then(() => one.naturalWidth)") == 1
        # A host that stops waits a while for those who still listen.
        await tab.page.close()


WRITES_HTML = "(() => { try { document.body.innerHTML = '<b>'; return 'written' } catch (e) { return e.message } })()"
CORPUS = [
    "<script>window.hit=1</script>",
    "<img src=x onerror=window.hit=1>",
    "<svg/onload=window.hit=1>",
    "<iframe srcdoc='<script>parent.hit=1</script>'></iframe>",
    "<a href='javascript:window.hit=1'>x</a>",
    "[x](javascript:window.hit=1)",
    "[x](JaVaScRiPt:window.hit=1)",
    "[x](java&#10;script:window.hit=1)",
    "[x](data:text/html,<script>window.hit=1</script>)",
    "[x](vbscript:window.hit=1)",
    "![x](javascript:window.hit=1)",
    '![x](https://a.example/"onload="window.hit=1)',
    "<javascript:window.hit=1>",
    "```html\n<script>window.hit=1</script>\n```",
    "| <img src=x onerror=window.hit=1> |\n|---|\n| <script>window.hit=1</script> |",
    "# <img src=x onerror=window.hit=1>",
    "${window.hit=1} {{window.hit=1}} <!--?lit$1234$-->",
    "<style>@import 'https://a.example/x.css'</style>",
    "<form action=https://a.example><button>send</button></form>",
    "<base href=https://a.example/><meta http-equiv=refresh content='0;url=https://a.example'>",
    "[x]: javascript:window.hit=1\n\n[x]",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=window.hit=1>",
]


async def test_nothing_that_an_agent_or_a_person_writes_becomes_code(new_tab: Any) -> None:
    answer = "\n\n".join(CORPUS)
    async with web_host(Agent(ScriptedChatClient([answer]), "Attack.")) as url:
        tab = await new_tab()
        requests: list[str] = []
        tab.page.on("request", lambda request: requests.append(request.url))
        await open_page(tab, url)
        await say(tab, answer)
        await tab.page.wait_for_selector(f"{ANSWER}.done")
        links = await tab.page.eval_on_selector_all(f"{ANSWER} a", "all => all.map(one => one.protocol)")
        assert set(links) <= {"http:", "https:", "mailto:"}
        made = "main :is(script, iframe, img, form, style, base, meta, object, embed)"
        assert await tab.page.locator(made).count() == 0
        for link in await tab.page.locator(f"{ANSWER} button").all():
            await link.click()
        assert await tab.page.evaluate("window.hit") is None
        assert "Trusted" in await tab.page.evaluate(WRITES_HTML)
        assert all(request.startswith((url, "ws")) for request in requests), json.dumps(requests)
        # The one complaint is about what the test itself has tried.
        assert len(tab.complaints) == 1


@pytest.mark.parametrize("fragment", ["#%", "#%zz/1", "#%E0%A4%A", "#main/%"])
async def test_a_single_percent_sign_in_the_address_left_the_page_empty(new_tab: Any, fragment: str) -> None:
    async with web_host(EchoAgent()) as url:
        tab = await new_tab()
        await tab.page.goto(f"{url}/chat{fragment}")
        await tab.page.wait_for_selector(BOX)
        await say(tab, "hello")
        await wait_for_text(tab, "hello")
        await tab.page.evaluate("location.hash = '#main'")
        await tab.page.evaluate("fragment => { location.hash = fragment }", fragment)
        await say(tab, "again")
        await wait_for_text(tab, "again")
        assert tab.complaints == []
